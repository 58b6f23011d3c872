#!/bin/sh
# Kills, full disks and torn writes under load: nothing accepted is lost, nothing runs twice.
# Options: --rounds N, --seed N (what a failing run printed; else tests/lib/seeds.py), --verbose, --keep.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/system/crash.py" "$@"
