#!/bin/sh
# The agent on Kubernetes: a real kubelet says which pod has which GPU, and the API server whose agent it is.
# It takes a pattern: t1080-agent.sh token
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_agent_cases.py" "$@"
