"""kube_suspend_cases - gangs of others that are taken back: suspended through their owner, or evicted, whole or not at all.

Jobs are those of the real Job controller; JobSets and PyTorchJobs have their pods made and removed by the case, as their
operator would (tests/kube/t1073-operators.sh has the real ones)."""
import json
import os
import random
import subprocess
import sys
import time

import cluster as cl
from cases import Cases, same
from kube_cluster import why_not
from kube_owners import (BY, MAY, SPACES, bound, clean, done, gang, is_suspended, make_job, of, owner, path_of, restart, rights, site,
                         suspended_by, wait_frozen, wait_runs)
from kube_pods_cases import jobs, pod, pods_of, run
from kube_seen import answers, asked, decided, placed_another

case = Cases()
A, B = SPACES
ALL = 8  # GPUs
PLURALS = {"PyTorchJob": "pytorchjobs", "JobSet": "jobsets"}


def tried(sentence):
    """A case that leaves nothing behind."""
    def keep(fn):
        def whole(c):
            try:
                fn(c)
            finally:
                clean(c)
        case(sentence)(whole)
        return fn
    return keep


def uids(c, name, ns=A):
    return {p["metadata"]["uid"] for p in of(c, name, ns)}


def back(c, name, n, number, kind="Job"):
    """It runs again, whole, as the job that it was, and nothing of the suspension is left."""
    same(wait_runs(c, name, n)["id"], number)
    o = owner(c, kind, name)
    assert not is_suspended(o) and not suspended_by(o), o


# ---- by a pass ----

@tried("a tenant below its share takes back a Job: it is suspended whole, and goes on by itself, to its end")
def _(c):
    make_job(c, "stays", 4, may=False)
    make_job(c, "train", 4)
    number, before, others = wait_runs(c, "train", 4)["id"], uids(c, "train"), uids(c, "stays")
    gang(c, "theirs", 4)
    cl.wait_for("the other is placed", lambda: bound(c, "theirs") == 4)
    wait_frozen(c, number, "Job", "train")
    assert "it starts again by itself" in c.job(number)["message"], c.job(number)
    c.rig.delete(f"{pods_of(B)}?labelSelector=app%3Dtheirs")
    back(c, "train", 4, number)
    assert not before & uids(c, "train")
    same(uids(c, "stays"), others)
    done(c, "train")
    same(c.wait_end(number)["state"], "succeeded")
    cl.wait_for("the Job is complete", lambda: owner(c, "Job", "train")["status"].get("succeeded") == 4)


@tried("two gangs are never both taken for one need")
def _(c):
    make_job(c, "one", 4)
    make_job(c, "two", 4)
    before = {n: uids(c, n) for n in ("one", "two")}
    gang(c, "theirs", 4)
    cl.wait_for("the other is placed", lambda: bound(c, "theirs") == 4)
    left = [n for n in ("one", "two") if not is_suspended(owner(c, "Job", n))]
    same(len(left), 1)
    decided(c)
    same(uids(c, left[0]), before[left[0]])
    same(len([j for j in jobs(c) if j["state"] == "frozen"]), 1)


@tried("what did not agree to it is never touched")
def _(c):
    make_job(c, "stays", ALL, may=False)
    number, before = wait_runs(c, "stays", ALL)["id"], uids(c, "stays")
    gang(c, "waits", 4)
    cl.wait_for("it waits", lambda: any(j["name"] == "waits" for j in jobs(c)))
    decided(c)
    same(uids(c, "stays"), before)
    assert not is_suspended(owner(c, "Job", "stays"))
    assert run(c, "freeze", str(number)).returncode != 0
    same(bound(c, "waits"), 0)


