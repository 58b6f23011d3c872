#!/bin/sh
# Tools sign their people in through a real daemon: the whole dance, and everything that must not work.
# It takes a pattern: t0480-oauth.sh 'a code*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/oauth_cases.py" "$@"
