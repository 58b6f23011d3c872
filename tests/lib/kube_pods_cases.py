"""kube_pods_cases - pods of others that name our scheduler, on nodes that are only pretended (KWOK).

The daemon is the real one, with the chart's rights and under its admission policy.  Every case cleans up
after itself: the next one finds all GPUs free."""
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time

import cluster as cl
from cases import Cases, same
from kube_cluster import CHART, OWN, KubeCluster, Refused, Rig, helm, why_not
from kube_seen import Pods, asked, placed_another

case = Cases()
NODES, GPUS = 12, 8
GPU = "nvidia.com/gpu"
LIVE = ("default", "other", "nightshift-default")
CRDS = (("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups"),
        ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"))


def run(c, *argv):
    """The command line, as a user would type it."""
    env = {**os.environ, "NIGHTSHIFT_SERVER": f"{c.run}/api.sock"}
    return subprocess.run([f"{cl.BUILD}/nightshift", *argv], env=env, capture_output=True, text=True, timeout=cl.PATIENCE_S,
                          check=False)


def pod(name, gpus=1, labels=None, annotations=None, owner=None, scheduler="nightshift", **spec):
    sizes = {"cpu": "1", "memory": "1Gi", **({GPU: str(gpus)} if gpus else {})}
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if owner:
        meta["ownerReferences"] = [owner]
    return {"metadata": meta,
            "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1,
                     "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                     "containers": [{"name": "c", "image": "x",
                                     "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                                     "resources": {"requests": sizes, "limits": sizes}}],
                     **spec}}


def pods_of(ns="default"):
    return f"/api/v1/namespaces/{ns}/pods"


def make(c, *args, ns="default", **more):
    return c.rig.post(pods_of(ns), pod(*args, **more))


def look(c, name, ns="default"):
    return c.rig.get(f"{pods_of(ns)}/{name}")


def node_of(p):
    return p["spec"].get("nodeName", "")


def live(c, ns="default"):
    return [p for p in c.pods(ns) if "deletionTimestamp" not in p["metadata"]]


def condition(c, name, ns="default"):
    for one in look(c, name, ns).get("status", {}).get("conditions", []):
        if one["type"] == "PodScheduled":
            return one
    return {}


def wait_bound(c, *names, ns="default"):
    cl.wait_for(f"{names} are bound", lambda: all(node_of(look(c, name, ns)) for name in names))


def wait_word(c, name, word, ns="default"):
    """The message of its condition, once it has the word in it."""
    def said():
        assert not node_of(look(c, name, ns)), f"{name} was bound"
        text = condition(c, name, ns).get("message", "")
        return text if word in text else None
    try:
        return cl.wait_for(f"{name} says {word}", said)
    except AssertionError as why:
        raise AssertionError(f"{why}; it says {condition(c, name, ns)}") from why


def jobs(c):
    return [j for j in c.ask("GET", "/v1/jobs?limit=500")["jobs"] if j["state"] not in cl.ENDED]


def job_named(c, name):
    return cl.wait_for(f"a job {name}", lambda: next((j for j in jobs(c) if j["name"] == name), None))


def clean(c):
    for ns in LIVE:
        with contextlib.suppress(Refused):
            c.rig.delete(pods_of(ns) + "?gracePeriodSeconds=0")
        cl.wait_for("no pod is left", lambda: not c.pods(ns))
    cl.wait_for("no job is left", lambda: not jobs(c))


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


def gpus_by_node(pods):
    used = {}
    for p in pods:
        if node_of(p) and p["status"].get("phase") not in ("Succeeded", "Failed"):
            n = sum(int(x["resources"].get("requests", {}).get(GPU, 0)) for x in p["spec"]["containers"])
            used[node_of(p)] = used.get(node_of(p), 0) + n
    return used


def free_gpus(c):
    """As the daemon counts them."""
    return sum(g["free_milli"] for n in c.ask("GET", "/v1/nodes")["nodes"] for g in n["gpus"]) // 1000


def block(c, gpus, ns="default", prefix="block"):
    """Takes all but so many GPUs, whole nodes first, as somebody else would."""
    left = gpus
    for i in range(NODES):
        take = GPUS - min(gpus, GPUS)
        gpus -= GPUS - take
        if take:
            make(c, f"{prefix}{i}", gpus=take, scheduler="other", nodeName=f"n{i}", ns=ns)
    cl.wait_for("the daemon hears of them", lambda: free_gpus(c) == left)


