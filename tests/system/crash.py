"""crash - harms the daemon, the keeper and the agent under load, and checks that nobody lost anything.

  crash.py [--rounds N] [--seed N] [--only HARM] [--keep] [--verbose]

A round submits jobs and does one harm: kill -9 of the daemon, the keeper or both at a random moment
or at a named fail point, a full disk, garbage behind the last record of the write-ahead log, or one of
crash_harms.py.  The jobs themselves keep the record that is checked at the end (crash_job.py); nothing
here shares code with what is tested.  The seed decides the jobs and the harm of each round; only timing
differs.  At the end the record is falsified in each way, and the checks have to find it.
"""
import argparse
import collections
import glob
import heapq
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests/lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cluster as cl  # noqa: E402
import crash_harms as harms  # noqa: E402
import receivers  # noqa: E402
import seeds  # noqa: E402
from crash_job import line_of  # noqa: E402

STATE_BYTES = 96 << 20
FIRE_S = 2.5    # so long a fail point may wait to be reached; then its process is killed anyway
ANSWER_S = 3    # a client that waits longer asks again, under the same key
DRAIN_S = 2 * cl.PATIENCE_S
BACKLOG = 40    # jobs that have not ended: more would only wait for GPUs
FIRST_POINTS = 9  # fail points among the first rounds, beside one of each kind of harm
# Where only some jobs come by.
NEEDS = {"keeper.after_freeze": "pause", "keeper.after_stop_note": "cancel", "keeper.before_failed": "nowhere",
         **{name: needs for name, (_, needs) in harms.HARMS.items() if needs}}
ALL_HARMS = {**harms.HARMS, **harms.NOT_HELD}
KILLS = ("full disk", "torn log", "kill daemon", "kill keeper", "kill both")
OFTEN = ("short", "short", "half", "long")
SPECIAL = ("array", "gang", "cancel", "pause", "missing", "nowhere")


def fail_points(folder):
    found = set()
    for path in glob.glob(f"{folder}/src/**/*.c", recursive=True):
        if not path.endswith("_test.c"):
            with open(path, encoding="utf-8") as f:
                found |= set(re.findall(r'\bfail_point\("([^"]+)"\)', f.read()))
    return sorted(found)


class Job:
    """One submit: what is asked for and what must come of it."""

    def __init__(self, key, kind, rng):
        self.key, self.kind, self.ids, self.told_to_end = key, kind, None, False
        self.seconds = rng.uniform(2, 5) if kind in ("long", "cancel", "pause") else rng.uniform(0, 0.3)
        self.lines = rng.randint(20, 60)
        self.code = rng.choice((0, 0, 0, 3)) if kind in ("short", "long") else 0
        self.gpus = rng.choice((0, 1, 1, 2)) if kind in ("short", "long", "cancel") else 0
        self.milli = 500 if kind == "half" else 1000 if self.gpus else 0
        self.delay = rng.uniform(0, 0.5)       # until it is submitted
        self.meddle = rng.uniform(0, 1.5)      # until it is cancelled or paused
        self.thaw = rng.uniform(0.2, 1)        # and how long it stays so
        self.stays = kind == "stays"           # until its file is removed
        self.needed, self.meddled = False, False  # needed: by a harm, so it is cancelled or paused while it runs
        self.count = 4 if kind == "array" else 1
        self.replicas = 2 if kind == "gang" else 1

    def come_by(self, delay):
        """At once, whatever the GPUs do."""
        self.gpus, self.milli, self.delay, self.meddle, self.needed = 0, 0, delay, 0.2, True

    def spec(self, work):
        script = ["python3", "-I", "-S", f"{work}/crash_job.py"]
        words = (self.key, self.seconds, self.lines, self.code, self.milli)
        spec = {"name": self.key, "command": script + [str(w) for w in words],
                "volumes": [{"from": work, "to": work}],
                "env": {"CRASH_WORK": work, "CRASH_KEY": self.key},
                "resources": {"cpus": 1, "mem": "64Mi"}, "freeze": {"mode": "pause"}}
        if self.kind == "half":
            spec["resources"]["gpu_share"] = 0.5
        elif self.gpus:
            spec["resources"]["gpus"] = self.gpus
        if self.kind == "array":
            spec["array"] = f"0-{self.count - 1}"
        elif self.kind == "gang":
            spec["replicas"] = self.replicas
        elif self.kind == "missing":
            spec["command"] = ["/no/such/program"]
        elif self.kind == "nowhere":
            spec["volumes"].append({"from": "/no/such/folder", "to": "/mnt/x"})
        return spec

    def members(self):
        """(id, index, replica) of each process that was asked for."""
        return [(self.ids[index], index, replica) for index in range(self.count)
                for replica in range(self.replicas)]


