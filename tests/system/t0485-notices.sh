#!/bin/sh
# What people are told by mail and webhook: a real daemon, real jobs, a mail server and a web server on loopback.
# It takes a part of a sentence: t0485-notices.sh 'kill'
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/notices_cases.py" "$@"
