"""seeds - what decides a test that makes up its own input.

The gate tries the same each time, so that a change is refused for what it does and not for its luck.
NIGHTSHIFT_SEED=N repeats a run; NIGHTSHIFT_NEW_SEEDS=1, as `make test-long` sets it, draws another.
"""
import os

FIXED = 20260101


def seed():
    """Whoever asks prints it: that number is the bug report."""
    said = os.environ.get("NIGHTSHIFT_SEED")
    if said:
        return int(said)
    return int.from_bytes(os.urandom(4), "big") if os.environ.get("NIGHTSHIFT_NEW_SEEDS") else FIXED