class Round:
    """What happens in one round; drawn before anything runs, so a seed tells all of it."""

    def __init__(self, number, harm, rng):
        self.number, self.harm = number, harm
        self.wait = rng.uniform(0, 0.4)
        self.visit = rng.choice((1, 1, 2, 3))
        self.down = rng.uniform(0, 0.1)
        self.dice = rng.random()
        kinds = [*rng.sample(OFTEN, 3), NEEDS.get(harm) or SPECIAL[number % len(SPECIAL)]]
        self.jobs = [Job(f"r{number}j{i}", kind, rng) for i, kind in enumerate(kinds)]
        if harm in NEEDS:  # it must come by after the harm is there
            self.visit = 1
            self.jobs[-1].come_by(self.wait + 0.3)

    def __str__(self):
        visit = f":{self.visit}" if "." in self.harm else ""
        return f"round {self.number}: {self.harm}{visit} after {self.wait:.2f} s, {[j.kind for j in self.jobs]}"


def schedule(rounds, rng, points):
    """Every harm once before any comes twice; even a short run has one of each kind."""
    kinds, deck, out = [*KILLS, *harms.HARMS], [], []
    for number in range(rounds):
        if not deck:
            deck = points + kinds * 2
            rng.shuffle(deck)
            if number == 0:
                first = kinds + rng.sample(points, FIRST_POINTS)
                rng.shuffle(first)
                deck += first
        out.append(Round(number, deck.pop(), rng))
    return out


def schedule_only(rounds, rng, chosen):
    return [Round(number, chosen[number % len(chosen)], rng) for number in range(rounds)]


