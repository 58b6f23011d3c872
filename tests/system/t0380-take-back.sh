#!/bin/sh
# One tenant has all GPUs, another comes: taking back, on a real daemon that is killed meanwhile.
# It takes a pattern: t0380-take-back.sh half
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/take_cases.py" "$@"
