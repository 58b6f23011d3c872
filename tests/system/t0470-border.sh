#!/bin/sh
# Nothing crosses the border between two tenants: 10,000 requests made up at random, on a real daemon.
# NIGHTSHIFT_SEED repeats a run; NIGHTSHIFT_REQUESTS says how many.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/border_cases.py" "$@"