@tried("a machine that is given back is free of what agreed to it, which comes back with the machine")
def _(c):
    nodes = [f"/api/v1/nodes/n{i}" for i in range(2)]
    c.ask("PUT", "/v1/pools/desks", {})
    try:
        for node in nodes:
            c.rig.patch(node, {"metadata": {"labels": {"nightshift.dev/pool": "desks"}}})
        cl.wait_for("they are in the pool", lambda: [n.get("pool") for n in c.ask("GET", "/v1/nodes")["nodes"]] == ["desks"] * 2)
        make_job(c, "guest", ALL)
        number = wait_runs(c, "guest", ALL)["id"]
        c.ask("POST", "/v1/pools/desks/close", {"for": "1h"})
        wait_frozen(c, number, "Job", "guest")
        assert "its machine is given back" in c.job(number)["message"], c.job(number)
        c.ask("POST", "/v1/pools/desks/open", {"for": "1h"})
        back(c, "guest", ALL, number)
    finally:
        for node in nodes:
            c.rig.patch(node, {"metadata": {"labels": {"nightshift.dev/pool": None}}})
        cl.wait_for("they are in none", lambda: not any(n.get("pool") for n in c.ask("GET", "/v1/nodes")["nodes"]))
        c.ask("DELETE", "/v1/pools/desks")


# ---- budgets ----

def budget(c, name, least):
    c.rig.post(f"/apis/policy/v1/namespaces/{A}/poddisruptionbudgets",
               {"metadata": {"name": name}, "spec": {"minAvailable": least, "selector": {"matchExpressions": [
                   {"key": "app", "operator": "In", "values": [name]}]}}})
    path = f"/apis/policy/v1/namespaces/{A}/poddisruptionbudgets/{name}"
    cl.wait_for("it is counted", lambda: c.rig.get(path).get("status", {}).get("currentHealthy", 0) >= least)
    return path


@tried("a budget that lets only some of a gang go keeps all of it, is told, and nothing else goes meanwhile")
def _(c):
    guard = {}
    for name in ("one", "two"):
        make_job(c, name, 4)
        wait_runs(c, name, 4)
        guard[name] = budget(c, name, 3)
    before = uids(c, "one") | uids(c, "two")
    gang(c, "theirs", 4)
    stuck = cl.wait_for("it is told", lambda: next((j for j in jobs(c) if "PodDisruptionBudget" in c.job(j["id"]).get("message", "")), None))
    text = c.job(stuck["id"])["message"]
    assert text.startswith("taken back") and "guards 4 of its pods and lets 1 go" in text, text
    asked(c.rig, "LIST", "poddisruptionbudgets")
    same(uids(c, "one") | uids(c, "two"), before)
    assert not any(is_suspended(owner(c, "Job", name)) for name in guard)
    same(bound(c, "theirs"), 0)
    same(len([j for j in jobs(c) if j["state"] == "running"]), 1)
    c.rig.delete(guard[stuck["name"]])
    wait_frozen(c, stuck["id"], "Job", stuck["name"])
    cl.wait_for("the other is placed", lambda: bound(c, "theirs") == 4)
    same(sum(len(of(c, name)) for name in guard), 4)


@tried("a gang without an owner is evicted whole, after its budget lets all of it go")
def _(c):
    gang(c, "bare", 4, ns=A, notes=MAY)
    number = wait_runs(c, "bare", 4)["id"]
    guard = budget(c, "bare", 2)
    c.ask("POST", f"/v1/jobs/{number}/freeze")
    cl.wait_for("it is told", lambda: "PodDisruptionBudget" in c.job(number)["message"])
    same(len(of(c, "bare")), 4)
    c.rig.delete(guard)
    cl.wait_for("all are gone", lambda: not of(c, "bare"))
    same(c.wait_end(number)["state"], "cancelled")


@tried("cancelled while a budget keeps it, its owner is not suspended")
def _(c):
    make_job(c, "off", 2)
    number, before = wait_runs(c, "off", 2)["id"], uids(c, "off")
    guard = budget(c, "off", 2)
    c.ask("POST", f"/v1/jobs/{number}/freeze")
    cl.wait_for("it is told", lambda: "PodDisruptionBudget" in c.job(number)["message"])
    c.ask("POST", f"/v1/jobs/{number}/cancel")
    c.rig.delete(guard)
    same(c.wait_end(number)["state"], "cancelled")
    cl.wait_for("its controller has made it again", lambda: len(of(c, "off")) == 2 and not uids(c, "off") & before)
    assert not is_suspended(owner(c, "Job", "off"))


# ---- by hand ----

