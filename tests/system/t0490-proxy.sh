#!/bin/sh
# A real daemon behind a proxy, and limits on people: who is calling, cookies, requests of other sites, rates.
# It takes a pattern: t0490-proxy.sh 'a cookie*'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/proxy_cases.py" "$@"
