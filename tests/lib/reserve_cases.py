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

DAY_MS = 24 * HOUR_MS
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


@case("a job of another tenant that names it is refused, and so is one that comes too late")
def _(c):
    for_course(c)
    spec = {"command": ["true"], "reservation": "class", "tenant": "lab"}
    status, answer = c.call("POST", "/v1/jobs", spec)
    same((status, answer["field"]), (403, "reservation"))
    assert "'class' is not of tenant 'lab'" in answer["detail"] and "course" in answer["hint"], answer
    same(c.call("DELETE", "/v1/reservations/class")[0], 200)
    status, answer = c.call("POST", "/v1/jobs", {**spec, "tenant": "course"})
    same((status, answer["field"]), (404, "reservation"))


# ---- what is refused ----

def refused(c):
    node, now_ms = machine(c)["name"], c.clock.now_ms()
    good = {"tenant": "course", "for": "1h", "nodes": [node]}
    return (
        ({"for": "1h", "nodes": [node]}, 400, "tenant"),
        ({**good, "tenant": "nobody"}, 404, "tenant"),
        ({**good, "tenant": ""}, 400, "tenant"),
        ({**good, "tenant": 5}, 400, "tenant"),
        ({"tenant": "course", "nodes": [node]}, 400, "for"),
        ({**good, "until_ms": now_ms + HOUR_MS}, 400, "for"),
        ({**good, "for": "32d"}, 400, "for"),
        ({**good, "for": "soon"}, 400, "for"),
        ({**good, "from_ms": now_ms - 2 * HOUR_MS}, 400, "for"),
        ({**good, "from_ms": now_ms + 367 * DAY_MS}, 400, "from_ms"),
        ({**good, "from_ms": "now"}, 400, "from_ms"),
        ({"tenant": "course", "nodes": [node], "until_ms": 5}, 400, "until_ms"),
        ({"tenant": "course", "for": "1h"}, 400, "nodes"),
        ({**good, "nodes": []}, 400, "nodes"),
        ({**good, "nodes": ["none"]}, 404, "nodes"),
        ({**good, "nodes": [node, node]}, 400, "nodes"),
        ({**good, "nodes": node}, 400, "nodes"),
        ({**good, "gpus": 1}, 400, "gpus"),
        ({**good, "gpu_type": "A100"}, 400, "gpu_type"),
        ({"tenant": "course", "for": "1h", "gpus": 0}, 400, "gpus"),
        ({"tenant": "course", "for": "1h", "gpus": 5}, 409, "gpus"),
        ({"tenant": "course", "for": "1h", "gpus": 1, "gpu_type": "none"}, 400, "gpu_type"),
        ({**good, "colour": 1}, 400, "colour"),
    )


@case("what is wrong is refused by name, with a hint, and nothing changes")
def _(c):
    for body, want, field in refused(c):
        status, answer = reserve(c, **body)
        same((body, status, answer.get("field")), (body, want, field))
        assert answer.get("hint"), answer
    same(reserve(c, name="a%20b", tenant="course")[0], 400)
    for method in ("GET", "DELETE"):
        status, answer = c.call(method, "/v1/reservations/none")
        assert status == 404 and answer["hint"], answer
    same(c.ask("GET", "/v1/reservations"), {"reservations": []})
    for_course(c)
    status, answer = reserve(c, name="two", tenant="lab", **{"for": "61m"}, nodes=[machine(c)["name"]])
    same(status, 409)
    assert "is reserved for 'class' at that time" in answer["detail"], answer
    same(reserve(c, name="two", tenant="lab", **{"for": "59m"}, nodes=[machine(c)["name"]])[0], 200)
    c.call("DELETE", "/v1/reservations/two")


@case("who is no administrator sees when machines are reserved, not for whom, and makes none")
def _(c):
    for_course(c)
    nobody = 65534
    status, seen = c.call("GET", "/v1/reservations", uid=nobody)
    same((status, [(r["tenant"], r["name"], len(r["nodes"])) for r in seen["reservations"]]), (200, [(None, None, 1)]))
    same(c.call("GET", "/v1/reservations/class", uid=nobody)[0], 404)
    for method in ("PUT", "DELETE"):
        same((method, c.call(method, "/v1/reservations/class", {}, uid=nobody)[0]), (method, 403))


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
