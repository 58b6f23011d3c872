#!/bin/sh
# A tenant who tries everything: tests/lib/hostile_cases.py.  It takes a pattern or the name of a protection.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD

if [ "$(id -u)" != 0 ]; then
    echo '1..0 # SKIP it needs root'
    exit 0
fi
# In a mount namespace of its own: what it mounts, and what a job breaks out to, is gone afterwards.
PYTHONDONTWRITEBYTECODE=1 exec unshare --mount python3 "$NIGHTSHIFT_SOURCE/tests/lib/hostile_cases.py" "$@"
