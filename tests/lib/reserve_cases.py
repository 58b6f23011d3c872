"""reserve_cases - machines that are reserved in advance, on a real daemon with its keeper.

The clock is turned as in windows_cases, and what runs is asked of /proc.  The machine is for tenant `course` at a time;
a job of `lab` counts before and goes on behind, so that a number that is missing or there twice is work that was lost.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import windows_cases as wc  # noqa: E402
from cases import Cases, same  # noqa: E402
from take_cases import cancel_all, restart, says  # noqa: E402
from windows_cases import GIVEN_BACK, HOUR_MS, counts, finish, look, machine, running, wait_gone  # noqa: E402

SETTINGS = """
tenants: { lab: {}, course: {} }
pools: { annex: { nodes: [annex1] } }
"""
case = Cases()


def reserve(c, name="class", **body):
    return c.call("PUT", f"/v1/reservations/{name}", body)


def for_course(c, minutes=60):
    """The machine is the course's for an hour, so many minutes from now.  Returns from when until when."""
    from_ms = c.clock.now_ms() + minutes * 60_000
    status, made = reserve(c, tenant="course", **{"from_ms": from_ms, "for": "1h"}, nodes=[machine(c)["name"]])
    same((status, made["open"], made["from_ms"], made["until_ms"]), (200, False, from_ms, from_ms + HOUR_MS))
    return from_ms, from_ms + HOUR_MS


def pupil(c):
    return c.submit(["sleep", "600"], tenant="course", reservation="class", resources={"gpus": 1}, max_time="2h",
                    freeze={"mode": "none"})


def tidy(c):
    cancel_all(c)
    c.call("DELETE", "/v1/reservations/class")


# ---- what people see: first, while our clock is the daemon's ----

@case("reservations are listed, changed, given up, and who did it is told")
def _(c):
    said = says(c, "reserve", "class", "--tenant", "course", "--from", "now+3h", "--for", "2h", "--nodes",
                machine(c)["name"])
    assert said.startswith(f"class: {machine(c)['name']} (4 GPUs) for course, "), said
    rows = says(c, "reservations").splitlines()
    same(rows[0].split(), ["NAME", "TENANT", "FROM", "UNTIL", "MACHINES", "GPUS", "NOW"])
    same((rows[1].split()[:2], len(rows)), (["class", "course"], 2))
    assert " in 2h59m" in rows[1] or " in 3h" in rows[1], rows[1]
    same(says(c, "reservations", "-o", "name"), "class\n")
    before = json.loads(says(c, "reservations", "-o", "json"))["reservations"][0]
    restart(c)
    same(c.ask("GET", "/v1/reservations")["reservations"], [before])
    shown = machine(c)["reserved"]
    same((shown["name"], shown["tenant"], shown["from_ms"]), ("class", "course", before["from_ms"]))
    assert "class from " in says(c, "nodes"), says(c, "nodes")
    says(c, "reserve", "class", "--from", "now")
    now = c.ask("GET", "/v1/reservations/class")
    same((now["open"], now["until_ms"]), (True, before["until_ms"]))
    assert "open, ends " in says(c, "reservations") and "class until " in says(c, "nodes")
    assert "these machines are everybody's now: " in says(c, "reservations", "rm", "class")
    same((machine(c)["reserved"], says(c, "reservations", "-o", "name")), (None, ""))
    assert "reservation class  remove by root" in says(c, "events", "--after", "0")


@case("what may still run there when it begins is named")
def _(c):
    stays = c.submit(["sleep", "600"], tenant="lab", resources={"gpus": 1}, freeze={"mode": "none"})
    c.wait_state(stays, "running")
    said = says(c, "reserve", "class", "--tenant", "course", "--from", "now+1h", "--for", "2h", "--gpus", "3")
    assert f"{machine(c)['name']} (4 GPUs) for course" in said, said
    assert f"{stays} root sleep" in said and "goes on to its end: it cannot be frozen and has no limit" in said, said
    assert f"{stays} root sleep" in says(c, "reservations", "show", "class")
    same([(j["id"], j["leaves"], j["leaves_ms"]) for j in c.ask("GET", "/v1/reservations/class")["jobs"]],
         [(stays, "stays", None)])
    tidy(c)


