#!/bin/sh
# A real JupyterHub signs people in through a real daemon, with the lines of docs/ops/oauth.md (needs PyPI once).
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/jupyterhub_cases.py" "$@"
