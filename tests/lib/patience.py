"""patience - how long any test waits for what is to happen, in one place.

It bounds what is broken, not what is slow: a machine on which ten others compute needs none of it.  Whoever waits looks
at a condition; a time that has passed proves nothing.
"""
import time

PATIENCE_S = 300


def wait_for(what, condition, patience_s=PATIENCE_S):
    """The condition's value, once it is true."""
    until = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"waited too long: {what}")
        time.sleep(0.01)
