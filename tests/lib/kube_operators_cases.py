"""kube_operators_cases - gangs of the real operators: JobSet's, Kubeflow's for PyTorchJobs, and KubeRay's.

Their controllers run as processes, with the definitions of their release and without their webhooks; nodes are only
pretended (KWOK).  There is no Ray in the pods, so no RayJob comes to its end.  make test-kube-long builds them."""
import contextlib
import os
import subprocess
import sys

import cluster as cl
import kube_owners
from cases import Cases, same
from patience import PATIENCE_S
from kube_cluster import KUBE, why_not
from kube_owners import (DONE, MAY, SPACES, bound, clean, gang, is_suspended, of, owner, path_of, restart, suspended_by, wait_frozen,
                         wait_runs)
from kube_pods_cases import condition, jobs, make, pod, pods_of, run, wait_bound, wait_word

case = Cases()
OPERATORS = ("jobset", "training", "ray")
NS = "default"  # PyTorchJobs add a container that the rules of a tenant's namespace refuse


def built():
    return subprocess.run([f"{KUBE}/build-operators", "--where"], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout.strip()


def missing():
    return why_not() or (None if os.path.exists(f"{built()}/ray") else "the operators are not built: make test-kube-long")


def template(name, container="c", gpus=1):
    one = pod("x", gpus=gpus)["spec"]
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


def ray_spec(app, workers):
    """A head without GPUs, and workers.  It says more of them than the operator makes: maxReplicas has the last word."""
    def part(container, gpus, **more):
        one = template(app, container, gpus)
        del one["spec"]["restartPolicy"]  # Ray's are made again
        return {"rayStartParams": {}, "template": one, **more}
    return {"rayVersion": "2.52.0", "headGroupSpec": part("head", 0),
            "workerGroupSpecs": [part("worker", 1, groupName="w", replicas=workers + 2, minReplicas=0, maxReplicas=workers)]}


def ray_cluster(name, workers=3):
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": ray_spec(name, workers)}


def ray_job(name, workers=3):
    submitter = template(f"{name}-submitter", gpus=0)
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name},
            "spec": {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "submissionMode": "K8sJobMode",
                     "submitterPodTemplate": submitter, "rayClusterSpec": ray_spec(name, workers)}}


def holds(c, kind, name, word):
    return any(x["type"] == word and x["status"] == "True"
               for x in owner(c, kind, name, NS).get("status", {}).get("conditions", []))


def wait_told(c, name, n):
    try:
        cl.wait_for("it waits", lambda: any(j["name"] == name and j["replicas"] == n for j in jobs(c)))
    except AssertionError as why:
        said = [(p["metadata"]["name"], p["metadata"]["labels"], condition(c, p["metadata"]["name"], NS)) for p in of(c, name, NS)]
        raise AssertionError(f"{why}; there are {jobs(c)}; pods say {said}") from why


def waits(c, kind, document, n, job=None):
    """Two GPUs are left, all its pods are made, and none is bound: each says why."""
    name = document["metadata"]["name"]
    for i in range(2):
        make(c, f"block{i}", gpus=4 - i * 2, ns=NS)
    wait_bound(c, "block0", "block1", ns=NS)
    c.rig.post(path_of(kind, ns=NS), document)
    cl.wait_for("its pods are made", lambda: len(of(c, name, NS)) == n)
    wait_told(c, job() if job else name, n)
    for p in of(c, name, NS):
        wait_word(c, p["metadata"]["name"], f"needs {n} GPUs; 2 free now", NS)
    same(bound(c, name, NS), 0)


def life(c, kind, document, n=3):
    """Placed all or nothing, suspended whole, given back whole; its job."""
    name = document["metadata"]["name"]
    waits(c, kind, document, n)
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
    return number


def finish(c, kind, name, number, last):
    for p in of(c, name, NS):
        c.rig.patch(f"{pods_of(NS)}/{p['metadata']['name']}", {"metadata": {"annotations": {DONE: "true"}}})
    cl.wait_for(f"{name} is {last}", lambda: holds(c, kind, name, last))
    same(c.wait_end(number)["state"], "succeeded")


def tried(sentence):
    """A case that leaves nothing behind."""
    def keep(fn):
        def whole(c):
            try:
                fn(c)
            finally:
                clean(c, (NS, *SPACES))
        case(sentence)(whole)
        return fn
    return keep


@tried("PyTorchJob with a master and two workers, by Kubeflow's own operator")
def _(c):
    finish(c, "PyTorchJob", "pt", life(c, "PyTorchJob", pytorch_job("pt")), "Succeeded")


@tried("JobSet of two replicated jobs, by its own operator")
def _(c):
    finish(c, "JobSet", "js", life(c, "JobSet", job_set("js")), "Completed")


def wait_ray(c, name, state, ns=NS):
    """Its operator sees it so too."""
    cl.wait_for(f"{name} is {state}", lambda: owner(c, "RayCluster", name, ns).get("status", {}).get("state") == state)


