#!/bin/sh
# What breaks under the daemon on Kubernetes: the API server, etcd, watches, machines, the daemon, its store.
# It takes a pattern: t1040-faults.sh 'etcd'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_faults_cases.py" "$@"