class Load:
    """Submits and meddles in the background, and remembers what it was told."""

    def __init__(self, cluster):
        self.cluster, self.jobs, self.faults = cluster, [], []
        self.todo, self.wakeup, self.over = [], threading.Condition(), False
        self.busy = 0
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def add(self, jobs):
        for job in jobs:
            self.jobs.append(job)
            self._later(job.delay, self._submit, job)

    def _later(self, delay, fn, job):
        with self.wakeup:
            heapq.heappush(self.todo, (time.monotonic() + delay, id(job), fn, job))
            self.wakeup.notify()

    def _work(self):
        while True:
            with self.wakeup:
                while not self.over and (not self.todo or self.todo[0][0] > time.monotonic()):
                    self.wakeup.wait(0.02 if self.todo else None)
                if self.over:
                    return
                _, _, fn, job = heapq.heappop(self.todo)
                self.busy += 1
            try:
                fn(job)
            except Exception:
                self.faults.append(f"{job.key}: {traceback.format_exc()}")
            with self.wakeup:
                self.busy -= 1

    def idle(self):
        with self.wakeup:
            return not self.todo and not self.busy

    def stop(self):
        with self.wakeup:
            self.over = True
            self.wakeup.notify_all()
        for thread in self.threads:
            thread.join()

    def _insist(self, method, path, body=None, key=None):
        """Asks until it is answered; 503 is no answer yet.  The same key makes it one wish."""
        until = time.monotonic() + cl.PATIENCE_S
        while time.monotonic() < until:
            try:
                status, answer = self.cluster.call(method, path, body, key, timeout=ANSWER_S)
                if status != 503:
                    return status, answer
                if not isinstance(answer, dict) or not answer.get("hint"):
                    self.faults.append(f"a refusal does not say what to do: {method} {path}: {answer}")
            except cl.Away:
                pass
            time.sleep(0.02)
        raise AssertionError(f"no answer for {cl.PATIENCE_S} s: {method} {path}")

    def _submit(self, job):
        status, answer = self._insist("POST", "/v1/jobs", job.spec(self.cluster.work), job.key)
        assert status == 201 and answer["count"] == job.count, f"{status} {answer}"
        job.ids = [answer["id"] + i for i in range(job.count)]
        if job.kind in ("cancel", "pause"):
            self._later(job.meddle, self._cancel if job.kind == "cancel" else self._freeze, job)

    def _verb(self, job, verb):
        status, answer = self._insist("POST", f"/v1/jobs/{job.ids[0]}/{verb}", {})
        assert status in (200, 409), f"{verb}: {status} {answer}"  # 409: it is not in that state any more
        return status == 200

    def _too_soon(self, job, fn):
        """Whether it has not begun yet, and is meddled with later."""
        if job.needed:
            status, answer = self._insist("GET", f"/v1/jobs/{job.ids[0]}")
            assert status == 200, f"{status} {answer}"
            if answer["state"] not in ("running", *cl.ENDED):
                self._later(0.05, fn, job)
                return True
        return False

    def _cancel(self, job):
        if self._too_soon(job, self._cancel):
            return
        job.told_to_end = True
        self._verb(job, "cancel")
        job.meddled = True

    def _freeze(self, job):
        if self._too_soon(job, self._freeze):
            return
        self._verb(job, "freeze")
        job.meddled = True
        self._later(job.thaw, self._thaw, job)

    def _thaw(self, job):
        """Until it runs or has ended: it may be on its way into the pause."""
        status, answer = self._insist("GET", f"/v1/jobs/{job.ids[0]}")
        assert status == 200, f"{status} {answer}"
        if answer["state"] in cl.ENDED:
            return
        if answer["state"] in ("paused", "frozen"):
            self._verb(job, "thaw")
        self._later(0.1 if answer["state"] in ("freezing", "paused", "frozen", "thawing") else 0.5, self._thaw, job)


