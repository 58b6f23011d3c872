#!/bin/sh
# Extended resources: slices of GPUs, shared GPUs, network cards; of pods of others and of jobs of ours.
# It takes a pattern: t1075-devices.sh slices
: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD
PYTHONDONTWRITEBYTECODE=1 exec python3 "$NIGHTSHIFT_SOURCE/tests/lib/kube_devices_cases.py" "$@"
