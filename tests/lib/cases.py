"""cases - sentences that are tried one by one, each on a cluster of its own; prints TAP."""
import os
import signal
import sys
import traceback

import cluster as cl


class Cases:
    def __init__(self, options=()):
        self.options = list(options)
        self.list = []

    def add(self, sentence, *options):
        """Decorates a function of a cluster, which is there but not started."""
        def keep(fn):
            self.list.append((sentence, fn, list(options)))
            return fn
        return keep

    def _run(self, number, sentence, fn, options):
        c = cl.Cluster(self.options + options)
        try:
            fn(c)
            print(f"ok {number} - {sentence}", flush=True)
            return True
        except Exception:
            print(f"not ok {number} - {sentence}")
            print("\n".join("#   " + line for line in traceback.format_exc().splitlines()[-12:]))
            if os.path.exists(c.log_path):
                print("\n".join("#   | " + line for line in c.log_tail(8).splitlines()), flush=True)
            return False
        finally:
            c.close()

    def main(self):
        why = cl.why_not()
        if why:
            print(f"1..0 # SKIP {why}")
            return 0
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        wanted = [one for one in self.list if len(sys.argv) < 2 or sys.argv[1] in one[0]]
        good = [self._run(number, *one) for number, one in enumerate(wanted, 1)]
        print(f"1..{len(good)}")
        return not all(good)


def same(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"
