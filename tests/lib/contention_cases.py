"""contention_cases - a hundred people in twenty tenants submit at once for a minute, to a real daemon with real processes.

Each is a thread with a token of its own.  A machine of 16 simulated GPUs runs quarters of GPUs; it takes nothing until
everybody has work waiting, and then a minute goes by while all go on submitting.  Whether shares, limits and sums were
right is counted from the journal alone, by journal_count.py.
"""
import collections
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import journal_count  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

GPUS, MODEL = 16, "A100-80GB"
MINUTE_S = int(os.environ.get("NIGHTSHIFT_CONTENTION_S", "60"))
EVERY_S = 2.0  # each person submits once more
FIRST = 40  # jobs of each person at the beginning: nobody runs dry on a fast machine
USERS_OF_ONE = 5
JOB = {"command": ["sleep", "1.5"], "resources": {"gpu_share": 0.25, "cpus": 0.25, "mem": "32Mi"},
       "freeze": {"mode": "none"}}
NEAR = 0.03
CLOSED = ("elsewhere", "summer")  # which may be told that nothing they submit could ever run
EXPIRES_AFTER_S = MINUTE_S // 2
ABOVE = {  # tenants with tenants in them
    "physics": {"weight": 4},
    "life": {"weight": 3, "guarantee": 2},
    "computing": {"weight": 4, "limit": {"gpus": 3.5}},
}
TENANTS = {  # twenty, with five people each
    "astro": {"parent": "physics", "weight": 2},
    "optics": {"parent": "physics"},
    "plasma": {"parent": "physics", "limit": {"gpus_by_model": {MODEL: 0.5}}},
    "genes": {"parent": "life", "guarantee": 0.5},
    "cells": {"parent": "life", "weight": 3},
    "plants": {"parent": "life", "user_limit": {"gpus": 0.25}, "limit": {"gpus": 0.5}},
    "vision": {"parent": "computing", "weight": 2},
    "speech": {"parent": "computing", "weight": 1.5},
    "robots": {"parent": "computing", "limit": {"jobs": 2}},
    "math": {"weight": 2}, "law": {"weight": 1.5}, "history": {"weight": 1.5}, "chemistry": {"weight": 3},
    "geology": {"weight": 1.5, "guarantee": 1},
    "course": {"user_limit": {"jobs": 1}, "limit": {"jobs": 4}},
    "guests": {"limit": {"gpus": 0.5, "gpus_by_model": {"H100": 0}}},
    "students": {"user_limit": {"gpus": 0.25}, "limit": {"cpus": 0.75}},
    "trial": {"weight": 2, "budget": {"gpu_hours": 0.006, "period": "once"}},
    "summer": {"weight": 2},  # expires
    "elsewhere": {"weight": 5},  # is restricted to a pool without this machine when it has submitted
}
case = Cases()


# ---- a journal by hand ----

HAND = [
    {"journal": "nightshift", "version": 1},
    {"t": 0, "ev": "node", "name": "n", "model": "A", "gpus": 1, "cpu_milli": 4000, "mem_mib": 400},
    {"t": 0, "ev": "tenant", "name": "up", "weight_milli": 1000, "limit": {"gpus": 750}},
    {"t": 0, "ev": "tenant", "name": "a", "parent": "up", "weight_milli": 1000, "user_limit": {"jobs": 1},
     "until_ms": 9000},
    {"t": 0, "ev": "tenant", "name": "b", "parent": "up", "weight_milli": 1000, "model_limit": [["A|B", 250]],
     "budget": 750000, "budget_from_ms": 0, "budget_until_ms": 100000},
    {"t": 0, "ev": "tenant", "name": "c", "weight_milli": 1000, "pools": "-"},
    *({"t": 0, "ev": "submit", "job": n, "tenant": who[0], "user": who, "replicas": 1, "gpu_milli": 250,
       "cpu_milli": 1000, "mem_mib": 100, "priority": "normal"}
      for n, who in enumerate(("a1", "a2", "a1", "b1", "b1", "c1", "c1", "c1"), 1)),
]
GOOD = [(1000, "place", 1), (1000, "place", 4), (1000, "place", 6), (1000, "place", 7), (3000, "exited_ok", 4),
        (3000, "place", 2), (4000, "exited_ok", 1), (4000, "place", 5), (5000, "exited_ok", 5), (6000, "exited_ok", 2),
        (6000, "exited_ok", 6), (6000, "place", 8), (6000, "place", 3), (7000, "ended", 3), (7000, "exited_ok", 7),
        (8000, "exited_ok", 8)]


