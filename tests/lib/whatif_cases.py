"""whatif_cases - the history of a real daemon, fetched, replayed and changed.

All cases share one cluster with 4 simulated GPUs, on which a short day has gone by.
"""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

HALF = {"cpus": 1, "mem": "64Mi", "gpus": 2}
WHOLE = {"cpus": 1, "mem": "64Mi", "gpus": 4}
case = Cases()


def run(c, line, resources=None, **spec):
    return c.submit(["sh", "-c", line], resources=resources or HALF, **spec)


def reachable(c, *programs):
    """A folder with them that every account may enter: the sources may lie in somebody's closed home."""
    folder = f"{c.work}/programs"
    os.makedirs(folder, exist_ok=True)
    for program in programs:
        shutil.copy(f"{cl.BUILD}/{program}", folder)
    return folder


def tool(c, program, *argv, uid=0):
    where = reachable(c, "nightshift", "nightshift-sim") if uid else cl.BUILD
    done = subprocess.run([f"{where}/{program}", *argv], capture_output=True, text=True, check=False,
                          cwd=c.work, timeout=cl.PATIENCE_S, user=uid or None, group=uid or None, extra_groups=[],
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"})
    return done.returncode, done.stdout, done.stderr


def simulate(c, *argv):
    code, out, err = tool(c, "nightshift", "simulate", *argv)
    assert code == 0, f"{argv}: {code} {err}"
    return out


def journal(c):
    """Its lines, from the API."""
    lines = [json.loads(line) for line in c.ask("GET", "/v1/journal").splitlines()]
    same(lines[0], {"journal": "nightshift", "version": 1})
    return lines[1:]


def decisions(lines):
    return [(line["t"], line["ev"], line["job"], line.get("slots")) for line in lines
            if line["ev"] in ("place", "take", "promise")]


def a_day(c):
    """Jobs that wait for one another, one that never runs, one that is held, one that is ended by hand, a machine
    that takes nothing for a while."""
    first = [run(c, "sleep 0.4") for _ in range(4)]
    waits = run(c, "sleep 0.2", WHOLE)
    gone = run(c, "true", WHOLE)
    held = run(c, "sleep 0.1")
    c.ask("POST", f"/v1/jobs/{held}/hold")
    c.ask("POST", f"/v1/jobs/{gone}/cancel")
    then = run(c, "sleep 0.1", after=[waits])
    bad = run(c, "exit 3")
    for number in (*first, waits, then, bad):
        c.wait_end(number)
    node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    c.ask("POST", f"/v1/nodes/{node}/drain")
    c.ask("POST", f"/v1/jobs/{held}/release")
    late = run(c, "sleep 30")
    c.ask("POST", f"/v1/nodes/{node}/resume")
    c.wait_end(held)
    c.wait_state(late, "running")
    c.ask("POST", f"/v1/jobs/{late}/cancel")
    c.wait_end(late)
    same(c.job(gone)["state"], "cancelled")
    return {"jobs": [*first, waits, then, bad, held, late], "gone": gone, "node": node}


@case("its history replays to the same decisions at the same times")
def _(c, day):
    simulate(c, "--history", "--write-journal", f"{c.folder}/again.journal", "--starts", f"{c.folder}/starts.csv")
    with open(f"{c.folder}/again.journal", encoding="utf-8") as f:
        again = [json.loads(line) for line in f][1:]
    want = decisions(journal(c))
    assert len(want) >= len(day["jobs"]), want
    same(decisions(again), want)
    with open(f"{c.folder}/starts.csv", encoding="utf-8") as f:
        rows = [line.split(",") for line in f.read().splitlines()[1:]]
    same(sorted(int(row[0]) for row in rows), sorted(day["jobs"]))


@case("the journal that was fetched is verified decision by decision")
def _(c, _day):
    path = f"{c.folder}/all.journal"
    with open(path, "w", encoding="utf-8") as f:
        f.write(c.ask("GET", "/v1/journal"))
    code, out, err = tool(c, "nightshift-sim", "verify", "--journal", path)
    assert code == 0 and "every one is the same" in out, err


@case("another machine like this one is asked for by its name, and starts them sooner")
def _(c, day):
    both = json.loads(simulate(c, "--history", "--json", "--what-if", f"nodes+=1*{day['node']}"))
    same(both["what_if"], [f"nodes+=1*{day['node']}"])
    same((both["before"]["gpus"], both["after"]["gpus"]), (4, 8))
    assert both["after"]["avg_queue_s"] < both["before"]["avg_queue_s"], both
    same(both["after"]["unfinished"], 0)


@case("the difference is a table, and a page that needs nothing else")
def _(c, _day):
    page = f"{c.folder}/what-if.html"
    out = simulate(c, "--history", "--what-if", "load=2", "--what-if", "no-preemption", "--html", page)
    assert "what if: load=2" in out and "before" in out and "Wait, mean" in out, out
    with open(page, encoding="utf-8") as f:
        text = f.read()
    assert "What if there were 2 times as many jobs, and no job were frozen for another?" in text and "http" not in text.replace("http-equiv", "").replace(
        "http://www.w3.org/2000/svg", ""), "the page names another server"


@case("a span of time begins with what was there")
def _(c, _day):
    lines = journal(c)
    places = [line["t"] for line in lines if line["ev"] == "place"]
    middle = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(places[len(places) // 2] // 1000))
    part = json.loads(simulate(c, "--history", "--json", "--since", middle))
    whole = json.loads(simulate(c, "--history", "--json"))
    assert 0 < part["jobs"] <= whole["jobs"], (part, whole)
    code, _, err = tool(c, "nightshift", "simulate", "--history", "--since", "now")
    assert code == 2 and "nothing happened" in err, (code, err)


@case("the journal is for administrators")
def _(c, _day):
    same(c.call("GET", "/v1/journal", uid=4242)[0], 403)
    code, _, err = tool(c, "nightshift", "simulate", "--history", uid=4242)
    assert code == 3 and "admin" in err, (code, err)


@case("a change that is not known, or does not fit, names those that do")
def _(c, _day):
    code, _, err = tool(c, "nightshift", "simulate", "--history", "--what-if", "more-gpus")
    assert code == 2 and "nodes+=" in err, (code, err)
    code, _, err = tool(c, "nightshift", "simulate", "--history", "--what-if", "weight:nobody=2")
    assert code == 2 and "there is no tenant 'nobody'" in err, (code, err)
    code, _, err = tool(c, "nightshift", "simulate", "--history", "lab")
    assert code == 2 and "--history" in err, (code, err)
    code, _, err = tool(c, "nightshift", "simulate", "--what-if", "load=2", "lab")
    assert code == 2 and "--what-if needs --history" in err, (code, err)
    code, out, err = tool(c, "nightshift", "simulate", "lab", "--days", "1", "--what-if", "load=2")
    assert code == 0 and "what if: load=2" in out, (code, err)


if __name__ == "__main__":
    DAY = {}
    sys.exit(case.together(prepare=lambda c: DAY.update(a_day(c)), arguments=lambda c: (c, DAY)))
