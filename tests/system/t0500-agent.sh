#!/bin/sh
# The node agent with a real daemon and a fake driver: shared GPUs, a control plane that goes away, broken GPUs.
# It takes a pattern: t0500-agent.sh 'XID'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/agent_cases.py" "$@"
