"""kube_devices_cases - extended resources on nodes that are only pretended (KWOK): two machines with whole GPUs,
slices of others and network cards, one whose GPU is shared by four, one that calls forty shares GPUs, and two
with whole GPUs and one network card.  Every case cleans up after itself."""
import contextlib
import sys

import cluster as cl
from cases import Cases, same
from kube_cluster import KubeCluster, Rig, why_not
from kube_pods_cases import clean, condition, gang_of, job_named, live, look, node_of, pod, pods_of, restart, run, wait_bound

case = Cases()
GPU = "nvidia.com/gpu"
SLICE, THIRD, SHARED, CARD = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "nvidia.com/gpu.shared", "rdma/hca"
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.count": "6",
        "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed"}
L4 = {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.memory": "23034", "nvidia.com/gpu.count": "1",
      "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
T4 = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "10",
      "nvidia.com/gpu.sharing-strategy": "time-slicing"}


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


def make(c, name, wants, gang=None, scheduler="nightshift", **spec):
    """A pod with these extended resources."""
    p = pod(name, gpus=0, annotations=gang_of(*gang) if gang else None, scheduler=scheduler, **spec)
    sizes = {"cpu": "100m", "memory": "64Mi", **{k: str(v) for k, v in wants.items()}}
    p["spec"]["containers"][0]["resources"] = {"requests": sizes, "limits": sizes}
    return c.rig.post(pods_of(), p)


def bound(c, prefix):
    """Of the pods whose name begins so: those that have a node."""
    return {p["metadata"]["name"]: node_of(p) for p in live(c) if p["metadata"]["name"].startswith(prefix) and node_of(p)}


def used(c, resource):
    """By node, of all pods there are."""
    by = {}
    for p in c.pods():
        n = sum(int(x["resources"].get("requests", {}).get(resource, 0)) for x in p["spec"]["containers"])
        if node_of(p) and n:
            by[node_of(p)] = by.get(node_of(p), 0) + n
    return by


def wait_word(c, name, *words):
    """It is not bound and its condition has one of the words in it."""
    def said():
        assert not node_of(look(c, name)), f"{name} was bound"
        text = condition(c, name).get("message", "")
        return text if any(w in text for w in words) else None
    try:
        return cl.wait_for(f"{name} says {words}", said)
    except AssertionError as why:
        raise AssertionError(f"{why}; it says {condition(c, name)}") from why


def wait_count(c, prefix, n):
    cl.wait_for(f"{n} of {prefix} are bound", lambda: len(bound(c, prefix)) == n)


def waiting(c, prefix):
    return [p["metadata"]["name"] for p in live(c) if p["metadata"]["name"].startswith(prefix) and not node_of(p)]


def delete(c, *names):
    for name in names:
        c.rig.delete(f"{pods_of()}/{name}", {"gracePeriodSeconds": 0})
    cl.wait_for("they are gone", lambda: not {p["metadata"]["name"] for p in c.pods("default")} & set(names))


def machine(c, name):
    return {n["name"]: n for n in c.ask("GET", "/v1/nodes")["nodes"]}[name]


@tried("slices are placed where they are, and who waits is told so in the condition and by why")
def _(c):
    for i in range(16):
        make(c, f"s{i}", {SLICE: 1})
    wait_count(c, "s", 14)
    same(used(c, SLICE), {"m0": 7, "m1": 7})
    left = waiting(c, "s")
    same(len(left), 2)
    text = wait_word(c, left[0], "free")
    assert f"needs 1 of {SLICE}; the largest machine has 0 free" in text, text
    said = run(c, "why", str(job_named(c, left[0])["id"])).stdout
    assert f"needs 1 of {SLICE}; the largest machine has 0 free" in said, said
    delete(c, *list(bound(c, "s"))[:2])
    wait_bound(c, *left)
    assert all(n <= 7 for n in used(c, SLICE).values()), used(c, SLICE)


@tried("gangs have all of their slices or none")
def _(c):
    for i in range(3):
        make(c, f"a{i}", {THIRD: 1}, gang=("a", 3))
    wait_bound(c, "a0", "a1", "a2")
    for i in range(2):
        make(c, f"b{i}", {THIRD: 1, SLICE: 1}, gang=("b", 2))
    wait_word(c, "b0", THIRD, SLICE)
    wait_word(c, "b1", THIRD, SLICE)
    same(sum(used(c, THIRD).values()), 3)
    delete(c, "a0", "a1", "a2")
    wait_bound(c, "b0", "b1")
    for i in range(5):
        make(c, f"never{i}", {THIRD: 1}, gang=("never", 5))
    wait_word(c, "never0", "do not fit")
    same(bound(c, "never"), {})


@tried("shares of a GPU are counted one by one, and as their part of a GPU")
def _(c):
    for i in range(5):
        make(c, f"q{i}", {SHARED: 1})
    wait_count(c, "q", 4)
    same(used(c, SHARED), {"s0": 4})
    wait_word(c, waiting(c, "q")[0], f"needs 1 of {SHARED}")
    same({t["name"]: t["used"]["gpus"] for t in c.ask("GET", "/v1/quota")["tenants"]}["default"], 1)