# ---- Deployments ----

def deployment(name, replicas):
    one = pod("x")
    return {"metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": one["spec"]}}}


@tried("pods of a Deployment are bound, never more than a node has, and shown by ps")
def _(c):
    path = "/apis/apps/v1/namespaces/default/deployments"
    c.rig.post(path, deployment("many", 100))
    cl.wait_for("96 run", lambda: sum(p["status"].get("phase") == "Running" for p in live(c)) == 96)
    assert all(n == GPUS for n in gpus_by_node(live(c)).values()), gpus_by_node(live(c))
    text = run(c, "ps", "--all").stdout
    assert text.count("many-") >= 96, text
    c.rig.patch(f"{path}/many/scale", {"spec": {"replicas": 80}})
    cl.wait_for("80 run", lambda: sum(p["status"].get("phase") == "Running" for p in live(c)) == 80 and len(c.pods("default")) == 80)
    c.rig.delete(f"{path}/many", {"propagationPolicy": "Background"})
    cl.wait_for("no pod is left", lambda: not c.pods("default"))
    cl.wait_for("their jobs have ended", lambda: not jobs(c))
    make(c, "after", gpus=8)
    wait_bound(c, "after")


# ---- gangs ----

class Witness:
    """Hears of every pod: whether one was on two nodes, or a node had more than it has."""

    def __init__(self, c):
        self.nodes, self.twice, self.crowded = {}, [], []
        self.pods = Pods(c.rig, self.hear)

    def __enter__(self):
        self.pods.__enter__()
        return self

    def __exit__(self, *why):
        self.pods.__exit__(*why)

    def hear(self, _, p):
        node = node_of(p)
        if node and self.nodes.setdefault(p["metadata"]["uid"], node) != node:
            self.twice.append(p["metadata"]["name"])
        if node:
            there = [one for one in self.pods.there.values() if node_of(one) == node]
            self.crowded += [f"{n} of {node}" for n in gpus_by_node(there).values() if n > GPUS]

    def check(self):
        self.pods.caught_up()
        same((self.twice, self.crowded), ([], []))


def gang_of(name, size):
    return {"nightshift.dev/gang": name, "nightshift.dev/gang-size": str(size)}


def make_gang(c, name, size, **more):
    for i in range(size):
        make(c, f"{name}-{i}", annotations=gang_of(name, size), **more)


@tried("gang by our annotations: nothing is bound before all are there")
def _(c):
    for i in range(3):
        make(c, f"g-{i}", annotations=gang_of("g", 4))
    for i in range(3):
        wait_word(c, f"g-{i}", "3 of the 4 pods")
    make(c, "g-3", annotations=gang_of("g", 4))
    wait_bound(c, *(f"g-{i}" for i in range(4)))
    same(job_named(c, "g")["replicas"], 4)


@tried("gang by a PodGroup, which comes after its pods")
def _(c):
    for i in range(2):
        make(c, f"pg-{i}", labels={"scheduling.x-k8s.io/pod-group": "pg"})
    wait_word(c, "pg-0", "how many pods start together")
    c.rig.post("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
               {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pg"},
                "spec": {"minMember": 3}})
    wait_word(c, "pg-0", "2 of the 3 pods")
    for i in (2, 3):
        make(c, f"pg-{i}", labels={"scheduling.x-k8s.io/pod-group": "pg"})
    wait_bound(c, *(f"pg-{i}" for i in range(4)))  # the fourth is placed alone


