"""kube_owners - gangs that belong to a Job, a JobSet, a PyTorchJob or a RayCluster, on nodes that are only pretended (KWOK).

Pods run until somebody says that they are done; KWOK's own stages end those of a Job at once."""
import contextlib
import subprocess
import tempfile

import cluster as cl
from kube_cluster import CHART, OWN, KubeCluster, Refused, Rig, helm
from kube_pods_cases import define, jobs, live, node_of, pod, pods_of

NODES, GPUS = 2, 4
SPACES = ("nightshift-a", "nightshift-b")
MAY = {"nightshift.dev/preemptible": "true"}
BY = "nightshift.dev/suspended-by"
DONE = "test/done"
SETTINGS = """
default_tenant: a
tenants: { a: {}, b: {} }
policy: { min_run: 500ms, thaw_run: 1s, review: 300ms }
"""
CRDS = (("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"), ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"))
PATHS = {"Job": "/apis/batch/v1", "JobSet": "/apis/jobset.x-k8s.io/v1alpha2", "PyTorchJob": "/apis/kubeflow.org/v1",
         "RayJob": "/apis/ray.io/v1", "RayCluster": "/apis/ray.io/v1"}

STAGE = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {{ name: {name} }}
spec:
  resourceRef: {{ apiGroup: v1, kind: Pod }}
  selector: {{ matchExpressions: [ {when} ] }}
  next: {next}
---
"""
GONE = "{ key: .metadata.deletionTimestamp, operator: %s }"
RUNS = """
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      startTime: {{ $now | Quote }}
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
      conditions:
      {{ range $type := list "Initialized" "ContainersReady" "Ready" }}
      - { type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - { image: {{ .image | Quote }}, name: {{ .name | Quote }}, ready: true, restartCount: 0,
          state: { running: { startedAt: {{ $now | Quote }} } } }
      {{ end }}
"""
ENDS = """
    statusTemplate: |
      {{ $now := Now }}
      phase: Succeeded
      containerStatuses:
      {{ range .spec.containers }}
      - { image: {{ .image | Quote }}, name: {{ .name | Quote }}, ready: false, restartCount: 0,
          state: { terminated: { exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }} } } }
      {{ end }}
"""


def stages(folder):
    path = f"{folder}/stages.yaml"
    here = GONE % "DoesNotExist"
    with open(path, "w", encoding="utf-8") as f:
        f.write(STAGE.format(name="runs", when=here + ", { key: .status.podIP, operator: DoesNotExist }", next=RUNS))
        f.write(STAGE.format(name="ends", next=ENDS, when=here + ", { key: .status.phase, operator: In, values: [Running] }, "
                             f"{{ key: '.metadata.annotations[\"{DONE}\"]', operator: Exists }}"))
        f.write(STAGE.format(name="goes", when=GONE % "Exists", next="{ finalizers: { empty: true }, delete: true }"))
    return path


def path_of(kind, name="", ns=SPACES[0]):
    return f"{PATHS[kind]}/namespaces/{ns}/{kind.lower()}s{'/' if name else ''}{name}"


def job(name, n, may=True, gpus=1):
    one = pod("x", gpus=gpus)
    one["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name},
            "spec": {"parallelism": n, "completions": n, "backoffLimit": 1000,
                     "template": {"metadata": {"labels": {"app": name},
                                               "annotations": {"nightshift.dev/gang-size": "all", **(MAY if may else {})}},
                                  "spec": one["spec"]}}}


def make_job(c, name, n, ns=SPACES[0], **more):
    c.rig.post(path_of("Job", ns=ns), job(name, n, **more))
    wait_runs(c, name, n, ns)


def of(c, name, ns=SPACES[0]):
    return [p for p in live(c, ns) if p["metadata"].get("labels", {}).get("app") == name]


def wait_runs(c, name, n, ns=SPACES[0], called=None):
    """All its pods run, and so does the job that stands for it, called so or as it is; that job."""
    cl.wait_for(f"the {n} pods of {name} run",
                lambda: [p["status"].get("phase") for p in of(c, name, ns)] == ["Running"] * n)
    called = called or name
    return cl.wait_for(f"{called} runs", lambda: next((j for j in jobs(c) if j["name"] == called and j["state"] == "running"), None))


def owner(c, kind, name, ns=SPACES[0]):
    return c.rig.get(path_of(kind, name, ns))


def is_suspended(o):
    spec = o["spec"]
    return bool((spec.get("runPolicy", {}) if o["kind"] == "PyTorchJob" else spec).get("suspend"))


def suspended_by(o):
    return o["metadata"].get("annotations", {}).get(BY, "")


def wait_frozen(c, number, kind, name, ns=SPACES[0]):
    """It is suspended by us, nothing of it is left, and its job waits."""
    c.wait_state(number, "frozen")
    cl.wait_for(f"no pod of {name} is left", lambda: not of(c, name, ns))
    o = owner(c, kind, name, ns)
    assert is_suspended(o) and suspended_by(o), o


def done(c, name, ns=SPACES[0]):
    for p in of(c, name, ns):
        c.rig.patch(f"{pods_of(ns)}/{p['metadata']['name']}", {"metadata": {"annotations": {DONE: "true"}}})


def gang(c, name, n, ns=SPACES[1], notes=None, **more):
    """Pods that belong to nobody, and start together."""
    note = {"nightshift.dev/gang": name, "nightshift.dev/gang-size": str(n), **(notes or {})}
    for i in range(n):
        c.rig.post(pods_of(ns), pod(f"{name}-{i}", labels={"app": name}, annotations=note, **more))


def bound(c, name, ns=SPACES[1]):
    return sum(bool(node_of(p)) for p in of(c, name, ns))


def clean(c, spaces=SPACES):
    for ns in spaces:
        with contextlib.suppress(Refused):
            c.rig.delete(f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets")
        for kind in PATHS:
            with contextlib.suppress(Refused):
                c.rig.delete(path_of(kind, ns=ns) + "?propagationPolicy=Background")
        with contextlib.suppress(Refused):
            c.rig.delete(pods_of(ns) + "?gracePeriodSeconds=0")
        cl.wait_for("no pod is left", lambda: not c.pods(ns))
    cl.wait_for("no job is left", lambda: not jobs(c))


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


def rights(c, *values):
    """The chart's, with these values."""
    argv = [helm(), "template", "nightshift", CHART, "--namespace", OWN, "--show-only", "templates/rbac.yaml"]
    text = subprocess.run([*argv, *(f"--set={v}" for v in values)], capture_output=True, text=True, timeout=cl.PATIENCE_S, check=True).stdout
    c.rig.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)


@contextlib.contextmanager
def site(crds=CRDS, nodes=NODES, gpus=GPUS):
    """A daemon with two tenants, on so many GPUs, under the chart's rights and rules of admission."""
    with tempfile.TemporaryDirectory(prefix="ns.") as folder, Rig(kwok=stages(folder)) as rig:
        rig.kwok_nodes(nodes, gpus=gpus)
        for one in crds:
            define(rig, *one)
        with KubeCluster(rig) as c:
            text = subprocess.run([helm(), "template", "nightshift", CHART, "--namespace", OWN, "--show-only",
                                   "templates/admission.yaml"], capture_output=True, text=True, timeout=cl.PATIENCE_S, check=True).stdout
            rig.kubectl("apply", "--server-side", "-f", "-", input=text)
            c.settings(SETTINGS)
            c.up()
            for ns in SPACES:
                rig.wait(lambda ns=ns: rig.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default"), f"{ns} has its account")
            yield c