class Crash:
    def __init__(self, cluster, rng, verbose):
        self.cluster, self.rng, self.verbose = cluster, rng, verbose
        self.load = Load(cluster)
        self.wall, self.agent, self.operator = harms.Wall(cluster), None, None
        self.fired, self.missed = collections.Counter(), collections.Counter()
        self.faults, self.crossed, self.began = [], 0, time.monotonic()
        self.full = []  # when the disk was
        self.flips = collections.Counter()  # what became of flipped bits
        self.hook = receivers.HookServer()  # is told of all ends
        shutil.copy(f"{cl.LIBEXEC}/nightshift-send", cluster.libexec)
        for folder in ("ledger", "locks"):
            os.mkdir(f"{cluster.work}/{folder}")
            os.chown(f"{cluster.work}/{folder}", cl.JOB_UID, cl.JOB_UID)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "crash_job.py"), cluster.work)

    # ---- harm ----

    def restart_daemon(self, down, failpoint=None):
        self.cluster.kill_daemon()
        time.sleep(down)
        self.cluster.start(failpoint)

    def daemon_point(self, r):
        self.restart_daemon(r.down, f"{r.harm}:{r.visit}")
        try:
            self.cluster.daemon.wait(FIRE_S)
        except Exception:
            self.missed[r.harm] += 1
        else:
            self.fired[r.harm] += 1
            self.expect(self.cluster.daemon.returncode == -signal.SIGKILL,
                        f"the daemon ended with {self.cluster.daemon.returncode}:\n{self.cluster.log_tail()}")
        self.restart_daemon(r.down)

    def keeper_point(self, r):
        self.cluster.keeper_failpoint(f"{r.harm}:{r.visit}")
        self.cluster.kill_keeper()
        # The one with the fail point: may be over before it is seen, then its successor is.
        gone = f"{self.cluster.libexec}/failpoint"
        cl.wait_for("the next keeper", lambda: not os.path.exists(gone))
        pid = cl.wait_for("the next keeper", self.cluster.keeper_pid)
        point = f"NIGHTSHIFT_FAILPOINT={r.harm}:{r.visit}".encode()
        until, job = time.monotonic() + FIRE_S, r.jobs[-1]
        awaited = job.needed and job.kind in ("pause", "cancel")
        last = until + cl.PATIENCE_S
        while time.monotonic() < until:
            if awaited and not job.meddled:
                until = min(time.monotonic() + FIRE_S, last)
            if cl.process_birth(pid) is None or point not in cl.proc_file(pid, "environ").split(b"\0"):
                self.fired[r.harm] += 1
                return
            time.sleep(0.01)
        self.missed[r.harm] += 1
        self.cluster.kill_keeper()

    def kill_both(self, r):
        self.cluster.kill_daemon()
        if r.dice < 0.5:
            time.sleep(r.down)
        self.cluster.end_keeper()

    def full_disk(self, r):
        path, since = f"{self.cluster.state}/fill", time.time_ns()
        block = b"\1" * 65536
        with open(path, "wb", buffering=0) as f:
            until = time.monotonic() + 0.5 + r.wait * 2
            while time.monotonic() < until:
                try:
                    f.write(block)
                except OSError:
                    time.sleep(0.005)  # others may give something back: take that too
            if r.dice < 0.4:
                self.cluster.kill_keeper()
            elif r.dice < 0.6:
                self.cluster.kill_daemon()
            elif r.dice < 0.8:  # one that is started now may refuse, but must not make it worse
                self.restart_daemon(r.down)
                time.sleep(r.wait)
        os.unlink(path)
        self.full.append((since, time.time_ns()))
        if self.cluster.daemon.poll() is not None:
            self.cluster.start()

    def torn_log(self, r):
        self.kill_both(r)
        path = f"{self.cluster.state}/nightshift.db-wal"
        with open(path, "rb") as f:
            old = f.read()
        frame = 24 + 4096
        tails = {0: self.rng.randbytes(self.rng.randint(1, 9000)), 1: bytes(self.rng.randint(1, 9000)),
                 2: old[-frame:][:self.rng.randint(1, frame - 1)], 3: old[-frame:]}
        with open(path, "ab") as f:
            f.write(tails[int(r.dice * 4)])
        self.cluster.start()

    def do_harm(self, r):
        time.sleep(r.wait)
        if r.harm in ALL_HARMS:
            self.fired[r.harm] += ALL_HARMS[r.harm][0](self, r)
        elif r.harm.startswith("keeper."):
            self.keeper_point(r)
        elif "." in r.harm:
            self.daemon_point(r)
        elif r.harm == "kill daemon":
            self.restart_daemon(r.down)
        elif r.harm == "kill keeper":
            self.cluster.kill_keeper()
        elif r.harm == "kill both":
            self.kill_both(r)
            self.cluster.start()
        elif r.harm == "full disk":
            self.full_disk(r)
        else:
            self.torn_log(r)
        if r.harm in KILLS:
            self.fired[r.harm] += 1

    # ---- watching ----

    def expect(self, condition, text):
        if not condition:
            self.faults.append(text)

    def expect_refusal(self, r, said, cause, whose=None):
        """Whoever ends at its start names the cause and the way out."""
        code = (whose or self.cluster).daemon.returncode
        good = code > 0 and re.search(cause, said) and "hint" in said
        self.expect(good, f"{r}: the daemon ended with {code}, and does not say what to do:\n{said}")

    def processes(self):
        """{pid: (birth, ledger)} of the jobs' own programs."""
        found = {}
        for pid in cl.pids_with("CRASH_WORK", self.cluster.work):
            env = cl.process_environ(pid)
            if b"crash_job.py" in cl.proc_file(pid, "cmdline") and cl.proc_file(pid, "comm") == b"python3\n":
                name = f"{env['CRASH_KEY']}.{env.get('NIGHTSHIFT_ARRAY_INDEX', '0')}.{env['NIGHTSHIFT_REPLICA']}"
                found[pid] = (cl.process_birth(pid), name)
        return found

    def ledger(self, name):
        try:
            with open(f"{self.cluster.work}/ledger/{name}", encoding="utf-8") as f:
                return [line.split() for line in f]
        except FileNotFoundError:
            return []

    def check_untouched(self, before, r):
        """Those that ran before the harm run still, or came to their own end."""
        meddled = {job.key for job in self.load.jobs if job.told_to_end}
        for pid, (birth, name) in before.items():
            if birth is None or cl.process_birth(pid) == birth:
                self.crossed += birth is not None
                continue
            ended = any(words[0] == "end" for words in self.ledger(name))
            self.expect(ended or name.split(".")[0] in meddled, f"{r}: {name} (pid {pid}) was killed")

    def check_gpus(self, when, at_rest=False):
        for node in self.cluster.ask("GET", "/v1/nodes")["nodes"]:
            for gpu in node["gpus"]:
                held = sum(job["milli"] for job in gpu["jobs"])
                # What was decided a moment ago is counted before it is written down: then jobs are fewer.
                good = held + gpu["free_milli"] <= 1000 and (not at_rest or gpu["free_milli"] == 1000)
                self.expect(good, f"{when}: GPU {gpu['index']} is miscounted: {gpu}")

    def round(self, r):
        if self.verbose:
            print(f"# {time.monotonic() - self.began:6.2f} s  {r}", flush=True)
        cl.wait_for("room for more", lambda: len(self.living()) < BACKLOG)
        for job in r.jobs:
            if job.stays:
                with open(f"{self.cluster.work}/stay.{job.key}", "w", encoding="utf-8"):
                    pass
        self.load.add(r.jobs)
        before = self.processes()
        self.do_harm(r)
        self.cluster.wait_ready()
        self.check_untouched(before, r)
        self.check_gpus(r)

    # ---- what is recorded ----

    def listed(self, whose=None):
        """Every job there is."""
        found, before = [], 0
        while before is not None:
            page = (whose or self.cluster).ask("GET", "/v1/jobs?state=all&limit=1000" + (f"&before={before}" if before else ""))
            found += page["jobs"]
            before = page["next"]
        return found

    def ends(self, whose=None):
        """What can change no more."""
        return {job["id"]: tuple(job[key] for key in ("name", "state", "exit_code", "exit_signal", "run"))
                for job in self.listed(whose) if job["state"] in cl.ENDED}

    def check_kept(self, before, when):
        now = self.ends()
        lost = {number: (was, now.get(number)) for number, was in before.items() if now.get(number) != was}
        self.expect(not lost, f"{when}: the record of these is not as it was: {lost}")

    # ---- the end ----

    def living(self):
        return self.cluster.ask("GET", "/v1/jobs?limit=1000")["jobs"]

    def drain(self):
        cl.wait_for("everything to be submitted", self.load.idle, DRAIN_S)
        try:
            cl.wait_for("all jobs to end", lambda: not self.living(), DRAIN_S)
        except AssertionError:
            self.faults.append("these did not end: " + ", ".join(
                f"{j['id']} {j['name']} {j['state']} run {j['run']} ({j['message'] or j['reason']})" for j in self.living()))

    def check_job(self, job):
        if job.ids is None:
            self.faults.append(f"{job.key}: its submit was never answered")
            return
        gone = set()
        for number in job.ids:
            status, now = self.cluster.call("GET", f"/v1/jobs/{number}")
            if status != 200:
                self.faults.append(f"{job.key}: job {number} was accepted and is gone: {now}")
                gone.add(number)
                continue
            self.check_end(job, now)
        for number, index, replica in job.members():
            name = f"{job.key}.{index}.{replica}"
            self.check_ledger(job, name, number)
            if number not in gone:
                self.check_log(job, name, number, replica)

    def check_end(self, job, now):
        told = f"{job.key} ({job.kind}, job {now['id']}) is {now['state']}, exit code {now['exit_code']}, " \
               f"signal {now['exit_signal']}, run {now['run']}: {now['message']}"
        if job.kind == "missing":
            good = now["state"] == "failed" and now["exit_code"] == 127
        elif job.kind == "nowhere":
            good = now["state"] == "failed" and now["end"] == "start_failed"
        elif job.told_to_end and now["state"] == "cancelled":
            good = True
        else:
            good = now["state"] == ("failed" if job.code else "succeeded") and now["exit_code"] == job.code
        self.expect(good, told)
        self.expect(now["run"] <= 1, f"{told}: it was started {now['run']} times")

    def check_ledger(self, job, name, number):
        lines = self.ledger(name)
        what = collections.Counter(words[0] for words in lines)
        text = "; ".join(" ".join(words) for words in lines) or "it is empty"
        ran = 0 if job.kind in ("missing", "nowhere") else 1
        if job.told_to_end:
            good = what["start"] <= 1 and what["end"] <= what["start"]
        else:
            good = what["start"] == ran and what["end"] == ran
        good = good and set(what) <= {"start", "end"} and all(words[1] == str(number) for words in lines)
        self.expect(good, f"{name} ({job.kind}, job {number}): its ledger is wrong: {text}")

    def check_log(self, job, name, number, replica):
        if job.kind in ("missing", "nowhere"):
            return
        whole = [line_of(name, i) for i in range(job.lines)]
        got = self.cluster.text_of(number, f"?replica={replica}").splitlines(keepends=True)
        if got == whole:
            return
        if job.told_to_end and got == whole[:len(got)]:
            return
        records = self.cluster.text_of(number, f"?replica={replica}&format=records")
        lost = sum(map(int, re.findall(r" meta F (\d+) bytes of output were lost", records)))
        rest = iter(whole)
        in_order = all(line in rest for line in got)
        missing = sum(map(len, whole)) - sum(map(len, got))
        # To the end on a full disk: not even the note about it could be written.
        ends = [int(words[4]) for words in self.ledger(name) if words[0] == "end"]
        untold = any(since <= end <= until for end in ends for since, until in self.full)
        if job.told_to_end:  # how much it printed before that is not known
            missing = max(lost, 1)
        self.expect(in_order and (lost == missing or (untold and lost < missing)),
                    f"{name} (job {number}): its log has {len(got)} of {len(whole)} lines, {missing} bytes are "
                    f"missing, {lost} are said to be: {got[:2]} … {got[-2:]}")

    def check_reach(self, rounds):
        """A long run has been everywhere."""
        planned = collections.Counter(r.harm for r in rounds)
        never = sorted(harm for harm, n in planned.items() if n >= 3 and not self.fired[harm])
        self.expect(not never, f"never reached: {', '.join(never)}")

    def check_notices(self):
        """What was to be told is told: nothing waits, and the ends were heard of."""
        cl.wait_for("no notice to wait", lambda: "nightshift_notices_waiting 0\n" in self.cluster.ask("GET", "/metrics"), DRAIN_S)
        self.expect(self.hook.got, "no notice came")

    def check_no_others(self):
        known = {number for job in self.load.jobs for number in job.ids or ()}
        found = {job["id"] for job in self.listed()}
        self.expect(found <= known, f"jobs nobody was told of: {sorted(found - known)}")
        self.expect(known <= found, f"jobs that are not listed: {sorted(known - found)}")

    def check_nothing_left(self):
        def left():
            return {"processes": [p for p in cl.pids_with("CRASH_WORK", self.cluster.work) if cl.process_birth(p)],
                    "cgroups": self.cluster.cgroups(), "mounts": self.cluster.mounts(),
                    "task files": self.cluster.task_files(), "users of networks": self.cluster.network_users(), "networks": self.cluster.surplus()}
        try:
            cl.wait_for("nothing to be left", lambda: not any(left().values()))
        except AssertionError:
            self.faults.append(f"left over: { {k: v for k, v in left().items() if v} }")

    def check_agent(self):
        cl.wait_for("the machine's reports", lambda: self.agent.state()["reports"])
        node, waiting = self.agent.state(), [x for x in self.agent.commands() if x["state"] == "sent"]
        self.expect(not node["held"] and not node["pool"], f"the agent's hold outlived its release: {node}")
        self.expect(not waiting, f"commands that nobody carried out: {waiting}")

    def lies(self, job):
        """What is wrong, fields of the job, its ledger, who is to notice, and what is said then."""
        def one():
            self.check_job(job)

        others, whole = self.check_no_others, self.ledger_bytes(job)
        gone = subprocess.Popen(["true"])
        gone.wait()
        other = [10**9, *job.ids[1:]]
        return (
            ("a job that is lost", {"ids": other}, whole, one, r"accepted and is gone"),
            ("a job that is not listed", {"ids": other}, whole, others, r"not listed"),
            ("a job nobody asked for", {"ids": job.ids[:1]}, whole, others, r"nobody was told of"),
            ("a submit without an answer", {"ids": None}, whole, one, r"never answered"),
            ("a job that ran twice", {}, whole + whole, one, r"its ledger is wrong"),
            ("a job beside itself", {}, b"TWICE 1 0 1 1\n" + whole, one, r"its ledger is wrong: TWICE"),
            ("a GPU that was given twice", {}, b"GPU_TWICE 1 0 1 1\n" + whole, one, r"its ledger is wrong: GPU_TWICE"),
            ("a job that never ran", {}, b"", one, r"its ledger is wrong: it is empty"),
            ("a run of another's", {"ids": job.ids[::-1]}, whole, one, r"its ledger is wrong"),
            ("lines that are missing", {"lines": job.lines + 1}, whole, one, r"its log has"),
            ("another exit code", {"code": 9}, whole, one, r"exit code"),
            ("a process that was killed", {}, whole,
             lambda: self.check_untouched({gone.pid: (1, "nobody.0.0")}, "now"), r"was killed$"),
            ("an end that changed", {}, whole,
             lambda: self.check_kept({job.ids[0]: ("x", "failed", 1, None, 1)}, "now"), r"not as it was"))

    def ledger_bytes(self, job):
        return cl.read_file(f"{self.cluster.work}/ledger/{job.key}.0.0")

    def check_the_checks(self):
        """A record that is falsified in each way must be found to be so, or all that was checked proves nothing."""
        job = next((j for j in self.load.jobs if j.kind == "array"), None)
        if not job:
            return
        right, whole = dict(vars(job)), self.ledger_bytes(job)
        for what, fields, ledger, check, says in self.lies(job):
            vars(job).update(fields)
            self.write_ledger(job, ledger)
            check()
            vars(job).update(right)
            self.write_ledger(job, whole)
            noticed = any(re.search(says, fault) for fault in self.faults)
            self.faults = [] if noticed else [f"{what} is not noticed: {self.faults}"]
            if not noticed:
                return

    def write_ledger(self, job, text):
        with open(f"{self.cluster.work}/ledger/{job.key}.0.0", "wb") as f:
            f.write(text)

    def run(self, rounds):
        self.cluster.start()
        self.cluster.wait_ready()
        self.agent = harms.Agent(self.cluster)
        self.agent.start()
        self.operator = harms.Operator(self)
        self.cluster.ask("PUT", "/v1/notices", {"webhook": self.hook.url(), "log": False})
        for r in rounds:
            self.round(r)
        self.drain()
        self.load.stop()
        self.operator.stop()
        self.faults += self.load.faults
        for job in self.load.jobs:
            self.check_job(job)
        self.check_reach(rounds)
        self.check_notices()
        self.check_no_others()
        self.check_gpus("at the end", at_rest=True)
        self.check_agent()
        self.check_nothing_left()
        if not self.faults:
            self.check_the_checks()


