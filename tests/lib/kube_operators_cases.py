"""kube_operators_cases - gangs of the real operators: JobSet's, and Kubeflow's for PyTorchJobs.

Their controllers run as processes, with the definitions of their release and without their webhooks; nodes are only
pretended (KWOK).  make test-kube-long builds them."""
import contextlib
import os
import subprocess
import sys
import time

import cluster as cl
import kube_owners
from cases import Cases, same
from kube_cluster import KUBE, why_not
from kube_owners import DONE, MAY, bound, clean, is_suspended, of, owner, path_of, restart, suspended_by, wait_runs
from kube_pods_cases import condition, jobs, make, pod, pods_of, run, wait_bound

case = Cases()
NS = "default"  # PyTorchJobs add a container that the rules of a tenant's namespace refuse


def built():
    return subprocess.run([f"{KUBE}/build-operators", "--where"], capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def missing():
    return why_not() or (None if os.path.exists(f"{built()}/training") else "the operators are not built: make test-kube-long")


def template(name, container="c"):
    one = pod("x")["spec"]
    one["containers"][0]["name"] = container
    return {"metadata": {"labels": {"app": name}, "annotations": MAY}, "spec": {**one, "restartPolicy": "Never"}}


def pytorch_job(name):
    def replicas(n):
        return {"replicas": n, "restartPolicy": "Never", "template": template(name, "pytorch")}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"runPolicy": {"cleanPodPolicy": "None"},
                     "pytorchReplicaSpecs": {"Master": replicas(1), "Worker": replicas(2)}}}


def job_set(name):
    def part(part_name, n):
        return {"name": part_name, "replicas": 1, "template": {"spec": {
            "parallelism": n, "completions": n, "completionMode": "Indexed", "backoffLimit": 0, "template": template(name)}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [part("lead", 1), part("work", 2)], "successPolicy": {"operator": "All", "targetReplicatedJobs": []},
                     "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                     "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True}}}


def ended(c, kind, name, word):
    return any(x["type"] == word and x["status"] == "True"
               for x in owner(c, kind, name, NS).get("status", {}).get("conditions", []))


def wait_told(c, name, n):
    try:
        cl.wait_for("it waits", lambda: any(j["name"] == name and j["replicas"] == n for j in jobs(c)))
    except AssertionError as why:
        said = [(p["metadata"]["name"], p["metadata"]["labels"], condition(c, p["metadata"]["name"], NS)) for p in of(c, name, NS)]
        raise AssertionError(f"{why}; there are {jobs(c)}; pods say {said}") from why


def life(c, kind, document, last):
    """Placed all or nothing, suspended whole, given back whole, finished."""
    name, n = document["metadata"]["name"], 3
    for i in range(2):  # two GPUs are left
        make(c, f"block{i}", gpus=4 - i * 2, ns=NS)
    wait_bound(c, "block0", "block1", ns=NS)
    c.rig.post(path_of(kind, ns=NS), document)
    cl.wait_for("its pods are made", lambda: len(of(c, name, NS)) == n)
    wait_told(c, name, n)
    time.sleep(2)
    same(bound(c, name, NS), 0)
    c.rig.delete(f"{pods_of(NS)}/block1", {"gracePeriodSeconds": 0})
    number, before = wait_runs(c, name, n, NS)["id"], {p["metadata"]["uid"] for p in of(c, name, NS)}
    same(run(c, "freeze", str(number)).returncode, 0)
    c.wait_state(number, "frozen")
    cl.wait_for("none is left", lambda: not of(c, name, NS))
    o = owner(c, kind, name, NS)
    assert is_suspended(o) and suspended_by(o), o
    restart(c)
    same(c.job(number)["state"], "frozen")
    same(run(c, "thaw", str(number)).returncode, 0)
    same(wait_runs(c, name, n, NS)["id"], number)
    assert not before & {p["metadata"]["uid"] for p in of(c, name, NS)}
    o = owner(c, kind, name, NS)
    assert not is_suspended(o) and not suspended_by(o), o
    for p in of(c, name, NS):
        c.rig.patch(f"{pods_of(NS)}/{p['metadata']['name']}", {"metadata": {"annotations": {DONE: "true"}}})
    cl.wait_for(f"{name} is {last}", lambda: ended(c, kind, name, last))
    same(c.wait_end(number)["state"], "succeeded")


def tried(c, *args):
    try:
        life(c, *args)
    finally:
        clean(c, (NS,))


@case("PyTorchJob with a master and two workers, by Kubeflow's own operator")
def _(c):
    tried(c, "PyTorchJob", pytorch_job("pt"), "Succeeded")


@case("JobSet of two replicated jobs, by its own operator")
def _(c):
    tried(c, "JobSet", job_set("js"), "Completed")


@contextlib.contextmanager
def with_operators():
    with kube_owners.site(crds=()) as c:
        for name in ("jobset", "training"):
            c.rig.kubectl("apply", "--server-side", "-f", f"{built()}/{name}.yaml")
        for kind in ("JobSet", "PyTorchJob"):
            c.rig.wait(lambda kind=kind: c.rig.get(path_of(kind, ns=NS)), f"{kind} is served")
        for name in ("jobset", "training"):
            c.rig.add(name, ["env", f"KUBECONFIG={c.rig.kubeconfig}", f"{built()}/{name}"])
        yield c


if __name__ == "__main__":
    sys.exit(case.on(with_operators, missing))
