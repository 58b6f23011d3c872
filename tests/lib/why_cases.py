"""why_cases - why a job waits, and waited: on a real daemon, now and from its journal.

What `why` said while a job waited is what it says of that moment later, to the letter: whatever happened since, and
after a restart.  All cases share one cluster.
"""
import datetime
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

GPUS = 4
MEMBER, STRANGER = 20001, 20002
SETTINGS = f"""
tenants:
  vision: {{ members: [root, uid-{MEMBER}] }}
  speech: {{ members: [uid-{STRANGER}] }}
default_tenant: vision
"""
case = Cases()


def make():
    c = cl.Cluster()
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


def cancel_all(c):
    for job in c.ask("GET", "/v1/jobs")["jobs"]:
        c.call("POST", f"/v1/jobs/{job['id']}/cancel")
        c.wait_end(job["id"])


def sleeper(c, gpus, uid=0, **spec):
    return c.submit(["sleep", "600"], uid=uid, resources={"gpus": gpus, "cpus": 1, "mem": "64Mi"}, **spec)


def why(c, number, at_ms=None, uid=0):
    return c.ask("GET", f"/v1/jobs/{number}/why" + (f"?at_ms={at_ms}" if at_ms else ""), uid=uid)


def why_now(c, number):
    """What it says, and of which time that is: it says how long the job has waited."""
    said = why(c, number)
    return said, c.job(number)["submitted_ms"] + said["waited_ms"]


def end(c, number):
    c.ask("POST", f"/v1/jobs/{number}/cancel")
    return c.wait_end(number)


def told(c, *argv):
    """(exit code, standard output, standard error) of a command, as root on the socket."""
    done = subprocess.run(["nightshift", *argv], executable=f"{cl.BUILD}/nightshift", capture_output=True, text=True,
                          check=False, cwd=c.work, timeout=cl.PATIENCE_S,
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", "TZ": "UTC"})
    return done.returncode, done.stdout, done.stderr


def date(t_ms):
    return datetime.datetime.fromtimestamp(t_ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def now_ms():
    return time.time_ns() // 1000000


def tick():
    """What happens next is later than what was, in milliseconds; gives a time between the two."""
    began = now_ms()
    cl.wait_for("the clock", lambda: now_ms() > began + 1)
    return began + 1


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


class Story:
    """One job has all GPUs; a second waits for it; the first ends, and the second runs, and ends."""
    def __init__(self, c):
        cancel_all(c)
        self.first = sleeper(c, GPUS, name="first")
        c.wait_state(self.first, "running")
        self.second = sleeper(c, 2, name="second")
        self.third = sleeper(c, 1, name="third")
        self.said, self.at_ms = why_now(c, self.second)
        while "starts" not in self.said:  # a pass has looked at it
            self.said, self.at_ms = why_now(c, self.second)
        tick()
        end(c, self.first)
        c.wait_state(self.second, "running")
        self.ran_ms = tick()
        self.ended = end(c, self.second)


# ---- before it is submitted ----

def foreseen(c, gpus, **spec):
    """What would become of such a job; asked again where the daemon was too busy to say."""
    body = {"command": ["sleep", "600"], "resources": {"gpus": gpus, "cpus": 1, "mem": "64Mi"}, **spec}

    def known():
        said = c.ask("POST", "/v1/jobs/check", body)
        return said if said["starts_now"] is not None else None
    return cl.wait_for("the daemon to say", known)


@case("before it is submitted a job is said to start at once, or when and why not sooner, as it then is; nothing is changed")
def _(c):
    cancel_all(c)
    before = c.ask("GET", "/v1/jobs")["jobs"]
    same(foreseen(c, GPUS), {"ok": True, "starts_now": True})
    same(told(c, "run", "--dry-run", "--gpus", "1", "--", "true"), (0, "it would start now\n", ""))
    first = sleeper(c, GPUS, name="first", max_time="1h")
    c.wait_state(first, "running")
    asked_ms = now_ms()
    said = foreseen(c, 2)
    same((said["starts_now"], said["reasons"][0]["code"]), (False, "gpus_busy"))
    assert said["starts"]["p90_ms"] >= said["starts"]["p50_ms"] > now_ms(), said
    code, text, _ = told(c, "run", "--dry-run", "--gpus", "2", "--", "true")
    assert code == 0 and text.startswith("it would wait: ") and "it would start in about" in text, text
    same(foreseen(c, 0)["starts_now"], True)
    same(foreseen(c, 1, held=True)["starts_now"], False)
    same(len(c.ask("GET", "/v1/jobs")["jobs"]), len(before) + 1)
    second = sleeper(c, 2, name="second")
    same(second, first + 1)
    really = cl.wait_for("a pass has looked at it", lambda: next((w for w in [why(c, second)] if "starts" in w), None))
    same([r["code"] for r in really["reasons"]], [r["code"] for r in said["reasons"]])
    between_ms = now_ms() - asked_ms  # what was foreseen moves on with the time
    assert abs(really["starts"]["p50_ms"] - said["starts"]["p50_ms"]) <= between_ms + 60_000, (really, said)
    cancel_all(c)


# ---- the journal ----

@case("what why said while it waited is what it says of that time later")
def _(c):
    s = Story(c)
    same([r["code"] for r in s.said["reasons"]], ["gpus_busy"])
    for _ in range(2):
        then = why(c, s.second, s.at_ms)
        instead = then.pop("instead")
        same(then.pop("at_ms"), s.at_ms)
        same(then, s.said)
        same(([job["id"] for job in instead["jobs"]], instead["others"]), ([s.first], 0))
        same((instead["jobs"][0]["name"], instead["jobs"][0]["gpu_milli"]), ("first", GPUS * 1000))
        restart(c)


# ---- the command ----

@case("the command refuses with what can be asked")
def _(c):
    s = Story(c)
    for words, exit_code, wanted in (("2000-01-01", 5, "was not there at 2000-01-01"), ("soon", 2, "yesterday 14:00"),
                                     ("2999-01-01T00:00:00Z", 5, "is in the future")):
        code, out, err = told(c, "why", str(s.second), "--at", words)
        same((code, out), (exit_code, ""))
        assert wanted in err, err


@case("the command says who had the machines")
def _(c):
    cancel_all(c)
    first = sleeper(c, GPUS, name="first")
    c.wait_state(first, "running")
    second = sleeper(c, 2)
    at_ms = c.job(second)["submitted_ms"] + 1000
    cl.wait_for("a second to pass", lambda: now_ms() > at_ms + 1000)
    code, out, err = told(c, "why", str(second), "--at", date(at_ms) + "Z")
    same((code, err), (0, ""))
    lines = out.splitlines()
    assert lines[0].startswith(f"job {second} was queued at {date(at_ms)}"), out
    same(lines[1], "  - needs 2 GPUs; 0 free now, at most 0 on one machine")
    same(lines[-2:], ["On the machines that could run it were", f"  - job {first} first of root (vision), 4 GPUs"])


if __name__ == "__main__":
    sys.exit(case.together(make, repair=cancel_all))
