#!/bin/sh
# Stores of older and newer versions: brought up to date with their jobs, or refused untouched.
# It takes a pattern: t0350-upgrade.sh newer
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/upgrade_cases.py" "$@"
