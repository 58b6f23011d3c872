#!/bin/sh
# Several of us on one machine, and what `make run` leaves behind: tests/lib/instance_cases.py.  It takes a pattern.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD

if [ "$(id -u)" != 0 ]; then
    echo '1..0 # SKIP it needs root'
    exit 0
fi
# Default names and addresses, which somebody else on this machine may have too: in a network of its own.
# shellcheck disable=SC2016 # the inner shell expands it
PYTHONDONTWRITEBYTECODE=1 exec unshare --mount --net sh -c '
    set -e
    groups=$(mktemp -d)
    mount --rbind /sys/fs/cgroup "$groups"
    mount -t sysfs none /sys
    mount --rbind "$groups" /sys/fs/cgroup
    umount -l "$groups"
    rmdir "$groups"
    ip link set lo up
    ip link add outside type bridge # a machine has some address
    ip address add 192.0.2.1/24 dev outside
    ip link set outside up
    exec "$@"' sh python3 "$NIGHTSHIFT_SOURCE/tests/lib/instance_cases.py" "$@"
