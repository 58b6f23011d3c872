"""thousand - many queued one-second jobs on four simulated GPUs: every log and every exit status is right.

Quarters of GPUs and whole ones are mixed; some jobs fail, some die by a signal.  While they run, an observer
reads from /proc alone who has which GPU.
"""
import argparse
import collections
import os
import signal
import sys
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cluster import wait_for  # noqa: E402

GPUS = 4
MARK = "THOUSAND_JOB"  # in the environment of each job: its place in the plan
BATCH = 250
LINES = 20
SECONDS_A_JOB = 2  # of patience, when jobs went one after the other
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT)
LOOK_EVERY_S = 0.05

Job = collections.namedtuple("Job", "milli code signal")  # milli: thousandths of a GPU


def plan(i):
    """What job i asks for and how it ends: fixed by its number."""
    milli = 1000 if i % 20 == 0 else 250
    if i % 25 == 7:
        return Job(milli, 0, SIGNALS[i // 25 % len(SIGNALS)])
    return Job(milli, 1 + i % 120 if i % 10 == 3 else 0, 0)


def spec(i):
    job = plan(i)
    how = f"kill -{int(job.signal)} $$" if job.signal else f"exit {job.code}"
    text = f"echo job {i} begins; seq {i} {i + LINES - 1}; echo job {i} complains >&2; " \
           f"sleep 1; echo job {i} ends; {how}"
    gpu = {"gpus": 1} if job.milli == 1000 else {"gpu_share": job.milli / 1000}
    return {"command": ["sh", "-c", text], "resources": {"cpus": 1, "mem": "64Mi", **gpu}, "env": {MARK: str(i)}}


def wanted_lines(i):
    """Two streams: the order between them is not fixed, so lines are compared sorted."""
    return sorted([f"job {i} begins", *(str(n) for n in range(i, i + LINES)), f"job {i} complains", f"job {i} ends"])


class Observer(threading.Thread):
    """Looks at all processes again and again until told to stop."""

    def __init__(self, home):
        super().__init__(daemon=True)
        self.home = home
        self.stopped = threading.Event()
        self.seen, self.full, self.wrong, self.looks = set(), set(), [], 0

    def run(self):
        try:
            while not self.stopped.is_set():
                self.look()
                self.stopped.wait(LOOK_EVERY_S)
        except Exception:
            self.wrong.append(traceback.format_exc())

    def look(self):
        found = {}  # (pid, birth): (job, its GPUs)
        for pid in cl.pids_with("HOME", self.home):
            birth, env = cl.process_birth(pid), cl.process_environ(pid)
            gpus = [gpu for gpu in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if gpu not in ("", "void", "none")]
            if birth and MARK in env and cl.proc_file(pid, "comm").strip() == b"sleep":
                found[pid, birth] = int(env[MARK]), tuple(gpus)
        # Whoever is still there was there at one moment together with all the others that still are.
        self.judge([who for (pid, birth), who in found.items() if cl.process_birth(pid) == birth])
        self.looks += 1

    def judge(self, together):
        """What jobs that ran at one moment had in all."""
        given = collections.Counter()
        for number, gpus in together:
            self.seen.add(number)
            if len(gpus) != 1:
                self.wrong.append(f"job {number} sees {gpus}, not one GPU")
            for gpu in gpus:
                given[gpu] += plan(number).milli
        twice = [n for n, count in collections.Counter(number for number, _ in together).items() if count > 1]
        if twice:
            self.wrong.append(f"jobs {twice} run twice at once")
        for gpu, milli in given.items():
            if milli > 1000:
                owners = sorted(number for number, gpus in together if gpu in gpus)
                self.wrong.append(f"{gpu} was given {milli} thousandths, to {owners}")
            elif milli == 1000:
                self.full.add(gpu)

    def stop(self):
        self.stopped.set()
        self.join()


class Thousand:
    def __init__(self, c, n):
        self.c, self.n, self.ids = c, n, []
        self.observer = Observer(f"{c.state}/homes/root")

    def queue_all(self):
        """all jobs are taken"""
        for first in range(0, self.n, BATCH):
            jobs = [spec(i) for i in range(first, min(first + BATCH, self.n))]
            self.ids += self.c.ask("POST", "/v1/jobs", {"jobs": jobs})["ids"]
        assert len(set(self.ids)) == self.n, f"{len(set(self.ids))} numbers for {self.n} jobs"

    def all_end(self):
        """all jobs end, and nobody has to wait for ever"""
        wait_for("the last job", lambda: not self.c.ask("GET", "/v1/jobs?limit=1")["jobs"], self.n * SECONDS_A_JOB)

    def gpus_right(self):
        """no GPU was ever given to more than fits, and all were full, as /proc tells it"""
        self.observer.stop()
        o = self.observer
        assert not o.wrong, f"{len(o.wrong)} times, first: {o.wrong[:3]}"
        assert len(o.seen) > self.n // 2 and len(o.full) == GPUS, \
            f"the observer saw {len(o.seen)} jobs in {o.looks} looks and {sorted(o.full)} full: too little to judge"

    def ends_right(self):
        """every job ended as its program did, after one run"""
        wrong = []
        for i, number in enumerate(self.ids):
            job, p = self.c.job(number), plan(i)
            state = "failed" if p.code or p.signal else "succeeded"
            got = (job["state"], job["exit_code"], job["exit_signal"], job["end"], job["run"])
            if got != (state, p.code, int(p.signal), "exited", 1):
                wrong.append((i, got, job["message"]))
        assert not wrong, f"{len(wrong)} jobs, first: {wrong[:3]}"

    def logs_right(self):
        """every log is whole and its own"""
        wrong = []
        for i, number in enumerate(self.ids):
            text = self.c.text_of(number)
            if sorted(text.splitlines()) != wanted_lines(i) or not text.endswith("\n"):
                wrong.append((i, text[-200:]))
        assert not wrong, f"{len(wrong)} logs, first: {wrong[:3]}"

    def nothing_left(self):
        """nothing is left of them: no group, mount, file or process"""
        c = self.c

        def left():
            return [*c.cgroups(), *c.mounts(), *c.task_files(), *c.network_users(), *c.surplus()]
        try:
            wait_for("everything to be cleared", lambda: not left())
        except AssertionError as why:
            raise AssertionError(f"left: {left()[:5]}") from why


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--jobs", type=int, default=1000)
    args = p.parse_args()
    why = cl.why_not()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    c = cl.Cluster()
    failed = number = 0
    try:
        c.start()
        c.wait_ready()
        t = Thousand(c, args.jobs)
        t.observer.start()
        for step in (t.queue_all, t.all_end, t.gpus_right, t.ends_right, t.logs_right, t.nothing_left):
            number += 1
            try:
                step()
                print(f"ok {number} - {step.__doc__}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {number} - {step.__doc__}")
                print("\n".join("#   " + line for line in traceback.format_exc().splitlines()[-8:]))
                print("\n".join("#   | " + line for line in c.log_tail(8).splitlines()), flush=True)
    finally:
        c.close()
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
