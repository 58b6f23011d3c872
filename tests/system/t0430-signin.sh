#!/bin/sh
# The real nightshift-signin against a real slapd, real PAM and a real OpenID provider, all on loopback.
# It takes a pattern: t0430-signin.sh 'LDAP'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/signin_cases.py" "$@"
