#!/bin/sh
# The Helm chart on a real API server: what it renders, refuses and keeps; who may do what in a tenant's namespace.
# It takes a pattern: t1060-chart.sh 'upgrade'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_chart_cases.py" "$@"
