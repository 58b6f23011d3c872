"""take_cases - taking back on a real daemon with its keeper: one tenant has all GPUs, another comes.

The jobs count and write every number down once; what is taken back saves the last one and goes on behind it, so
that a number that is missing or there twice is work that was lost or done again.  All cases share one cluster.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

GPUS = 4
TAKEN = "taken back: it is another job's turn; it goes on by itself"
SETTINGS = """
tenants: { vision: {}, speech: {} }
policy: { min_run: 500ms, thaw_run: 2s, review: 300ms }
"""
# Counts until it is let go; asked to save itself it waits for leave, if there is a file that says so.
COUNTER = """
n=$(cat {at}.saved 2>/dev/null || echo 0)
trap 'asked=1' USR1
until [ -e {at}.go ]; do
    n=$((n + 1)); echo $n >>{at}.numbers
    if [ "$asked" ]; then
        echo x >>{at}.asked
        while [ -e {at}.slow ]; do sleep 0.02; done
        echo $n >{at}.new && mv {at}.new {at}.saved && exit 85
    fi
    sleep 0.02
done
"""
case = Cases()


def make():
    c = cl.Cluster()
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


class Job:
    """One that counts, in a tenant."""
    def __init__(self, c, name, tenant, script=COUNTER, grace="5m", mode="signal"):
        self.c, self.at = c, f"{c.work}/{name}"
        self.number = c.submit(["sh", "-c", script.format(at=self.at)], name=name, tenant=tenant,
                               resources={"gpus": 1, "cpus": 1, "mem": "64Mi"}, volumes=[f"{c.work}:{c.work}"],
                               freeze={"mode": mode, "signal": "USR1", "grace": grace})

    def state(self):
        return self.c.job(self.number)["state"]

    def has(self, what):
        return os.path.exists(f"{self.at}.{what}")

    def let_go(self):
        touch(f"{self.at}.go")

    def numbers(self):
        if not self.has("numbers"):
            return []  # it was let go before it began
        with open(f"{self.at}.numbers", encoding="utf-8") as f:
            return [int(line) for line in f]

    def check_nothing_lost(self):
        same(self.c.wait_end(self.number)["state"], "succeeded")
        numbers = self.numbers()
        same(numbers, list(range(1, len(numbers) + 1)))


def fill(c, name, tenant="vision", **more):
    """Jobs on all GPUs that have begun to count."""
    jobs = [Job(c, f"{name}-{i}", tenant, **more) for i in range(GPUS)]
    for job in jobs:
        wait_for(f"{job.at} to count", lambda job=job: job.has("numbers"))
        c.wait_state(job.number, "running")
    return jobs


def in_state(jobs, *states):
    return [job for job in jobs if job.state() in states]


def victims(jobs, n, *states):
    """The first n of them that come into one of the states at once."""
    return wait_for(f"{n} jobs to be {' or '.join(states)}",
                    lambda: (lambda found: found if len(found) >= n else None)(in_state(jobs, *states)))


def finish(*jobs):
    for job in jobs:
        job.let_go()
    for job in jobs:
        job.check_nothing_lost()


def metric(c, name):
    return float(re.search(rf"^nightshift_{name} (\S+)$", c.ask("GET", "/metrics"), re.M).group(1))


def says(c, *argv):
    done = subprocess.run([f"{cl.BUILD}/nightshift", *argv], capture_output=True, text=True, check=True,
                          timeout=cl.PATIENCE_S,
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", "COLUMNS": "200"})
    return done.stdout


def cancel_all(c):
    if c.daemon.poll() is not None or not c.is_ready():
        restart(c)
    living = "/v1/jobs?state=held,queued,starting,running,freezing,frozen,paused,thawing,stopping"
    for job in c.ask("GET", living)["jobs"]:
        c.call("POST", f"/v1/jobs/{job['id']}/cancel")
    wait_for("all to be over", lambda: not c.ask("GET", living)["jobs"])


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


# ---- what people see ----

@case("a tenant that comes gets its half, and what was taken for it goes on from where it was")
def _(c):
    ours = fill(c, "half")
    before = {job.number: len(job.numbers()) for job in ours}
    theirs = [Job(c, f"half-other-{i}", "speech") for i in range(2)]
    victims(theirs, 2, "running")
    frozen = in_state(ours, "frozen")
    assert len(frozen) == 2, [(job.number, job.state()) for job in ours]
    assert all(job.numbers()[-1] > before[job.number] for job in frozen)
    finish(*theirs)
    for job in frozen:
        c.wait_state(job.number, "running")
        assert c.job(job.number)["run"] >= 2 and c.job(job.number)["message"] == "", c.job(job.number)
    finish(*ours)


@case("ps, show, why and the events say what happened to a job that was taken back")
def _(c):
    ours = fill(c, "say")
    other = Job(c, "say-other", "speech")
    victim = victims(ours, 1, "frozen")[0]
    same(c.job(victim.number)["message"], TAKEN)
    line = [row for row in says(c, "ps").splitlines() if row.split()[0] == str(victim.number)][0]
    assert "frozen" in line and TAKEN in line, line
    assert TAKEN in says(c, "show", str(victim.number))
    assert TAKEN in says(c, "why", str(victim.number))
    events = [json.loads(row) for row in says(c, "events", "--job", str(victim.number), "-o", "json").splitlines()]
    assert any(e["state"] == "freezing" and e.get("message") == TAKEN for e in events), events
    assert "min_run 500ms" in says(c, "status")
    assert metric(c, "taken_total") >= 1
    finish(other, *ours)


@case("jobs that keep their GPU memory, or cannot be frozen, are left alone")
def _(c):
    for mode in ("pause", "none"):
        ours = fill(c, f"keep-{mode}", mode=mode)
        taken, passes = metric(c, "taken_total"), metric(c, "passes_total")
        other = Job(c, f"keep-{mode}-other", "speech")
        wait_for("some looks at it", lambda passes=passes: metric(c, "passes_total") >= passes + 10)
        same((other.state(), metric(c, "taken_total")), ("queued", taken))
        finish(*ours, other)


@case("a job that does not save itself in time is started again, and says so")
def _(c):
    deaf = COUNTER.replace("trap 'asked=1' USR1", "trap '' USR1")
    ours = [Job(c, f"deaf-{i}", "vision", script=deaf, grace="1s") for i in range(1)]
    ours += [Job(c, f"deaf-keep-{i}", "vision", mode="none") for i in range(GPUS - 1)]
    for job in ours:
        c.wait_state(job.number, "running")
    other = Job(c, "deaf-other", "speech")
    c.wait_state(other.number, "running")
    job = c.wait_state(ours[0].number, "queued", "starting", "running")
    if job["state"] == "queued":
        same(job["message"], "it did not save itself in time when it was taken back; "
                             "it starts again from what it had saved before")
    finish(other)
    job = c.wait_state(ours[0].number, "running")
    same(job["run"], 2)
    ours[0].let_go()
    same(c.wait_end(ours[0].number)["state"], "succeeded")
    finish(*ours[1:])


# ---- crashes ----

def being_taken(c, name):
    """All GPUs of one tenant, a job of the other, and the one that saves itself for it until it may be done."""
    ours = fill(c, name)
    for job in ours:
        touch(f"{job.at}.slow")
    other = Job(c, f"{name}-other", "speech")
    victim = victims(ours, 1, "freezing")[0]
    wait_for("its being asked", lambda: victim.has("asked"))
    return ours, other, victim


def let_save(ours):
    for job in ours:
        os.unlink(f"{job.at}.slow")


@case("daemon and keeper die while a job saves itself: it is known why, and it goes on afterwards")
def _(c):
    ours, other, victim = being_taken(c, "die")
    restart(c)
    same((victim.state(), c.job(victim.number)["message"]), ("freezing", TAKEN))
    status, answer = c.call("POST", f"/v1/jobs/{victim.number}/freeze")
    same(status, 409)
    assert "being taken back" in answer["detail"], answer
    c.kill_keeper()
    c.wait_ready()
    same(victim.state(), "freezing")
    let_save(ours)
    c.wait_state(other.number, "running")
    finish(other, *ours)


@case("a job that has saved itself while the daemon was dead is frozen when it is back, and goes on")
def _(c):
    ours, other, victim = being_taken(c, "away")
    c.kill_daemon()
    let_save(ours)
    wait_for("its end", lambda: not c.job_pids(victim.number))
    c.start()
    c.wait_ready()
    c.wait_state(other.number, "running")
    finish(other, *ours)


@case("the daemon dies between deciding, writing and acting: each time nothing is lost")
def _(c):
    died = 0
    for point in [f"control.{step}:{n}" for step in ("decided", "durable", "acted") for n in (4, 5, 6, 7)]:
        name = f"point-{point.replace(':', '-')}"
        ours = fill(c, name)
        c.kill_daemon()
        c.start(failpoint=point)
        wait_for("its death, or its readiness", lambda: c.daemon.poll() is not None or c.is_ready())
        other = None
        if c.daemon.poll() is None:
            try:
                other = Job(c, f"{name}-other", "speech")
            except cl.Away:
                pass  # it may have been taken or not: its name says so

        def dead_or_done(job=other):
            try:
                return c.daemon.poll() is not None or (job and job.state() == "running")
            except cl.Away:
                return False
        wait_for("its death, or the other's start", dead_or_done)
        if c.daemon.poll() is not None:
            died += 1
        else:
            c.kill_daemon()  # else it may die at any later commit
        c.start()
        c.wait_ready()
        if not other:
            other = Job(c, f"{name}-again", "speech")
        touch(f"{c.work}/{name}-other.go")
        c.wait_state(other.number, "running", "succeeded")
        finish(other, *ours)
    assert died >= 6, died


@case("the keeper dies at every step of the end of a job that saved itself: it goes on")
def _(c):
    for point in ("program_over", "before_result", "after_result", "before_ended"):
        name = f"keeper-{point}"
        ours, other, _ = being_taken(c, name)
        c.keeper_failpoint(f"keeper.{point}:1")
        c.kill_keeper()
        pid = wait_for("the next one", c.keeper_pid)
        c.wait_ready()
        let_save(ours)
        wait_for("its death", lambda pid=pid: cl.process_birth(pid) is None)
        c.wait_state(other.number, "running")
        finish(other, *ours)


@case("the journal of all this replays to the same decisions")
def _(c):
    with sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True) as db:
        lines = [row[0] for row in db.execute("SELECT line FROM journal ORDER BY seq")]
        same(db.execute("SELECT count(*) FROM journal_segment").fetchone()[0], 1)
    for kind in ("take", "promise"):
        assert any(f'"ev":"{kind}"' in line for line in lines), kind
    with open(f"{c.folder}/all.journal", "w", encoding="utf-8") as f:
        f.write("\n".join(['{"journal":"nightshift","version":1}', *lines, ""]))
    done = subprocess.run([f"{cl.BUILD}/nightshift-sim", "verify", "--journal", f.name], check=False,
                          capture_output=True, text=True)
    same((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    sys.exit(case.together(make, repair=cancel_all))