class Operator:
    """What one would do for a JobSet or a PyTorchJob: no pods while it is suspended, else all."""

    def __init__(self, c, kind, name, spec, labels, n):
        self.c, self.kind, self.name, self.n = c, kind, name, n
        made = c.rig.post(path_of(kind), {"apiVersion": path_of(kind)[6:].split("/namespaces")[0], "kind": kind,
                                          "metadata": {"name": name}, "spec": spec})
        self.owner = {"apiVersion": made["apiVersion"], "kind": kind, "name": name, "controller": True, "uid": made["metadata"]["uid"]}
        self.labels = {"app": name, **labels}

    def work(self):
        if is_suspended(owner(self.c, self.kind, self.name)):
            for p in of(self.c, self.name):
                self.c.rig.delete(f"{pods_of(A)}/{p['metadata']['name']}", {"gracePeriodSeconds": 1})
            return
        there = {p["metadata"]["name"] for p in self.c.pods(A)}
        for i in range(self.n):
            if f"{self.name}-{i}" not in there:
                self.c.rig.post(pods_of(A), pod(f"{self.name}-{i}", labels=self.labels, annotations=MAY, owner=self.owner))


def by_hand(c, o):
    """Frozen, found again by the next daemon, thawed."""
    o.work()
    number = wait_runs(c, o.name, o.n)["id"]
    same(run(c, "freeze", str(number)).returncode, 0)
    cl.wait_for("it is suspended", lambda: is_suspended(owner(c, o.kind, o.name)))
    o.work()
    wait_frozen(c, number, o.kind, o.name)
    there = answers(c.rig, "GET", PLURALS[o.kind])
    restart(c)
    c.rig.wait(lambda: answers(c.rig, "GET", PLURALS[o.kind]) > there, "it is looked at whether it is there")
    same(c.job(number)["state"], "frozen")
    same(run(c, "thaw", str(number)).returncode, 0)
    cl.wait_for("it goes on", lambda: not is_suspended(owner(c, o.kind, o.name)))
    o.n -= 1
    o.work()
    cl.wait_for("all but one are there", lambda: len(of(c, o.name)) == o.n)
    placed_another(c, B)
    same(bound(c, o.name, A), 0)
    o.n += 1
    o.work()
    back(c, o.name, o.n, number, o.kind)


