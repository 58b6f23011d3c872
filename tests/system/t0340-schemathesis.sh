#!/bin/sh
# The API against its own OpenAPI description: schemathesis with every check (needs PyPI once).
# NIGHTSHIFT_SEED and NIGHTSHIFT_EXAMPLES choose what is tried.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/schemathesis_cases.py" "$@"
