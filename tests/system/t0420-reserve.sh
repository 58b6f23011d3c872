#!/bin/sh
# Machines that are reserved in advance, on a real daemon whose clock is turned: who leaves before, who starts, who goes on.
# It takes a pattern: t0420-reserve.sh 'a class*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/reserve_cases.py" "$@"
