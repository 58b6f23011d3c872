#!/bin/sh
# The API against its own OpenAPI description: schemathesis with every check (needs PyPI once).
# NIGHTSHIFT_EXAMPLES says how much is tried, tests/lib/seeds.py what.
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/schemathesis_cases.py" "$@"