@tried("gang of a PyTorchJob and gang of a JobSet")
def _(c):
    job = c.rig.post("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
                     {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "pt"},
                      "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}})
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "pt", "controller": True,
             "uid": job["metadata"]["uid"]}
    names = ["pt-master-0", "pt-worker-0", "pt-worker-1"]
    for name in names[:2]:
        make(c, name, labels={"training.kubeflow.org/job-name": "pt"}, owner=owner)
    wait_word(c, names[0], "2 of the 3 pods")
    make(c, names[2], labels={"training.kubeflow.org/job-name": "pt"}, owner=owner)
    wait_bound(c, *names)
    c.rig.post("/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
               {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"},
                "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2}}}]}})
    labels = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/restart-attempt": "0"}
    for i in range(3):
        make(c, f"js-{i}", labels=labels)
    wait_word(c, "js-0", "3 of the 4 pods")
    make(c, "js-3", labels=labels)
    wait_bound(c, *(f"js-{i}" for i in range(4)))


def whole(c, gangs, size):
    """How many gangs are bound whole; none is in part."""
    bound = {name: 0 for name in gangs}
    for p in live(c):
        name = p["metadata"]["annotations"].get("nightshift.dev/gang")
        if name in bound:
            bound[name] += bool(node_of(p))
    return sum(n == size for n in bound.values()) if all(n in (0, size) for n in bound.values()) else None


@tried("gangs under contention are placed whole or wait whole")
def _(c):
    block(c, 40, ns="other")
    gangs = [f"c{i}" for i in range(4)]
    with Witness(c) as w:
        threads = [threading.Thread(target=make_gang, args=(c, name, 16)) for name in gangs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        cl.wait_for("two are placed whole", lambda: whole(c, gangs, 16) == 2)
        placed_another(c)
        same(whole(c, gangs, 16), 2)
        first = next(n for n in gangs if node_of(look(c, f"{n}-0")))
        for i in range(16):
            assert "deletionTimestamp" not in look(c, f"{first}-{i}")["metadata"], f"{i} pods went, and another was taken"
            c.rig.delete(f"{pods_of()}/{first}-{i}", {"gracePeriodSeconds": 0})
        cl.wait_for("the next is placed whole", lambda: whole(c, [n for n in gangs if n != first], 16) == 2)
        w.check()


# ---- where ----

def affinity(key, *values):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]}}}


@tried("node selector, affinity, taints and cordon are honoured")
def _(c):
    nodes = "/api/v1/nodes"
    c.rig.patch(f"{nodes}/n3", {"metadata": {"labels": {"disk": "fast"}}})
    c.rig.patch(f"{nodes}/n4", {"spec": {"taints": [{"key": "only", "value": "me", "effect": "NoSchedule"}]}})
    c.rig.patch(f"{nodes}/n5", {"spec": {"unschedulable": True}})
    try:
        make(c, "selects", nodeSelector={"disk": "fast"})
        make(c, "affine", affinity=affinity("kubernetes.io/hostname", "n7"))
        make(c, "bears", tolerations=[{"key": "only", "operator": "Exists"}], nodeSelector={"kubernetes.io/hostname": "n4"})
        make(c, "cordoned", nodeSelector={"kubernetes.io/hostname": "n5"})
        make(c, "tainted", nodeSelector={"kubernetes.io/hostname": "n4"})
        wait_bound(c, "selects", "affine", "bears")
        same([node_of(look(c, n)) for n in ("selects", "affine", "bears")], ["n3", "n7", "n4"])
        for name in ("cordoned", "tainted"):
            wait_word(c, name, " ")  # any: it was looked at, and has no place
        make(c, "later")
        wait_bound(c, "later")  # others are placed after it was looked at
        assert not node_of(look(c, "cordoned")) and not node_of(look(c, "tainted"))
        c.rig.patch(f"{nodes}/n5", {"spec": {"unschedulable": None}})
        wait_bound(c, "cordoned")
        same(node_of(look(c, "cordoned")), "n5")
        c.rig.patch(f"{nodes}/n4", {"spec": {"taints": None}})
        wait_bound(c, "tainted")
    finally:
        c.rig.patch(f"{nodes}/n3", {"metadata": {"labels": {"disk": None}}})
        c.rig.patch(f"{nodes}/n4", {"spec": {"taints": None}})
        c.rig.patch(f"{nodes}/n5", {"spec": {"unschedulable": None}})


@tried("what matches nothing waits, says why in three places, and starts when a label comes")
def _(c):
    make(c, "picky", nodeSelector={"colour": "blue"})
    job = job_named(c, "picky")["id"]
    said = cl.wait_for("its word", lambda: condition(c, "picky").get("message"))
    one = condition(c, "picky")
    same((one["status"], one["reason"]), ("False", "Unschedulable"))
    why = c.ask("GET", f"/v1/jobs/{job}/why")
    assert said.split(";")[0] in json.dumps(why), (said, why)
    assert said.split(";")[0] in run(c, "why", str(job)).stdout, (said, run(c, "why", str(job)).stdout)
    events = cl.wait_for("an event", lambda: [e for e in c.rig.get("/api/v1/namespaces/default/events")["items"]
                                              if e["involvedObject"]["name"] == "picky" and e["reason"] == "FailedScheduling"])
    assert said in [e["message"] for e in events], events
    c.rig.patch("/api/v1/nodes/n9", {"metadata": {"labels": {"colour": "blue"}}})
    try:
        wait_bound(c, "picky")
        same(node_of(look(c, "picky")), "n9")
        same(job_named(c, "picky")["id"], job)
    finally:
        c.rig.patch("/api/v1/nodes/n9", {"metadata": {"labels": {"colour": None}}})