@tried("a PyTorchJob is frozen by hand and thawed: nothing is bound before all of it has come again")
def _(c):
    by_hand(c, Operator(c, "PyTorchJob", "pt", {"runPolicy": {"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": {
        "Master": {"replicas": 1}, "Worker": {"replicas": 2}}}, {"training.kubeflow.org/job-name": "pt"}, 3))
    same(owner(c, "PyTorchJob", "pt")["spec"]["runPolicy"], {"cleanPodPolicy": "None", "suspend": False})


@tried("a JobSet is frozen by hand and thawed: nothing is bound before all of it has come again")
def _(c):
    by_hand(c, Operator(c, "JobSet", "js", {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2}}}]},
                        {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/restart-attempt": "0"}, 4))


@tried("a Job of which some pods are done goes on with the rest")
def _(c):
    make_job(c, "part", 4)
    number = wait_runs(c, "part", 4)["id"]
    first = of(c, "part")[0]["metadata"]["name"]
    c.rig.patch(f"{pods_of(A)}/{first}", {"metadata": {"annotations": {"test/done": "true"}}})
    cl.wait_for("one is done", lambda: owner(c, "Job", "part")["status"].get("succeeded") == 1)
    c.ask("POST", f"/v1/jobs/{number}/freeze")
    c.wait_state(number, "frozen")
    c.ask("POST", f"/v1/jobs/{number}/thaw")
    cl.wait_for("three run", lambda: sum(p["status"].get("phase") == "Running" for p in of(c, "part")) == 3)
    c.wait_state(number, "running")
    done(c, "part")
    same(c.wait_end(number)["state"], "succeeded")


# ---- what is its user's ----

@tried("what its user has suspended is left alone, also when we had suspended it before")
def _(c):
    make_job(c, "mine", 4)
    number = wait_runs(c, "mine", 4)["id"]
    c.rig.patch(path_of("Job", "mine"), {"spec": {"suspend": True}})
    c.wait_end(number)
    make_job(c, "ours", 4)
    number = wait_runs(c, "ours", 4)["id"]
    c.ask("POST", f"/v1/jobs/{number}/freeze")
    wait_frozen(c, number, "Job", "ours")
    c.rig.patch(path_of("Job", "ours"), {"metadata": {"annotations": {BY: None}}})
    c.ask("POST", f"/v1/jobs/{number}/thaw")
    assert c.wait_end(number)["state"] in ("failed", "cancelled"), c.job(number)
    restart(c)
    placed_another(c, B)
    assert all(is_suspended(owner(c, "Job", n)) for n in ("mine", "ours"))
    c.rig.patch(path_of("Job", "mine"), {"spec": {"suspend": False}})
    wait_runs(c, "mine", 4)
    assert is_suspended(owner(c, "Job", "ours"))


@tried("one that is removed while it is suspended ends its job, also while no daemon is there")
def _(c):
    for there in (True, False):
        make_job(c, "gone", 4)
        number = wait_runs(c, "gone", 4)["id"]
        c.ask("POST", f"/v1/jobs/{number}/freeze")
        wait_frozen(c, number, "Job", "gone")
        if not there:
            c.kill_daemon()
        c.rig.delete(path_of("Job", "gone") + "?propagationPolicy=Background")
        if not there:
            c.start()
            c.wait_ready()
        same(c.wait_end(number)["state"], "cancelled")


# ---- faults ----

@tried("killed while it suspends, five times: it is frozen once, and comes back whole")
def _(c):
    chance = random.Random(5)
    make_job(c, "often", ALL)
    number = wait_runs(c, "often", ALL)["id"]
    for turn in range(5):
        c.ask("POST", f"/v1/jobs/{number}/freeze")
        if turn:
            time.sleep(chance.random() * 0.1)
        else:
            cl.wait_for("it is suspended", lambda: is_suspended(owner(c, "Job", "often")))
        restart(c)
        wait_frozen(c, number, "Job", "often")
        c.ask("POST", f"/v1/jobs/{number}/thaw")
        time.sleep(chance.random() * 0.1)
        restart(c)
        back(c, "often", ALL, number)


@tried("without the right to suspend it is evicted, and its owner is as it was")
def _(c):
    make_job(c, "plain", 4)
    number, before = wait_runs(c, "plain", 4)["id"], uids(c, "plain")
    rights(c, "jobs.suspendOwners=false")
    try:
        c.ask("POST", f"/v1/jobs/{number}/freeze")
        cl.wait_for("all of it was evicted", lambda: not uids(c, "plain") & before)
        o = owner(c, "Job", "plain")
        assert not is_suspended(o) and not suspended_by(o), o
    finally:
        rights(c)


def as_daemon(c, kind, patch):
    """The words of a refusal; "" when there is none.  Nothing is changed."""
    argv = [f"{c.rig.programs}/kubectl", f"--kubeconfig={c.kubeconfig}", "-n", A, "patch", kind, "theirs", "--type=merge",
            "--dry-run=server", "-p", json.dumps(patch)]
    done_ = subprocess.run(argv, capture_output=True, text=True, timeout=cl.PATIENCE_S, check=False, env={**os.environ, "HOME": c.folder})
    return done_.stderr if done_.returncode else ""


@tried("the daemon's account suspends an owner, and changes nothing of what it runs")
def _(c):
    make_job(c, "theirs", 2)
    Operator(c, "PyTorchJob", "theirs", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}, {}, 0)
    same(as_daemon(c, "jobs.batch", {"spec": {"suspend": True}}), "")
    same(as_daemon(c, "pytorchjobs.kubeflow.org", {"spec": {"runPolicy": {"suspend": True}}}), "")
    for change in ({"Worker": {"replicas": 3}}, None):
        said = as_daemon(c, "pytorchjobs.kubeflow.org", {"spec": {"pytorchReplicaSpecs": change}})
        assert "changes nothing else of it" in said, said


if __name__ == "__main__":
    sys.exit(case.on(site, why_not))
