#!/bin/sh
# A directory of accounts that hangs or is away: it holds up nobody else, and nobody becomes a new person.
# It takes a pattern: t0456-directory.sh hangs
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/directory_cases.py" "$@"