@tried("what we cannot honour is refused in words, and nothing else suffers")
def _(c):
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    make(c, "apart", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    make(c, "spread", topologySpreadConstraints=[{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}])
    make(c, "plain")
    wait_bound(c, "plain")
    wait_word(c, "apart", "nti-affinity")
    wait_word(c, "spread", "spread")
    try:
        make(c, "dra", resourceClaims=[{"name": "r", "resourceClaimName": "r"}])
    except Refused:
        return  # this API server has no DRA
    wait_word(c, "dra", "claim")


# ---- volumes ----

def claim(c, name, storage_class, volume=None):
    return c.rig.post("/api/v1/namespaces/default/persistentvolumeclaims",
                      {"metadata": {"name": name},
                       "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                                "resources": {"requests": {"storage": "1Gi"}},
                                **({"volumeName": volume} if volume else {})}})


def using(name):
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


@tried("volume that is on some nodes only: its pod goes there")
def _(c):
    c.rig.post("/api/v1/persistentvolumes", {
        "metadata": {"name": "pv6"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "there",
                 "hostPath": {"path": "/x"},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [
                     {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n6"]}]}]}}}})
    make(c, "early", volumes=using("data"))
    wait_word(c, "early", "data")
    claim(c, "data", "there", "pv6")
    wait_bound(c, "early")
    same(node_of(look(c, "early")), "n6")
    make(c, "second", volumes=using("data"))
    wait_bound(c, "second")
    same(node_of(look(c, "second")), "n6")


@tried("volume that is made for its first consumer: the claim is told the node")
def _(c):
    c.rig.post("/apis/storage.k8s.io/v1/storageclasses",
               {"metadata": {"name": "first"}, "provisioner": "rig.test/none", "volumeBindingMode": "WaitForFirstConsumer"})
    claim(c, "late", "first")
    make(c, "consumer", volumes=using("late"))
    wait_bound(c, "consumer")
    told = c.rig.get("/api/v1/namespaces/default/persistentvolumeclaims/late")["metadata"]["annotations"]
    same(told["volume.kubernetes.io/selected-node"], node_of(look(c, "consumer")))


# ---- others ----

@tried("what others placed takes room, and gives it back")
def _(c):
    block(c, 4)
    make(c, "five", gpus=5)
    make(c, "four", gpus=4)
    wait_bound(c, "four")
    same(node_of(look(c, "four")), "n0")
    placed_another(c)
    assert not node_of(look(c, "five"))
    same((gpus_there(c, "n0"), gpus_there(c, "n8")), ((4, 4), (0, 8)))
    c.rig.delete(f"{pods_of()}/block8", {"gracePeriodSeconds": 0})
    wait_bound(c, "five")
    same(node_of(look(c, "five")), "n8")
    same(gpus_there(c, "n8"), (8, 0))


def gpus_there(c, name):
    """Of a node: for us, and taken by others."""
    n = next(n for n in c.ask("GET", "/v1/nodes")["nodes"] if n["name"] == name)
    return len(n["gpus"]), n["gpus_of_others"]


# ---- cancelling ----

@tried("cancelled while it runs, it is evicted, also in a namespace that is no tenant's; a budget is heard")
def _(c):
    c.rig.post("/apis/policy/v1/namespaces/other/poddisruptionbudgets",
               {"metadata": {"name": "keep"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}})
    budgets = "/apis/policy/v1/namespaces/other/poddisruptionbudgets/keep"
    make(c, "kept", ns="other", labels={"app": "kept"})
    wait_bound(c, "kept", ns="other")
    cl.wait_for("it runs", lambda: look(c, "kept", "other")["status"].get("phase") == "Running")
    cl.wait_for("the budget counts it", lambda: c.rig.get(budgets)["status"].get("currentHealthy") == 1)
    job = job_named(c, "kept")["id"]
    try:
        same(run(c, "cancel", str(job)).returncode, 0)
        asked(c.rig, "POST", "pods", subresource="eviction", code="429")
        assert "deletionTimestamp" not in look(c, "kept", "other")["metadata"]
    finally:
        c.rig.delete(budgets)
    same(c.wait_end(job)["state"], "cancelled")
    cl.wait_for("it is gone", lambda: not c.pods("other"))


@tried("removed by whoever made it, running or waiting, it is cancelled and says so; another of its name is another job")
def _(c):
    for state, more in (("running", {}), ("queued", {"nodeSelector": {"colour": "none"}})):
        make(c, "fleeting", **more)
        job = job_named(c, "fleeting")["id"]
        c.wait_state(job, state)
        c.rig.delete(f"{pods_of()}/fleeting")
        end = c.wait_end(job)
        same((end["state"], end["end"], end["message"]), ("cancelled", "cancelled", "it was removed, by whoever made it or by a drain"))
    make(c, "fleeting")
    wait_bound(c, "fleeting")
    assert c.wait_state(job_named(c, "fleeting")["id"], "running")["id"] != job


@tried("cancelled while it waits, it says so and is not offered again, also after a restart")
def _(c):
    make(c, "never", nodeSelector={"colour": "none"})
    job = job_named(c, "never")["id"]
    cl.wait_for("its word", lambda: condition(c, "never").get("message"))
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    same(c.wait_end(job)["state"], "cancelled")
    wait_word(c, "never", "cancelled by")
    restart(c)
    placed_another(c)  # it would be offered by now
    same(jobs(c), [])
    wait_word(c, "never", "cancelled by")


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


# ---- tenants ----

@tried("a namespace's tenant is its pods' tenant, and others are the default's or nobody's")
def _(c):
    make(c, "theirs", ns="nightshift-default")
    make(c, "else", ns="other")
    wait_bound(c, "theirs", ns="nightshift-default")
    wait_bound(c, "else", ns="other")
    same({job_named(c, n)["tenant"] for n in ("theirs", "else")}, {"default"})
    clean(c)
    c.kill_daemon()
    c.settings("default_tenant: ''\n")
    c.start()
    c.wait_ready()
    try:
        make(c, "nobodys", ns="other")
        wait_word(c, "nobodys", "belongs to no tenant", "other")
    finally:
        c.kill_daemon()
        c.settings("")
        c.start()
        c.wait_ready()
    wait_bound(c, "nobodys", ns="other")


# ---- restarts ----

@tried("killed while some are bound and some wait: nothing is bound twice and jobs keep their ids")
def _(c):
    block(c, 8, ns="other")
    for i in range(12):
        make(c, f"r{i}")
    cl.wait_for("8 are bound", lambda: sum(bool(node_of(p)) for p in live(c)) == 8)
    before = {j["name"]: j["id"] for j in cl.wait_for("all are known", lambda: (lambda all_: all_ if len(all_) == 12 else None)(jobs(c)))}
    restart(c)
    placed_another(c)  # what is offered again is there by now
    same({j["name"]: j["id"] for j in jobs(c)}, before)
    same(sum(bool(node_of(p)) for p in live(c)), 8)
    gone = next(p["metadata"]["name"] for p in live(c) if node_of(p))
    c.rig.delete(f"{pods_of()}/{gone}", {"gracePeriodSeconds": 0})
    cl.wait_for("another takes its place", lambda: sum(bool(node_of(p)) for p in live(c)) == 8)


@tried("killed in the middle of a gang's binds, five times: every gang is whole in the end")
def _(c):
    chance = random.Random(7)
    gangs = []
    with Witness(c) as w:
        for turn in range(5):
            name = f"k{turn}"
            gangs.append(name)
            make_gang(c, name, 16)
            cl.wait_for("it is taken", lambda: any(j["name"] == name for j in jobs(c)))
            time.sleep(chance.random() * 0.06)
            restart(c)
        cl.wait_for("all are placed whole", lambda: whole(c, gangs, 16) == 5)
        same(sorted(j["name"] for j in jobs(c)), gangs)
        w.check()


@tried("of a gang some go while no daemon is there: the rest is left alone")
def _(c):
    names = [f"rest-{i}" for i in range(4)]
    make_gang(c, "rest", 4)
    wait_bound(c, *names)
    job = c.wait_state(job_named(c, "rest")["id"], "running")["id"]
    c.kill_daemon()
    for name in names[:2]:
        c.rig.delete(f"{pods_of()}/{name}", {"gracePeriodSeconds": 0})
    c.start()
    c.wait_ready()
    placed_another(c)
    same(sorted(p["metadata"]["name"] for p in live(c)), names[2:])
    same(c.job(job)["state"], "running")


# ---- machines that are lent ----

def taints(c, node):
    return {t["key"] for t in c.rig.get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])}


@tried("a machine is in the pool of its label, and while that is closed it has a taint, beside those of others")
def _(c):
    mine, other = "nightshift.dev/handed-back", "someone.else/keep"
    c.ask("PUT", "/v1/pools/desks", {})
    c.rig.patch("/api/v1/nodes/n0", {"metadata": {"labels": {"nightshift.dev/pool": "desks"}},
                                     "spec": {"taints": [{"key": other, "effect": "PreferNoSchedule"}]}})
    cl.wait_for("it is in its pool", lambda: {n["name"]: n for n in c.ask("GET", "/v1/nodes")["nodes"]}["n0"].get("pool") == "desks")
    c.ask("POST", "/v1/pools/desks/close", {"for": "1h"})
    cl.wait_for("it is marked", lambda: taints(c, "n0") == {mine, other})
    same(taints(c, "n1"), set())
    restart(c)
    same(taints(c, "n0"), {mine, other})
    c.ask("POST", "/v1/pools/desks/open", {"for": "1h"})
    cl.wait_for("it is ours again", lambda: taints(c, "n0") == {other})
    c.rig.patch("/api/v1/nodes/n0", {"metadata": {"labels": {"nightshift.dev/pool": None}}, "spec": {"taints": None}})
    cl.wait_for("it is in none", lambda: not {n["name"]: n for n in c.ask("GET", "/v1/nodes")["nodes"]}["n0"].get("pool"))
    c.ask("DELETE", "/v1/pools/desks")


@tried("a node leaves the cluster: its pods' jobs end, and one that comes under its name is used")
def _(c):
    make(c, "there", nodeSelector={"kubernetes.io/hostname": "n11"})
    wait_bound(c, "there")
    job = c.wait_state(job_named(c, "there")["id"], "running")["id"]
    c.rig.delete("/api/v1/nodes/n11")
    cl.wait_for("it takes no more", lambda: all(n["name"] != "n11" or n["state"] != "up" for n in c.ask("GET", "/v1/nodes")["nodes"]))
    make(c, "waits", nodeSelector={"kubernetes.io/hostname": "n11"})
    wait_word(c, "waits", " ")
    c.rig.delete(f"{pods_of()}/there", {"gracePeriodSeconds": 0})
    assert c.wait_end(job)["state"] in cl.ENDED
    c.rig.kwok_nodes(1, gpus=GPUS, first=11)
    wait_bound(c, "waits")
    same(node_of(look(c, "waits")), "n11")


@tried("one that may be preempted is evicted when it is taken back, and its job ends")
def _(c):
    make(c, "gives", gpus=8, annotations={"nightshift.dev/preemptible": "true"})
    make(c, "stays", gpus=8)
    wait_bound(c, "gives", "stays")
    first, second = (c.wait_state(job_named(c, n)["id"], "running")["id"] for n in ("gives", "stays"))
    assert c.call("POST", f"/v1/jobs/{second}/freeze")[0] >= 400
    c.ask("POST", f"/v1/jobs/{first}/freeze")
    cl.wait_for("it is gone", lambda: [p["metadata"]["name"] for p in c.pods("default")] == ["stays"])
    same(c.wait_end(first)["state"], "cancelled")


# ---- what they are tried on ----

def define(rig, group, version, kind, plural):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    rig.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             {"metadata": {"name": f"{plural}.{group}",
                           "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"}},
              "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                       "versions": [{"name": version, "served": True, "storage": True,
                                     "schema": {"openAPIV3Schema": schema}}]}})
    rig.wait(lambda: rig.get(f"/apis/{group}/{version}/namespaces/default/{plural}"), f"{kind} is served")


@contextlib.contextmanager
def kwok_nodes():
    with Rig(kwok=True) as rig:
        rig.kwok_nodes(NODES, gpus=GPUS)
        rig.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
        for one in CRDS:
            define(rig, *one)
        with KubeCluster(rig) as c:
            text = subprocess.run([helm(), "template", "nightshift", CHART, "--namespace", OWN, "--show-only",
                                   "templates/admission.yaml"], capture_output=True, text=True, timeout=cl.PATIENCE_S, check=True).stdout
            rig.kubectl("apply", "--server-side", "-f", "-", input=text)
            c.up()
            for ns in LIVE:
                rig.wait(lambda: rig.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default"), f"{ns} has its account")
            yield c


if __name__ == "__main__":
    sys.exit(case.on(kwok_nodes, why_not))
