#!/bin/sh
# The first process of a task, from the outside: exit codes, logs, terminals, attach, exec, signals.
# It takes a pattern: t0200-init.sh 'pid 1: an exec'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/init_cases.py" "$@"