def by_hand(steps, changes=()):
    """Each takes the lowest GPU parts that are free; there is one GPU."""
    lines = [json.dumps({**ev, **dict(changes).get(ev.get("name"), {})}) for ev in HAND]
    for t, what, job in steps:
        more = {"ev": "place", "slots": [[0, 1, 250]]} if what == "place" else {"ev": "job", "what": what}
        lines.append(json.dumps({"t": t, "job": job, **more}))
    return lines


def without(step):
    return [s for s in GOOD if s != step]


@case("the count finds every fault in a journal that was tampered with, and none in one that was not")
def _(_):
    same(journal_count.count(by_hand(GOOD)).faults, [])
    begin = [(1000, "place", 1)]
    for what, steps, changes in (
            ("a1 of a holds 2 jobs", [*begin, (1000, "place", 3)], ()),
            ("up holds 500 gpus", [*begin, (1000, "place", 2)], {"up": {"limit": {"gpus": 250}}}),
            ("b holds 500 of A|B", [(1000, "place", 4), (1000, "place", 5)], ()),
            ("b has spent 750000 of 750000", [(1000, "place", 4), (4000, "exited_ok", 4), (4000, "place", 5)], ()),
            ("a has expired", [(9000, "place", 1)], ()),
            ("outside of its pools", [(1000, "place", 6)], {"n": {"pool": "far"}}),
            ("GPU 0 is given 1250", [(1000, "place", n) for n in (1, 4, 6, 7, 8)], {"n": {"cpu_milli": 9000, "mem_mib": 999}}),
            ("cpu_milli of the machine: 5000", [(1000, "place", n) for n in (1, 4, 6, 7, 8)], ()),
            ("job 4 was placed, and it holds", [(1000, "place", 4), (1000, "place", 4)], ()),
            ("job 4 exited_ok, and it is over", [*GOOD, (9000, "exited_ok", 4)], ()),
            ("job 9 was placed, and it is unknown", [(1000, "place", 9)], ()),
            ("job 2 exited_ok, and it held nothing", without((3000, "place", 2)), ())):
        found = journal_count.count(by_hand(steps, dict(changes))).faults
        assert any(what in fault for fault in found), f"{what}: {found}"


@case("the count's entitlement is that of the guide: guarantees first, the rest by weight, what is left goes on")
def _(_):
    for weights, guarantees, wants, shares in (((3, 1, 1), (0, 0, 2), (9, 9, 9), (3.6, 1.2, 3.2)),
                                               ((3, 1, 1), (0, 0, 0), (9, 9, 1), (5.25, 1.75, 1)),
                                               ((1, 1, 2), (0, 0, 0), (0, 9, 9), (0, 8 / 3, 16 / 3))):
        c = journal_count.Count()
        c.t, c.piece = 0, 1000
        c.see_node({"name": "n", "model": "A", "gpus": 8})
        for i, (weight, guarantee, want) in enumerate(zip(weights, guarantees, wants)):
            c.see_tenant({"name": str(i), "weight_milli": weight * 1000, "guarantee_milli": guarantee * 1000})
            c.waits[str(i), "u"] = want * 1000
        out = {}
        c.share_out(None, 8000, out)
        for i, share in enumerate(shares):
            assert abs(out[str(i)][0] - share * 1000) < 1, (out, shares)


# ---- the minute ----

class Person(threading.Thread):
    """Submits on a connection of its own until it is told to stop; keeps what it was told."""
    def __init__(self, c, name, tenant, token, begun, stop):
        super().__init__(daemon=True)
        self.c, self.name_, self.tenant, self.token = c, name, tenant, token
        self.begun, self.stop_ = begun, stop
        self.jobs, self.refused, self.failed = [], 0, None
        self.random = random.Random(name)

    def submit(self, **more):
        body = {**JOB, "tenant": self.tenant, **more}
        status, answer = self.c.call("POST", "/v1/jobs", body, token=self.token)
        if self.tenant in CLOSED and status in (400, 409):
            self.refused += 1
            return
        assert status == 201, (status, answer)
        first = answer["id"]
        self.jobs += range(first, first + (FIRST if "array" in more else 1))

    def run(self):
        try:
            self.submit(array=f"0-{FIRST - 1}")
            self.begun.wait()
            while not self.stop_.wait(self.random.uniform(0, 2 * EVERY_S)):
                self.submit()
        except Exception as why:  # for the thread that waits for this one
            self.failed = why


