#!/bin/sh
# The first process of a task in a pod of Kubernetes, where no keeper is: it makes its own files, its
# stdout is the job's, SIGTERM is the freeze, and a bridge leads to it.
# It takes a pattern: t0205-pod-init.sh 'pid 1: a bridge'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/pod_cases.py" "$@"
