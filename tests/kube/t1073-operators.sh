#!/bin/sh
# Gangs of the real operators of JobSet, Kubeflow and Ray: placed, suspended, given back, finished.
# It takes a pattern: t1073-operators.sh JobSet
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_operators_cases.py" "$@"
