"""windows_cases - machines that are lent at times, on a real daemon with its keeper.

The daemon's clock is turned by the file that NIGHTSHIFT_TEST_CLOCK names, so hours pass at once; where something has to
happen in time, it stands meanwhile.  Whether a job still runs on the machine is asked of /proc and not of the daemon.  Jobs count,
and write every number down once: a number that is missing or there twice is work that was lost or done again.
"""
import datetime
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402
from take_cases import Job, cancel_all, says, touch  # noqa: E402

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
GIVEN_BACK = "taken back: its machine is given back; it goes on by itself"
SETTINGS = """
tenants: { vision: {} }
pools:
  annex: { window: "zone=UTC; Sat-Sun 00:00-24:00", nodes: ["annex[1-2]"] }
"""
case = Cases()


# ---- time ----

class Clock:
    """The daemon's: ahead of ours by what its file says, or it stands."""
    def __init__(self, c):
        self.path, self.ahead_ms, self.stands_ms = f"{c.folder}/clock", 0, None

    def now_ms(self):
        return self.stands_ms or int(time.time() * 1000) + self.ahead_ms

    def turn_to(self, t_ms):
        """From there it goes on."""
        self.ahead_ms, self.stands_ms = t_ms - int(time.time() * 1000), None
        self._write(str(self.ahead_ms))

    def stand_at(self, t_ms):
        """What happens now happens at that time, on however slow a machine."""
        self.stands_ms = t_ms
        self._write(f"={t_ms}")

    def _write(self, text):
        with open(f"{self.path}.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f"{self.path}.new", self.path)


def make(settings=SETTINGS):
    c = cl.Cluster()
    c.clock = Clock(c)
    c.env["NIGHTSHIFT_TEST_CLOCK"] = c.clock.path
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(settings)
    return c


def look(c):
    """Somebody does something, so the daemon looks at its clock now and not within ten seconds."""
    c.ask("POST", "/v1/pools/annex/regular", {})


def clock_text(t_ms):
    return datetime.datetime.fromtimestamp(t_ms / 1000, datetime.timezone.utc).strftime("%H:%M")


def machine(c):
    return c.ask("GET", "/v1/nodes")["nodes"][0]


def put(c, name, **body):
    return c.call("PUT", f"/v1/pools/{name}", body)


def lend(c, minutes=60, closed_minutes=120):
    """The machine is lent until so many minutes from now, every day, and closed for some time then.  Returns when it
    closes and when it opens again."""
    closes_ms = c.clock.now_ms() // MINUTE_MS * MINUTE_MS + minutes * MINUTE_MS
    opens_ms = closes_ms + closed_minutes * MINUTE_MS
    status, pool = put(c, "desks", window=f"Mon-Sun {clock_text(opens_ms)}-{clock_text(closes_ms)}",
                       nodes=[machine(c)["name"], "pc[1-2]"])
    same((status, pool["open"], pool["until_ms"]), (200, True, closes_ms))
    return closes_ms, opens_ms


def running(job):
    return job.c.job_pids(job.number)


def counts(c, name, grace="10s", tenant="vision"):
    job = Job(c, name, tenant, grace=grace)
    wait_for(f"{name} to count", lambda: job.has("numbers"))
    c.wait_state(job.number, "running")
    assert running(job), "it counts, so it has processes"
    return job


def wait_gone(job, closes_ms):
    """Nothing of it runs any more, and the window was open still when that was so."""
    wait_for("nothing of it to run", lambda: not running(job))
    assert job.c.clock.now_ms() < closes_ms, "it left too late"


def finish(job):
    job.let_go()
    job.check_nothing_lost()


# ---- the end of a window ----

@case("a job that can save itself leaves before the window ends, and goes on by itself in the next")
def _(c):
    closes_ms, opens_ms = lend(c)
    job = counts(c, "night")
    for early_ms in (60_000, 32_000):
        c.clock.stand_at(closes_ms - early_ms)
        look(c)
        assert running(job) and job.state() == "running", "half a minute is enough for it"
    c.clock.stand_at(closes_ms - 29_000)
    c.wait_state(job.number, "freezing", "frozen")
    wait_gone(job, closes_ms)
    same(c.wait_state(job.number, "frozen")["message"], GIVEN_BACK)
    c.clock.turn_to(closes_ms + 1000)
    look(c)
    same((machine(c)["open"], machine(c)["until_ms"], running(job), job.state()), (False, opens_ms, [], "frozen"))
    last = job.numbers()[-1]
    c.clock.turn_to(opens_ms - 1500)  # it opens by itself: nobody does anything
    c.wait_state(job.number, "running")
    assert c.clock.now_ms() >= opens_ms
    wait_for("it to count on", lambda: job.numbers()[-1] > last)
    finish(job)


@case("the daemon is killed while the window closes: the job leaves in time all the same")
def _(c):
    closes_ms, opens_ms = lend(c)
    job = counts(c, "killed")
    touch(f"{job.at}.slow")
    c.clock.stand_at(closes_ms - 29_000)
    look(c)
    wait_for("its being asked", lambda: job.has("asked"))
    c.kill_daemon()
    os.unlink(f"{job.at}.slow")
    c.start()
    c.wait_ready()
    wait_gone(job, closes_ms)
    same(c.wait_state(job.number, "frozen")["message"], GIVEN_BACK)
    c.clock.turn_to(opens_ms + 1000)
    look(c)
    c.wait_state(job.number, "running")
    finish(job)


@case("a job that does not save itself is ended before the window is")
def _(c):
    closes_ms, opens_ms = lend(c)
    job = counts(c, "deaf", grace="2m")  # it would have two minutes at any other time
    touch(f"{job.at}.slow")
    c.clock.stand_at(closes_ms - 9_000)
    look(c)
    wait_for("its being asked", lambda: job.has("asked"))
    wait_gone(job, closes_ms)
    assert "did not save itself in time" in c.wait_state(job.number, "queued")["message"]
    os.unlink(f"{job.at}.slow")
    c.clock.turn_to(opens_ms + 1000)
    look(c)
    c.wait_state(job.number, "running")
    job.let_go()
    same(c.wait_end(job.number)["state"], "succeeded")


# ---- what starts ----

@case("what cannot be frozen and has no limit does not start there, and why says what would help")
def _(c):
    closes_ms, _opens_ms = lend(c)
    stays = c.submit(["sleep", "600"], resources={"gpus": 1}, freeze={"mode": "none"})
    ends = c.submit(["sleep", "600"], resources={"gpus": 1}, freeze={"mode": "none"}, max_time="20m")
    saves = c.submit(["sleep", "600"], resources={"gpus": 1}, freeze={"mode": "signal"})
    c.wait_state(ends, "running")
    c.wait_state(saves, "running")
    same(c.job(stays)["state"], "queued")
    why = c.ask("GET", f"/v1/jobs/{stays}/why")
    same([r["code"] for r in why["reasons"]][:1], ["window"])
    at = datetime.datetime.fromtimestamp(closes_ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M")
    assert at in why["reasons"][0]["text"], why
    assert {"max_time", "freeze"} <= {h["code"] for h in why["helps"]}, why
    words = says(c, "why", str(stays))
    assert "time limit of" in words and "let it be frozen" in words, words
    pool = c.ask("GET", "/v1/pools/desks")
    same({j["id"]: j["leaves"] for j in pool["jobs"]}, {ends: "ends", saves: "frozen"})
    shown = says(c, "pools", "show", "desks")
    assert "ends by its limit" in shown and "is frozen" in shown and "pc2: has not come yet" in shown, shown
    cancel_all(c)


# ---- closing for a while ----

@case("a pool that is closed at once freezes what can be, and names what goes on to its end")
def _(c):
    same(put(c, "desks", window="", nodes=[machine(c)["name"]])[0], 200)
    job = counts(c, "tournament")
    stays = c.submit(["sleep", "600"], resources={"gpus": 1}, freeze={"mode": "none"})
    c.wait_state(stays, "running")
    said = says(c, "pools", "close", "desks", "--for", "3h")
    assert "closed until" in said and f"{stays} root sleep" in said and "goes on to its end" in said, said
    wait_for("nothing of it to run", lambda: not running(job))
    same(c.wait_state(job.number, "frozen")["message"], GIVEN_BACK)
    same(c.job(stays)["state"], "running")
    assert "closed until" in says(c, "nodes"), says(c, "nodes")
    queued = c.submit(["true"], resources={"gpus": 1})
    assert "is lent from" in says(c, "why", str(queued))
    said = says(c, "pools", "regular", "desks")
    assert said.startswith("desks: open\n"), said
    c.wait_state(job.number, "running")
    same(c.wait_end(queued)["state"], "succeeded")
    finish(job)
    cancel_all(c)


@case("pools are listed, changed and removed, and who changed them is told")
def _(c):
    lend(c)
    rows = says(c, "pools").splitlines()
    same(rows[0].split(), ["POOL", "NODES", "GPUS", "NOW", "UNTIL", "WINDOW"])
    same([row.split()[:4] for row in rows[1:]], [["annex", "2", "0", "closed" if weekday(c) else "open"],
                                                 ["desks", "3", "4", "open"]])
    same(says(c, "pools", "-o", "name").split(), ["annex", "desks"])
    same([p["name"] for p in json.loads(says(c, "pools", "-o", "json"))["pools"]], ["annex", "desks"])
    week = c.ask("GET", "/v1/pools/desks")["week"]
    assert len(week) >= 14 and all(a["until_ms"] == b["from_ms"] and a["open"] != b["open"]
                                   for a, b in zip(week, week[1:])), week
    same(sum(s["until_ms"] - s["from_ms"] for s in week), 7 * DAY_MS)
    assert "may always work now: " in says(c, "pools", "rm", "desks")
    same((machine(c)["pool"], machine(c)["open"]), (None, True))
    events = [json.loads(row) for row in says(c, "events", "--after", "0", "-o", "json").splitlines()]
    assert {"pool": "desks", "what": "remove", "by": "root"}.items() <= events[-1].items(), events[-1]
    assert "pool desks  remove by root" in says(c, "events", "--after", "0")


def weekday(c):
    return datetime.datetime.fromtimestamp(c.clock.now_ms() / 1000, datetime.timezone.utc).weekday() < 5


@case("a settings file with a wrong pool is refused by field")
def _(c):
    for pools, want in (("{ d: { window: 'zone=Europe/Atlantis; Mon 08:00-09:00' } }", "pools: d: window: calendar, part 1"),
                        ("{ d: { nodes: [a] }, e: { nodes: ['a'] } }", "pools: e: nodes: 'a' is in 'd' already")):
        path = f"{c.folder}/wrong.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"pools: {pools}\n")
        done = subprocess.run([c.program, "--config", path, "--state", f"{c.folder}/none", "--run", f"{c.folder}/none"],
                              capture_output=True, text=True, check=False, timeout=cl.PATIENCE_S)
        assert done.returncode != 0 and f"{path}: {want}" in done.stderr, done.stderr


@case("the journal of all this replays to the same decisions")
def _(c):
    lend(c)
    job = counts(c, "last")
    c.ask("POST", "/v1/pools/desks/close", {"for": "1h"})
    c.wait_state(job.number, "frozen")
    c.ask("POST", "/v1/pools/desks/regular", {})
    c.wait_state(job.number, "running")
    finish(job)
    text = c.ask("GET", "/v1/journal")
    for kind in ("pool", "node_pool", "take"):
        assert f'"ev":"{kind}"' in text, kind
    with open(f"{c.folder}/all.journal", "w", encoding="utf-8") as f:
        f.write(text)
    for words in (["verify"], ["replay"], ["replay", "--what-if", "window:desks="]):
        done = subprocess.run([f"{cl.BUILD}/nightshift-sim", words[0], "--journal", f.name, *words[1:]], check=False,
                              capture_output=True, text=True)
        same((words, done.returncode, done.stderr), (words, 0, ""))


def tidy(c):
    cancel_all(c)
    c.call("DELETE", "/v1/pools/desks")


if __name__ == "__main__":
    sys.exit(case.together(make, repair=tidy))
