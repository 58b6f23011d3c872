#!/bin/sh
# Pods of others that name our scheduler: Deployments, gangs, where they may go, volumes, restarts.
# It takes a pattern: t1030-pods.sh gang
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_pods_cases.py" "$@"
