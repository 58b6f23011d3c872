#!/bin/sh
# What is over is let go in time: output, rows of jobs; and machines that have shrunk.
# It takes a pattern: t0360-kept.sh oldest
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kept_cases.py" "$@"
