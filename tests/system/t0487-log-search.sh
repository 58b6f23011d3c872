#!/bin/sh
# A word in the output of jobs, on a real daemon: in one, in many, and never in what one may not read.
# It takes a part of a sentence: t0487-log-search.sh 'in parts'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/log_search_cases.py" "$@"