@tried("a GPU and a network card come from one machine, and what others took of it is not given again")
def _(c):
    make(c, "other", {CARD: 2, SLICE: 5}, scheduler="other", nodeName="m0")
    cl.wait_for("it is counted", lambda: CARD not in machine(c, "m0")["devices"])
    same(machine(c, "m0")["devices"][SLICE]["total"], 2)
    for i in range(5):
        make(c, f"r{i}", {GPU: 1, CARD: 1})
    wait_count(c, "r", 4)
    same(used(c, CARD), {"m0": 2, "m1": 2, "w0": 1, "w1": 1})
    for i in range(10):
        make(c, f"s{i}", {SLICE: 1})
    wait_count(c, "s", 9)
    same(used(c, SLICE), {"m0": 7, "m1": 7})
    delete(c, "other")
    wait_count(c, "r", 5)
    wait_count(c, "s", 10)


@tried("more GPUs than a machine may have are counted as shares")
def _(c):
    for name in ("t0", "t1"):
        make(c, name, {GPU: 20})
    wait_bound(c, "t0", "t1")
    same(used(c, GPU), {"t0": 40})
    make(c, "t2", {GPU: 20})
    wait_word(c, "t2", f"needs 20 of {GPU}; the largest machine has 0 free")
    make(c, "whole", {GPU: 8})  # as many are whole ones
    wait_bound(c, "whole")
    assert node_of(look(c, "whole")) in ("w0", "w1"), look(c, "whole")["spec"]["nodeName"]


@tried("a job of ours says --device, and gets it or is refused with the reason")
def _(c):
    r = run(c, "run", "--detach", "-o", "name", "--device", f"{SLICE}=3", "--device", CARD, "--image", "x", "--", "sleep", "600")
    same((r.returncode, r.stderr), (0, ""))
    number = int(r.stdout)
    c.wait_state(number, "running")
    (p,) = c.job_pods(number)
    sizes = p["spec"]["containers"][0]["resources"]["limits"]
    same((sizes[SLICE], sizes[CARD], GPU in sizes), ("3", "1", False))
    assert node_of(p) in ("m0", "m1"), node_of(p)
    same(c.ask("GET", f"/v1/jobs/{number}")["spec"]["resources"]["devices"], {SLICE: 3, CARD: 1})
    same(machine(c, node_of(p))["devices"][SLICE], {"total": 7, "free": 4})
    for device, why in ((f"{SLICE}=8", f"8 of {SLICE} on one machine; the largest has 7"), ("x.org/none=1", "no machine has"),
                        ("x.org/none", "no machine has"), (f"{SLICE}=0", "is not NAME=COUNT")):
        r = run(c, "run", "--detach", "--device", device, "--image", "x", "--", "true")
        assert r.returncode and why in r.stderr, (device, r.stderr)
    run(c, "cancel", str(number))


@tried("hugepages are refused by name")
def _(c):
    make(c, "huge", {"hugepages-2Mi": "4Mi"})
    wait_word(c, "huge", "it asks for hugepages-2Mi, which is not counted here")


@tried("a restarted daemon knows what is held, and a plugin that reports more makes room")
def _(c):
    for i in range(16):
        make(c, f"s{i}", {SLICE: 1})
    wait_count(c, "s", 14)
    restart(c)
    left = waiting(c, "s")
    wait_word(c, left[0], "free")
    same(used(c, SLICE), {"m0": 7, "m1": 7})
    sizes = {"status": {"capacity": {SLICE: "9"}, "allocatable": {SLICE: "9"}}}
    c.rig.patch("/api/v1/nodes/m1/status", sizes)
    try:
        wait_bound(c, *left)
        same(used(c, SLICE), {"m0": 7, "m1": 9})
    finally:
        clean(c)
        c.rig.patch("/api/v1/nodes/m1/status", {"status": {"capacity": {SLICE: "7"}, "allocatable": {SLICE: "7"}}})
        cl.wait_for("it has as many as before", lambda: machine(c, "m1")["devices"][SLICE]["total"] == 7)


@contextlib.contextmanager
def kwok_nodes():
    with Rig(kwok=True) as rig:
        rig.kwok_nodes(2, gpus=4, prefix="m", labels=A100, more={SLICE: "7", THIRD: "2", CARD: "2"})
        rig.kwok_nodes(1, gpus=0, prefix="s", labels=L4, more={SHARED: "4"})
        rig.kwok_nodes(1, gpus=40, prefix="t", labels=T4)
        rig.kwok_nodes(2, gpus=8, prefix="w", more={CARD: "1"})
        rig.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
        with KubeCluster(rig) as c:
            c.up()
            for ns in ("default", "nightshift-default"):
                rig.wait(lambda: rig.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default"), f"{ns} has its account")
            yield c


if __name__ == "__main__":
    sys.exit(case.on(kwok_nodes, why_not))