def check_the_record(work):
    """What a job keeps must show a second run of it and a GPU given twice, or it proves nothing."""
    env = {"CRASH_WORK": work, "NIGHTSHIFT_JOB_ID": "1", "NIGHTSHIFT_RESTART": "0", "NIGHTSHIFT_REPLICA": "0",
           "NVIDIA_VISIBLE_DEVICES": "a,b"}
    argv = [sys.executable, "-I", "-S", f"{work}/crash_job.py"]
    ledger = f"{work}/ledger/self.0.0"
    first = subprocess.Popen([*argv, "self", "60", "1", "0", "1000"], env=env, stdout=subprocess.DEVNULL)
    try:
        cl.wait_for("the first run", lambda: os.path.exists(f"{work}/locks/gpu-b"))
        subprocess.run([*argv, "self", "0", "1", "0", "1000"], env=env, stdout=subprocess.DEVNULL, check=True)
        subprocess.run([*argv, "half", "0", "1", "0", "500"], env=env, stdout=subprocess.DEVNULL, check=True)
    finally:
        first.kill()
        first.wait()
    with open(ledger, encoding="utf-8") as f:
        what = [line.split()[0] for line in f]
    assert what == ["start", "TWICE", "start", "GPU_TWICE", "GPU_TWICE", "end"], what
    with open(f"{work}/ledger/half.0.0", encoding="utf-8") as f:
        assert [line.split()[0] for line in f] == ["start", "GPU_TWICE", "GPU_TWICE", "end"]


