"""later_cases - jobs that begin later or start after others, on a real daemon with its keeper.

Driven by the API and by the command line; killed where it hurts.  All cases share one cluster.
"""
import datetime
import os
import re
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import windows_cases  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

SMALL = {"cpus": 1, "mem": "64Mi"}
case = Cases()


def run(c, line, **spec):
    return c.submit(["sh", "-c", line], resources=SMALL, **spec)


def says(c, *argv, program="nightshift", **env):
    """(exit code, standard output, standard error) of a command, as root on the socket."""
    done = subprocess.run([program, *argv], executable=f"{cl.BUILD}/nightshift", capture_output=True, text=True,
                          check=False, cwd=c.work, timeout=cl.PATIENCE_S,
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", **env})
    return done.returncode, done.stdout, done.stderr


def told(c, *argv, **more):
    """The output of a command that must succeed."""
    code, out, err = says(c, *argv, **more)
    assert code == 0, f"{argv}: {code} {err}"
    return out.strip()


def why(c, number):
    return c.ask("GET", f"/v1/jobs/{number}/why")["reasons"]


def now_ms():
    return time.time_ns() // 1000000


def gate(c, name):
    """A job that runs until its gate is opened, and what opens it: with 0 it succeeds, else it fails."""
    path = f"{c.work}/{name}"
    number = run(c, f"until [ -s {path} ]; do sleep 0.02; done; exit $(cat {path})", name=name,
                 volumes=[f"{c.work}:{c.work}"])
    c.wait_state(number, "running")

    def opened(code):
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            f.write(str(code))
        os.rename(f"{path}.new", path)
    return number, opened


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


# ---- begin ----

def make():
    c = cl.Cluster()
    c.clock = windows_cases.Clock(c)
    c.env["NIGHTSHIFT_TEST_CLOCK"] = c.clock.path
    return c


@case("a job begins at its time and not before, by itself, and says so while it waits")
def _(c):
    at = c.clock.now_ms() + 600_000
    number = run(c, "true", begin=at)
    job = c.job(number)
    same((job["state"], job["reason"], job["begin_ms"], job["after"]), ("queued", "begin", at, []))
    same(job["spec"]["begin"][:19], datetime.datetime.fromtimestamp(at // 1000, datetime.timezone.utc)
         .strftime("%Y-%m-%dT%H:%M:%S"))
    reason = why(c, number)[0]
    same(reason["code"], "begin")
    assert reason["text"].startswith("it begins not before 20"), reason
    c.clock.turn_to(at - 1500)
    job = c.wait_end(number)
    same((job["state"], job["begin_ms"], job["reason"]), ("succeeded", None, None))
    assert at <= job["started_ms"], (at, job["started_ms"])


@case("a job whose time has come while the daemon was dead begins when it is back, another still waits")
def _(c):
    at = c.clock.now_ms() + 600_000
    soon, late = run(c, "true", begin=at), run(c, "true", begin=at + 3600_000)
    c.kill_daemon()
    c.clock.turn_to(at)
    c.start()
    c.wait_ready()
    same(c.wait_end(soon)["state"], "succeeded")
    same((c.job(late)["state"], c.job(late)["reason"]), ("queued", "begin"))
    c.ask("POST", f"/v1/jobs/{late}/cancel", {})
    same(c.wait_end(late)["state"], "cancelled")


@case("the command line reads times of here; files and options say the same; ps, show and why tell")
def _(c):
    number = told(c, "run", "-d", "--begin", "2100-07-01 14:30", "--", "true", TZ="CET-1CEST,M3.5.0,M10.5.0/3")
    same(c.job(number)["spec"]["begin"], "2100-07-01T12:30:00Z")
    assert "its time to begin has not come yet" in told(c, "ps"), told(c, "ps")
    shown = told(c, "show", number, TZ="UTC")
    assert re.search(r"\nbegin      2100-07-01T12:30:00  \(in \d+d", shown), shown
    assert "it begins not before 2100-07-01T12:30:00, in " in told(c, "why", number, TZ="UTC")
    with open(f"{c.work}/job.yaml", "w", encoding="utf-8") as f:
        f.write("command: 'true'\nbegin: 2100-07-01 14:30\n")
    file = told(c, "submit", "-o", "name", "job.yaml", TZ="UTC")
    same(c.job(file)["spec"]["begin"], "2100-07-01T14:30:00Z")
    before = now_ms()
    option = told(c, "submit", "-o", "name", "job.yaml", "--begin", "now+2h")
    assert before + 7200000 - 1 <= c.job(option)["begin_ms"] <= now_ms() + 7200000
    code, _, err = says(c, "run", "--begin", "tomorrow", "--", "true")
    same(code, 2)
    assert "--begin: 'tomorrow' is no time to begin" in err and "hint: write now+2h" in err, err
    for n in (number, file, option):
        c.ask("POST", f"/v1/jobs/{n}/cancel", {})


# ---- after ----

@case("a job starts after another has succeeded, failed or ended, and never beside it")
def _(c):
    good, let_good = gate(c, "good")
    bad, let_bad = gate(c, "bad")
    waits = [run(c, "true", after=[good, f"any:{bad}"]), run(c, "true", after=[f"bad:{bad}"]),
             run(c, "true", after=f"any:{good}")]
    job = c.job(waits[0])
    same((job["state"], job["reason"], job["after"]), ("queued", "after", [f"ok:{good}", f"any:{bad}"]))
    same(why(c, waits[0]), [{"code": "after", "text": f"it starts after job {good} has succeeded"},
                            {"code": "after", "text": f"it starts after job {bad} has ended"}])
    let_good(0)
    same(c.wait_end(waits[2])["state"], "succeeded")
    same(c.job(waits[0])["after"], [f"any:{bad}"])
    let_bad(7)
    for number in waits[:2]:
        job = c.wait_end(number)
        same(job["state"], "succeeded")
        assert job["started_ms"] >= c.job(bad)["ended_ms"], job


@case("run stays with a job that waits for another, and tells why it was cancelled")
def _(c):
    first, let = gate(c, "stays")
    with subprocess.Popen([f"{cl.BUILD}/nightshift", "run", "--name", "stayed", "--after", str(first), "--", "true"],
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"}, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True) as p:
        number = wait_for("the job", lambda: [j["id"] for j in c.ask("GET", "/v1/jobs?name=stayed")["jobs"]])[0]
        let(1)
        err = p.communicate(timeout=cl.PATIENCE_S)[1]
    sentence = f"it was to start after job {first} had succeeded, which failed"
    assert p.returncode != 0 and sentence in err, (p.returncode, err)
    same(told(c, "why", str(number)), f"job {number} is cancelled:\n  - {sentence}")


@case("a job named after may be one that has ended: met, or refused by name")
def _(c):
    good, bad = run(c, "true"), run(c, "exit 1")
    c.wait_end(good)
    c.wait_end(bad)
    same(c.wait_end(run(c, "true", after=[good, f"bad:{bad}"]))["state"], "succeeded")
    status, problem = c.call("POST", "/v1/jobs", {"command": ["true"], "after": [bad]})
    same((status, problem["field"]), (409, "after"))
    same(problem["detail"], f"field 'after': job {bad} has failed: a job that starts after its success could never "
                            "start")
    status, problem = c.call("POST", "/v1/jobs", {"command": ["true"], "after": [987654321]})
    same((status, problem["field"]), (400, "after"))
    status, problem = c.call("POST", "/v1/jobs", {"jobs": [{"command": ["true"]}, {"command": ["x"], "after": [bad]}]})
    same((status, problem["field"]), (409, "jobs[1].after"))


@case("an array's number is all of it, and one of its jobs is itself")
def _(c):
    path = f"{c.work}/array"
    array = c.submit(["sh", "-c", f"[ $NIGHTSHIFT_ARRAY_INDEX = 1 ] || until [ -e {path} ]; do sleep 0.02; done"],
                     array="0-3", resources=SMALL, volumes=[f"{c.work}:{c.work}"])
    whole = told(c, "run", "-d", "--after", f"ok:{array}", "--", "true")
    one = told(c, "run", "-d", "--after", f"{array}_1", "--", "true")
    same(c.job(one)["spec"]["after"], [f"ok:{array + 1}"])
    same(c.wait_end(one)["state"], "succeeded")
    assert "it starts after jobs" in why(c, whole)[0]["text"] and "3 have not ended" in why(c, whole)[0]["text"]
    with open(path, "w", encoding="utf-8"):
        pass
    same(c.wait_end(whole)["state"], "succeeded")


@case("Slurm's words: --dependency, --begin, and the reasons of squeue")
def _(c):
    first, let = gate(c, "slurm")
    second = told(c, "--parsable", f"--dependency=afterok:{first},afterany:{first}", "--wrap", "true", program="sbatch")
    third = told(c, "--parsable", "-d", f"afternotok:{first}:{second}", "--wrap", "true", program="sbatch")
    timed = told(c, "--parsable", "--begin=now+1hour", "--wrap", "true", program="sbatch")
    rows = dict(line.split() for line in told(c, "-h", "-o", "%i %r", program="squeue").splitlines())
    same((rows[second], rows[third], rows[timed]), ("Dependency", "Dependency", "BeginTime"))
    same(c.job(third)["after"], [f"bad:{first}", f"bad:{second}"])
    for text, part in ((f"after:{first}", "'after' is not supported"), ("singleton", "'singleton' is not supported"),
                       (f"afterok:{first}?afterok:{second}", "'?' is not supported")):
        code, _, err = says(c, f"--dependency={text}", "--wrap", "true", program="sbatch")
        same(code, 2)
        assert f"--dependency: {part}" in err and "hint:" in err, err
    let(0)
    same(c.wait_end(int(second))["state"], "succeeded")
    same(c.wait_end(int(third))["end"], "after_unmet")
    same(told(c, timed, program="scancel"), "")


# ---- the daemon dies ----

@case("what was answered is there after kill -9: a time, other jobs, a hold beside them")
def _(c):
    first, let = gate(c, "kill")
    at = c.clock.now_ms() + 3600000
    waits = run(c, "true", after=[first])
    held = run(c, "true", after=[first], held=True)
    timed = run(c, "true", after=[f"any:{first}"], begin=at)
    restart(c)
    job = c.job(timed)
    same((job["begin_ms"], job["after"], job["reason"]), (at, [f"any:{first}"], "after"))
    same(c.job(waits)["after"], [f"ok:{first}"])
    same((c.job(held)["state"], c.job(held)["reason"]), ("held", "held"))
    let(0)
    same(c.wait_end(waits)["state"], "succeeded")
    same((c.job(held)["state"], c.job(timed)["reason"]), ("held", "begin"))
    c.ask("POST", f"/v1/jobs/{held}/release", {})
    same(c.wait_end(held)["state"], "succeeded")
    c.ask("POST", f"/v1/jobs/{timed}/cancel", {})


@case("what it waits for ends while the daemon is dead: it starts, or is cancelled, when that is back")
def _(c):
    good, let_good = gate(c, "down-good")
    bad, let_bad = gate(c, "down-bad")
    starts, never = run(c, "true", after=[good]), run(c, "true", after=[bad])
    next_one = run(c, "true", after=[never])
    c.kill_daemon()
    let_good(0)
    let_bad(1)
    for number in (good, bad):
        wait_for("their end", lambda n=number: not c.job_pids(n))
    c.start()
    c.wait_ready()
    same(c.wait_end(starts)["state"], "succeeded")
    same(c.wait_end(never)["message"], f"it was to start after job {bad} had succeeded, which failed")
    same(c.wait_end(next_one)["end"], "after_unmet")
    restart(c)
    same(c.job(next_one)["end"], "after_unmet")


@case("the daemon dies between deciding, writing and acting: each time the chain goes on once")
def _(c):
    died = 0
    for point in [f"control.{step}:{n}" for step in ("decided", "durable", "acted") for n in (2, 3, 4)]:
        name = f"point-{point.replace(':', '-')}"
        first, let = gate(c, name)
        out = f"{c.work}/{name}.out"
        then = run(c, f"echo x >>{out}", after=[first], volumes=[f"{c.work}:{c.work}"])
        c.kill_daemon()
        c.start(failpoint=point)
        wait_for("its death, or its readiness", lambda: c.daemon.poll() is not None or c.is_ready())
        let(0)

        def dead_or_done(number=then):
            try:
                return c.daemon.poll() is not None or c.job(number)["state"] == "succeeded"
            except cl.Away:
                return False
        wait_for("its death, or the end of the chain", dead_or_done)
        if c.daemon.poll() is not None:
            died += 1
        else:
            c.kill_daemon()  # else it may die at any later commit
        c.start()
        c.wait_ready()
        same(c.wait_end(then)["state"], "succeeded")
        with open(out, encoding="utf-8") as f:
            same((point, f.read()), (point, "x\n"))
    assert died >= 6, died


@case("the journal of all this replays to the same decisions")
def _(c):
    with sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True) as db:
        lines = [row[0] for row in db.execute("SELECT line FROM journal ORDER BY seq")]
        same(db.execute("SELECT count(*) FROM journal_segment").fetchone()[0], 1)
    assert any('"after":' in line for line in lines) and any('"begin_ms":' in line for line in lines)
    with open(f"{c.folder}/all.journal", "w", encoding="utf-8") as f:
        f.write("\n".join(['{"journal":"nightshift","version":1}', *lines, ""]))
    subprocess.run([f"{cl.BUILD}/nightshift-sim", "verify", "--journal", f.name], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(case.together(make))