def found(c):
    """Tenants and people, and their threads."""
    c.ask("PUT", "/v1/pools/far", {"nodes": ["other"]})
    for name, spec in {**ABOVE, **TENANTS}.items():
        c.ask("PUT", f"/v1/tenants/{name}", spec)
    begun, stop = threading.Event(), threading.Event()
    people = []
    for tenant in TENANTS:
        for i in range(USERS_OF_ONE):
            user = f"{tenant}{i}"
            c.ask("PUT", f"/v1/users/{user}", {})
            c.ask("PUT", f"/v1/tenants/{tenant}/members/{user}", {"role": "member"})
            token = c.ask("POST", "/v1/tokens", {"name": "work", "user": user, "scopes": ["read", "jobs"]})["token"]
            people.append(Person(c, user, tenant, token, begun, stop))
    return people, begun, stop


def all_well(people):
    for person in people:
        if person.failed:
            raise AssertionError(f"{person.name_}: {person.failed}") from person.failed


def journal(c):
    return c.ask("GET", "/v1/journal").splitlines()


def cancel_the_rest(people):
    """Each its own, at once."""
    def one(person):
        for number in person.jobs:
            status, _ = person.c.call("POST", f"/v1/jobs/{number}/cancel", token=person.token)
            assert status in (200, 202, 409), status
    threads = [threading.Thread(target=one, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@case("a hundred people in twenty tenants for a minute: shares within 3 % of the entitlement, no limit ever exceeded")
def _(c):
    c.start()
    c.wait_ready()
    node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    people, begun, stop = found(c)
    same((len(people), len(TENANTS)), (100, 20))
    c.ask("POST", f"/v1/nodes/{node}/drain")
    for person in people:
        person.start()
    wait_for("everybody's first jobs", lambda: all_well(people) or all(person.jobs for person in people))
    summer = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + EXPIRES_AFTER_S + 1))
    c.ask("PUT", "/v1/tenants/summer", {**TENANTS["summer"], "expires": summer})
    c.ask("PUT", "/v1/tenants/elsewhere", {**TENANTS["elsewhere"], "pools": ["far"]})
    began = time.time()
    c.ask("POST", f"/v1/nodes/{node}/resume")
    begun.set()
    time.sleep(MINUTE_S)  # the minute itself: nothing is waited for
    ended = time.time()
    c.ask("POST", f"/v1/nodes/{node}/drain")
    stop.set()
    for person in people:
        person.join(cl.PATIENCE_S)
    all_well(people)
    cancel_the_rest(people)
    wait_for("the end of all jobs", lambda: not c.ask("GET", "/v1/jobs?limit=1")["jobs"])
    lines = journal(c)
    if "NIGHTSHIFT_KEEP_JOURNAL" in os.environ:
        with open(os.environ["NIGHTSHIFT_KEEP_JOURNAL"], "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    count = journal_count.count(lines, (int(began * 1000) + 1000, int(ended * 1000)))
    print("\n".join(f"# {line}" for line in journal_count.report(count)), flush=True)
    print(f"# {len(count.jobs)} jobs, {sum(count.runs.values())} starts", flush=True)
    check(c, count, people)


def check(c, count, people):
    same(count.faults, [])
    off = {name: round(count.off(name), 4) for name in count.backlogged()}
    assert len(off) >= 10, off
    assert all(abs(part) <= NEAR for part in off.values()), off
    submitted = {number: (p.tenant, p.name_) for p in people for number in p.jobs}
    same({n: (j.tenant, j.user) for n, j in count.jobs.items()}, submitted)
    same({j.state for j in count.jobs.values()}, {"over"})
    totals = collections.Counter(j.tenant for n, j in count.jobs.items() if count.runs[n])
    same(totals["elsewhere"], 0)
    for name in ("trial", "summer", "plasma", "plants", "robots", "course", "guests", "students"):
        assert totals[name] > 0, f"nothing of {name} has run"
    assert count.spent["trial"] >= count.tenants["trial"].budget, "the budget was not spent"
    rows = c.ask("GET", "/v1/usage?group=tenant")["rows"]
    same({r["tenant"]: r["runs"] for r in rows}, dict(
        sum((collections.Counter({count.jobs[n].tenant: k}) for n, k in count.runs.items()), collections.Counter())))


if __name__ == "__main__":
    case.list = [(sentence, fn, ["--simulate-gpus", str(GPUS), "--gpu-model", MODEL]) for sentence, fn, _ in case.list]
    sys.exit(case.each())
