#!/bin/sh
# The keeper with real crun, control groups and namespaces: tests/lib/keeper_cases.py.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_BUILD

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip 'it needs root'
command -v crun >/dev/null || skip 'crun is not installed'
[ -x "$NIGHTSHIFT_BUILD/nightshift-keeper" ] || skip 'nightshift-keeper is not built'
[ -x "$NIGHTSHIFT_BUILD/nightshift-init" ] || skip 'nightshift-init is not built'
[ -w /sys/fs/cgroup ] || skip 'control groups cannot be written here'
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/keeper_cases.py" "$@"
