#!/bin/sh
# Jobs of ours as pods on real nodes: output, freezing, gangs, restarts.
# It takes a pattern: t1020-jobs.sh 'a gang'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_jobs_cases.py" "$@"
