#!/bin/sh
# Machines that are lent at times, on a real daemon whose clock is turned: what leaves before a window ends, and goes on.
# It takes a pattern: t0410-windows.sh 'a job that*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/windows_cases.py" "$@"