def tell(crash, rounds, seed, seconds, folder):
    jobs = sum(job.count for job in crash.load.jobs)
    print(f"# seed {seed}: {len(rounds)} rounds, {jobs} jobs, {crash.crossed} times a job ran across harm, "
          f"{seconds:.1f} s")
    print("# harm done: " + ", ".join(f"{name} {n}" for name, n in sorted(crash.fired.items())))
    if crash.flips:
        print("# flipped bits: " + ", ".join(f"{what} {n}" for what, n in sorted(crash.flips.items())))
    if crash.missed:
        print("# not reached in time, killed instead: " + ", ".join(sorted(crash.missed)))
    for number, (sentence, pattern) in enumerate(SENTENCES, 1):
        faults = [f for f in crash.faults if sort_of(f) == pattern]
        print(f"{'not ok' if faults else 'ok'} {number} - {sentence}")
        for fault in faults[:20]:
            print("\n".join("#   " + line for line in fault.splitlines()))
    if crash.faults:
        print(f"#   again: tests/system/t0300-crash.sh --seed {seed} --rounds {len(rounds)} --verbose")
        if folder:
            print(f"#   kept: {folder}")
    print(f"1..{len(SENTENCES)}")


# Each fault is told under the first sentence whose pattern its text has.
SENTENCES = (
    ("no GPU is given or counted twice", r"GPU"),
    ("no job runs twice, at once or after another", r"TWICE|started \d+ times|nobody was told"),
    ("running jobs are not touched", r"was killed$"),
    ("logs are complete and in order", r"its log has"),
    ("nothing is left behind", r"^left over"),
    ("every accepted job is there and ends as it should", r""),
)


