#!/bin/sh
# Jobs made up at random by two tenants, beside a watcher: tests/lib/attack_cases.py [COUNT].  NIGHTSHIFT_SEED repeats a run.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD

if [ "$(id -u)" != 0 ]; then
    echo '1..0 # SKIP it needs root'
    exit 0
fi
# In a mount namespace of its own, as t0320-hostile.
PYTHONDONTWRITEBYTECODE=1 exec unshare --mount python3 "$NIGHTSHIFT_SOURCE/tests/lib/attack_cases.py" "$@"
