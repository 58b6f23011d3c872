"""cases - sentences that are tried one by one on a real cluster; prints TAP.

  case = Cases()

  @case("a sentence about behaviour")
  def _(c): ...

  sys.exit(case.each())         a cluster for each, which is there but not started
  sys.exit(case.together())     one for all, which runs
  sys.exit(case.on(make, why))  one of another kind for all: make() is entered and left; why() says
                                why it cannot be had

An argument on the command line chooses the sentences that have it in them.
"""
import os
import signal
import sys
import traceback

import cluster as cl


class Skip(Exception):
    """Why a case cannot be tried here."""


class Cases:
    def __init__(self):
        self.list = []

    def __call__(self, sentence, *options):
        """Decorates a case; options are of its own cluster's daemon."""
        def keep(fn):
            self.list.append((sentence, fn, list(options)))
            return fn
        return keep

    def each(self, options=()):
        """A cluster for each case."""
        def run_all(tap):
            for sentence, fn, own in self._wanted():
                c = cl.Cluster([*options, *own])
                try:
                    tap.run(sentence, c, fn, c)
                finally:
                    c.close()
        return main(run_all)

    def together(self, make=cl.Cluster, prepare=None, arguments=lambda c: (c,), repair=None):
        """One cluster for all; repair(c) makes it fit for the next case after one that failed."""
        def run_all(tap):
            c = make()
            try:
                c.start()
                c.wait_ready()
                if prepare:
                    prepare(c)
                for sentence, fn, _ in self._wanted():
                    if not tap.run(sentence, c, fn, *arguments(c)) and repair:
                        repair(c)
            except Exception:
                tap.fail("the cluster goes on", c)
            finally:
                c.close()
        return main(run_all)

    def on(self, make, why_not):
        """Something else than a cluster for all, which is entered and left."""
        def run_all(tap):
            try:
                with make() as c:
                    for sentence, fn, _ in self._wanted():
                        tap.run(sentence, c, fn, c)
            except Exception:
                tap.fail("what the cases are tried on comes and goes")
        if os.environ.get("NIGHTSHIFT_STRICT") and why_not():
            print(f"1..1\nnot ok 1 - nothing is skipped here: {why_not()}")
            return 1
        return main(run_all, why_not)

    def _wanted(self):
        part = sys.argv[1] if len(sys.argv) > 1 else ""
        return [one for one in self.list if part in one[0]]


class Tap:
    def __init__(self):
        self.number, self.good = 0, True

    def run(self, sentence, c, fn, *args):
        try:
            fn(*args)
            self._say("ok", sentence)
        except Skip as why:
            self._say("ok", f"{sentence} # SKIP {why}")
        except Exception:
            self.fail(sentence, c)
            return False
        return True

    def fail(self, sentence, c=None):
        """With what was raised and what the daemon said."""
        self.good = False
        self._say("not ok", sentence)
        print("\n".join("#   " + line for line in traceback.format_exc().splitlines()[-12:]))
        if c and os.path.exists(c.log_path):
            print("\n".join("#   | " + line for line in c.log_tail(8).splitlines()), flush=True)

    def _say(self, how, what):
        self.number += 1
        print(f"{how} {self.number} - {what}", flush=True)


def main(run_all, why_not=cl.why_not):
    why = why_not()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A shell starts what runs in the background deaf to these, and so would be all that is started here.
    for deaf in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(deaf, signal.SIG_DFL)
    tap = Tap()
    run_all(tap)
    print(f"1..{tap.number}")
    return not tap.good


def same(got, wanted):
    assert got == wanted, f"{short(got)} is not {short(wanted)}"


def short(value, most=2000):
    """Ten megabytes in a message help nobody."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