def sort_of(fault):
    return next(pattern for _, pattern in SENTENCES if re.search(pattern, fault))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="harms whose name has this in it")
    parser.add_argument("--keep", action="store_true", help="keep the folder when something is wrong")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    why = cl.why_not()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    seed = args.seed if args.seed is not None else seeds.seed()
    rng = random.Random(seed)
    points = fail_points(SOURCE)
    rounds = schedule(args.rounds, rng, points)
    if args.only:
        rounds = schedule_only(args.rounds, rng, [harm for harm in [*points, *KILLS, *ALL_HARMS] if args.only in harm])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is still taken away
    cluster = cl.Cluster(["--webhooks", "any", "--notice-gather", "1s", "--notice-retry", "200ms"], state_bytes=STATE_BYTES)
    subprocess.run(["mount", "--make-shared", cluster.state], check=True)  # for harms.read_only
    crash, began = Crash(cluster, rng, args.verbose), time.monotonic()
    try:
        check_the_record(cluster.work)
        crash.run(rounds)
    except Exception:
        crash.faults.append(traceback.format_exc() + cluster.log_tail())
    finally:
        crash.load.stop()
        crash.hook.close()
        if crash.operator:
            crash.operator.stop()
        if crash.agent:
            crash.agent.stop_agents()
        keep = args.keep and bool(crash.faults)
        cluster.close(keep)
    tell(crash, rounds, seed, time.monotonic() - began, cluster.folder if keep else None)
    return bool(crash.faults)


if __name__ == "__main__":
    sys.exit(main())
