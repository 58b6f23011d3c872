#!/bin/sh
# A real daemon's own history: fetched, replayed to the same decisions, and asked what if.
# It takes a pattern: t0390-whatif.sh same
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/whatif_cases.py" "$@"
