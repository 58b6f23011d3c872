#!/bin/sh
# People sign in at a real daemon, against a real slapd, real PAM and a real OpenID provider, all on loopback.
# It takes a pattern: t0455-signin-daemon.sh 'the cookie'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/door_cases.py" "$@"