@tried("RayCluster with a head and three workers, by its own operator")
def _(c):
    number = life(c, "RayCluster", ray_cluster("rc"), 4)
    wait_ray(c, "rc", "ready")
    c.rig.delete(path_of("RayCluster", "rc", NS))  # it has no other end
    end = c.wait_end(number)
    same((end["state"], end["end"], end["message"]), ("cancelled", "cancelled", "it was removed, by whoever made it or by a drain"))


@tried("RayCluster whose GPUs another tenant is due is suspended whole, and comes back when they are free")
def _(c):
    space, theirs = SPACES
    make(c, "stays", gpus=4, ns=space)
    c.rig.post(path_of("RayCluster", ns=space), ray_cluster("rc"))
    number, before = wait_runs(c, "rc", 4, space)["id"], {p["metadata"]["uid"] for p in of(c, "rc", space)}
    wait_ray(c, "rc", "ready", space)
    gang(c, "theirs", 4, theirs)
    cl.wait_for("the other is placed", lambda: bound(c, "theirs", theirs) == 4)
    wait_frozen(c, number, "RayCluster", "rc", space)
    wait_ray(c, "rc", "suspended", space)
    c.rig.delete(f"{pods_of(theirs)}?labelSelector=app%3Dtheirs")
    same(wait_runs(c, "rc", 4, space)["id"], number)
    wait_ray(c, "rc", "ready", space)
    assert not before & {p["metadata"]["uid"] for p in of(c, "rc", space)}
    o = owner(c, "RayCluster", "rc", space)
    assert not is_suspended(o) and not suspended_by(o), o


def cluster_of(c, name):
    return owner(c, "RayJob", name, NS).get("status", {}).get("rayClusterName", "")


@tried("RayJob: its cluster is placed whole or not at all, and then what submits it")
def _(c):
    waits(c, "RayJob", ray_job("rj"), 4, lambda: cluster_of(c, "rj"))
    same(of(c, "rj-submitter", NS), [])
    c.rig.delete(f"{pods_of(NS)}/block1", {"gracePeriodSeconds": 0})
    wait_runs(c, "rj", 4, NS, cluster_of(c, "rj"))
    wait_ray(c, cluster_of(c, "rj"), "ready")
    submitter = cl.wait_for("it is submitted", lambda: of(c, "rj-submitter", NS))[0]["metadata"]["name"]
    wait_runs(c, "rj-submitter", 1, NS, submitter)
    cl.wait_for("its operator waits for Ray", lambda: owner(c, "RayJob", "rj", NS)["status"]["jobDeploymentStatus"] == "Running")


@tried("RayJob: its cluster is evicted whole when it is taken back, keeps no place, and its user can start it again as another")
def _(c):
    make(c, "stays", gpus=4, ns=NS)
    c.rig.post(path_of("RayJob", ns=NS), ray_job("again"))
    first = cl.wait_for("it has a cluster", lambda: cluster_of(c, "again"))
    number, before = wait_runs(c, "again", 4, NS, first)["id"], {p["metadata"]["uid"] for p in of(c, "again", NS)}
    cl.wait_for("it is provisioned", lambda: holds(c, "RayCluster", first, "RayClusterProvisioned"))
    gang(c, "theirs", 4)
    cl.wait_for("the other is placed", lambda: bound(c, "theirs") == 4)
    assert not before & {p["metadata"]["uid"] for p in of(c, "again", NS)}
    c.rig.delete(f"{pods_of(SPACES[1])}?labelSelector=app%3Dtheirs")
    # Its operator may make workers again, but no head.
    assert c.wait_end(number)["state"] in ("failed", "cancelled"), c.job(number)
    same(bound(c, "again", NS), 0)
    o = owner(c, "RayCluster", first, NS)
    assert not is_suspended(o) and not suspended_by(o), o
    c.rig.patch(path_of("RayJob", "again", NS), {"spec": {"suspend": True}})
    cl.wait_for("nothing of it is left", lambda: [p["metadata"]["name"] for p in c.pods(NS)] == ["stays"])
    c.rig.patch(path_of("RayJob", "again", NS), {"spec": {"suspend": False}})
    second = cl.wait_for("it has another cluster", lambda: cluster_of(c, "again"))
    assert second != first and wait_runs(c, "again", 4, NS, second)["id"] != number


@contextlib.contextmanager
def with_operators():
    with kube_owners.site(crds=()) as c:
        for name in OPERATORS:
            c.rig.kubectl("apply", "--server-side", "-f", f"{built()}/{name}.yaml")
        for kind in ("JobSet", "PyTorchJob", "RayCluster", "RayJob"):
            c.rig.wait(lambda kind=kind: c.rig.get(path_of(kind, ns=NS)), f"{kind} is served")
        for name in OPERATORS:
            c.rig.add(name, ["env", f"KUBECONFIG={c.rig.kubeconfig}", f"{built()}/{name}"])
        yield c


if __name__ == "__main__":
    sys.exit(case.on(with_operators, missing))