# ---- a class ----

@case("a class has its machine from the second it begins, and the job before it goes on behind it without a gap")
def _(c):
    job = counts(c, "before", tenant="lab")
    from_ms, until_ms = for_course(c)
    same([(j["id"], j["leaves"]) for j in c.ask("GET", "/v1/reservations/class")["jobs"]], [(job.number, "frozen")])
    lesson = pupil(c)
    same(c.ask("GET", f"/v1/jobs/{lesson}/why")["reasons"][0]["code"], "reserved")
    assert "its reservation 'class' begins" in says(c, "why", str(lesson))
    c.clock.stand_at(from_ms - 60_000)
    look(c)
    assert running(job), "there is time still"
    c.clock.stand_at(from_ms - 29_000)
    c.wait_state(job.number, "freezing", "frozen")
    wait_gone(job, from_ms)
    same(c.wait_state(job.number, "frozen")["message"], GIVEN_BACK)
    same(c.job(lesson)["state"], "queued")
    c.clock.turn_to(from_ms - 1500)  # it begins by itself: nobody does anything
    c.wait_state(lesson, "running")
    assert c.clock.now_ms() >= from_ms and c.job_pids(lesson), "it has the machine"
    other = c.submit(["true"], tenant="lab", resources={"gpus": 1})
    look(c)
    same((c.job(other)["state"], job.state(), running(job)), ("queued", "frozen", []))
    assert "(reserved: 'class')" in says(c, "why", str(other)), says(c, "why", str(other))
    before = c.job_pids(lesson)
    restart(c)  # by kill -9
    same((c.job_pids(lesson), c.job(other)["state"], job.state()), (before, "queued", "frozen"))
    c.clock.turn_to(until_ms - 1500)
    c.wait_state(job.number, "running")
    assert c.clock.now_ms() >= until_ms
    same(c.ask("GET", "/v1/reservations")["reservations"], [])
    same(c.wait_end(other)["state"], "succeeded")
    same(c.job_pids(lesson), before)
    finish(job)
    tidy(c)


@case("the daemon is killed while the machine is cleared: it is free in time all the same")
def _(c):
    job = counts(c, "killed", tenant="lab")
    from_ms, until_ms = for_course(c)
    lesson = pupil(c)
    wc.touch(f"{job.at}.slow")
    c.clock.stand_at(from_ms - 29_000)
    look(c)
    wc.wait_for("its being asked", lambda: job.has("asked"))
    c.kill_daemon()
    os.unlink(f"{job.at}.slow")
    c.start()
    c.wait_ready()
    wait_gone(job, from_ms)
    c.clock.turn_to(from_ms + 1000)
    look(c)
    c.wait_state(lesson, "running")
    same(c.wait_state(job.number, "frozen")["message"], GIVEN_BACK)
    same(c.call("POST", f"/v1/jobs/{lesson}/cancel")[0], 200)
    c.clock.turn_to(until_ms + 1000)
    look(c)
    c.wait_state(job.number, "running")
    finish(job)


@case("the journal of all this replays to the same decisions")
def _(c):
    text = c.ask("GET", "/v1/journal")
    assert '"ev":"reserve"' in text
    path = f"{c.folder}/all.journal"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    for verb in ("verify", "replay"):
        done = subprocess.run([f"{cl.BUILD}/nightshift-sim", verb, "--journal", path], check=False, capture_output=True,
                              text=True)
        same((verb, done.returncode, done.stderr), (verb, 0, ""))


if __name__ == "__main__":
    sys.exit(case.together(lambda: wc.make(SETTINGS), repair=tidy))
