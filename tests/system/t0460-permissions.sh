#!/bin/sh
# Who may do what: every call as every role, on what is one's own and on what is others', on a real daemon.
# It takes a pattern: t0460-permissions.sh 'every call*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/permission_cases.py" "$@"
