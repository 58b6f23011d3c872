#!/bin/sh
# The test rig itself: a real control plane, pretended nodes, real nodes, harm, and that nothing stays behind.
# It takes a pattern: t1000-rig.sh 'real node'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_rig_cases.py" "$@"
