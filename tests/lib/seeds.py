"""seeds - what decides a test that makes up its own input.

The gate tries the same each time, so that a change is refused for what it does and not for its luck.
NIGHTSHIFT_SEED=N repeats a run; NIGHTSHIFT_NEW_SEEDS=1, as `make test-long` sets it, draws another.
"""
import os

FIXED = 20260101


def seed():
    """Is printed, also by tools/run-tests when it is new: that number is the bug report."""
    said = os.environ.get("NIGHTSHIFT_SEED")
    if said:
        number = int(said)
    else:
        number = int.from_bytes(os.urandom(4), "big") if os.environ.get("NIGHTSHIFT_NEW_SEEDS") else FIXED
    print(f"# NIGHTSHIFT_SEED={number}", flush=True)
    return number
