#!/bin/sh
# Jobs from submit to end through the HTTP API: users, GPUs, limits, gangs, freezing, restarts.
# It takes a pattern: t0310-run.sh 'a gang'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/run_cases.py" "$@"
