#!/bin/sh
# What the API refuses and how: one case of each kind over the socket; idempotency, events over a restart.
# It takes a pattern: t0345-api.sh 'events'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/api_cases.py" "$@"
