#!/bin/sh
# What Prometheus is told of machines and GPUs; with a real Prometheus where one is installed (NIGHTSHIFT_PROMETHEUS,
# NIGHTSHIFT_PROMTOOL name others than those in PATH).
# It takes a pattern: t0510-metrics.sh dcgm
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/metrics_cases.py" "$@"
