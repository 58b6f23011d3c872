#!/bin/sh
# Whose the GPUs were, on a real daemon whose clock is turned: the sums against a count of the journal.
# It takes a pattern: t0445-fairness.sh 'CSV*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/fairness_cases.py" "$@"
