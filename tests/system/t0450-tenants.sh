#!/bin/sh
# Tenants and people by command, by the API and by a file, on a real daemon: all or nothing, and after kill -9 as before.
# It takes a pattern: t0450-tenants.sh 'a lead*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/tenant_cases.py" "$@"
