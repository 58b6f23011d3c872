"""kube_site - the chart installed on a real API server, with two tenants made as the daemon makes them.

The tenants' objects come from build/print_tenant, which prints what src/engine/kube/tenant_make.c gives, and
are sent as the daemon's own account, so that the chart's roles are tried with every one of them.
"""
import http.client
import json
import os
import subprocess
import sys

SOURCE, BUILD = os.environ["NIGHTSHIFT_SOURCE"], os.environ["NIGHTSHIFT_BUILD"]
KUBE = os.path.join(SOURCE, "tests", "kube")
sys.path.insert(0, KUBE)
import rig as rigs  # noqa: E402
from patience import PATIENCE_S  # noqa: E402

CHART = os.path.join(SOURCE, "deploy", "helm", "nightshift")
HOME = "nightshift"  # the release's namespace
DAEMON = f"system:serviceaccount:{HOME}:nightshift"
APPLY = "application/apply-patch+yaml"
GPU = "nvidia.com/gpu"


def helm_path():
    done = subprocess.run([f"{KUBE}/build-helm", "--where"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout.strip()


def why_not():
    """Why the chart cannot be tried here and the way out, or None."""
    if not os.path.exists(helm_path()):
        return "the Helm of the tests is not built (tests/kube/build-helm)"
    if not os.path.exists(f"{BUILD}/print_tenant"):
        return f"{BUILD}/print_tenant is not built"
    return rigs.why_not()


class HelmFailed(Exception):
    """What Helm said."""


def helm(*args, values=None, env=None):
    """What it prints.  values: a dict, as a file of values."""
    more = ["--values", "-"] if values is not None else []
    done = subprocess.run([helm_path(), *args, *more], input=None if values is None else json.dumps(values),
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={**os.environ, **(env or {})})
    if done.returncode:
        raise HelmFailed((done.stdout + done.stderr).strip())
    return done.stdout


def template(values=None, namespace=HOME):
    return helm("template", "nightshift", CHART, "--namespace", namespace, values=values or {})


def print_tenant(*args):
    done = subprocess.run([f"{BUILD}/print_tenant", *args], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Answer:
    def __init__(self, status, body):
        self.status, self.body = status, body
        self.message = body.get("message", "") if isinstance(body, dict) else str(body)

    @property
    def unauthorized(self):
        """RBAC said no, not admission and not the object itself."""
        return self.status == 403 and " cannot " in self.message

    @property
    def good(self):
        return self.status < 300

    def __repr__(self):
        return f"{self.status} {self.message[:300]}"


def spec(gpus=0, **more):
    """Of a pod that the standard "restricted" lets pass."""
    box = {"name": "main", "image": "busybox", "command": ["true"],
           "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    if gpus:
        box["resources"] = {"limits": {GPU: str(gpus)}}
    return {"schedulerName": "nightshift", "restartPolicy": "Never", "containers": [box],
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            **more}


def pod(name, gpus=0, metadata=None, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, "spec": spec(gpus, **more)}


class Site(rigs.Rig):
    """A rig with the chart and the tenants vision (2 GPUs; vera views, max is a member, lea leads) and speech
    (sam is a member)."""

    def __enter__(self):
        super().__enter__()
        try:
            self.install()
            self.tenants()
        except BaseException:
            self.close()
            raise
        return self

    def helm(self, *args, values=None):
        return helm(*args, "--namespace", HOME, values=values, env={"KUBECONFIG": self.kubeconfig, "HOME": self.folder})

    def install(self):
        self.helm("install", "nightshift", CHART, "--create-namespace", values={})
        # The API server reads policies a moment after they were written.
        path, one = "/api/v1/namespaces/kube-system/services?dryRun=All", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 1}]}}
        self.wait(lambda: "no tenant's" in self.ask_as(DAEMON, "POST", path, one).message, "the policy of the daemon holds")

    def tenants(self):
        self.send(print_tenant("--limit", "gpus=2000", "--member", "vera=viewer", "--member", "max=member",
                               "--member", "lea=lead", "vision"))
        self.send(print_tenant("--member", "sam=member", "speech"))
        for ns in ("nightshift-vision", "nightshift-speech"):
            self.wait(lambda: self.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default"), f"{ns} has its account")
        self.wait(lambda: self.get("/api/v1/namespaces/nightshift-vision/resourcequotas/nightshift")
                  .get("status", {}).get("hard"), "the quota is counted")
        pods = "/api/v1/namespaces/{}/pods"
        self.wait(lambda: "schedulerName" in self.ask_as("max", "POST", pods.format("nightshift-vision") + "?dryRun=All",
                                                         pod("x", schedulerName="other")).message, "the policy of tenants holds")
        self.wait(lambda: "own jobs" in self.ask_as("max", "POST", pods.format("nightshift-vision") + "?dryRun=All",
                                                    pod("x", metadata={"labels": {"nightshift.dev/run": "1"}})).message, "that of marks")
        self.post(pods.format("nightshift-vision"), pod("there"))
        self.post(pods.format("nightshift-speech"), pod("there"))

    def send(self, objects, user=DAEMON):
        """As the engine does; what is not there is deleted already."""
        for one in objects:
            answer = self.ask_as(user, one["method"], one["path"], one.get("body"), APPLY)
            if not answer.good and not (one["method"] == "DELETE" and answer.status == 404):
                raise AssertionError(f"{one['method']} {one['path']}: {answer}")

    def ask_as(self, user, method, path, body=None, kind="application/json"):
        """As somebody else, in the groups that they have then."""
        groups = ["system:authenticated"]
        if user.startswith("system:serviceaccount:"):
            groups += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
        connection = http.client.HTTPSConnection(self.address, self.ports["apiserver"], context=self.context, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path)
            data = b"" if body is None else json.dumps(body).encode()
            for name, value in [("Impersonate-User", user), *(("Impersonate-Group", g) for g in groups),
                                ("Content-Type", kind), ("Accept", "application/json, */*"), ("Content-Length", str(len(data)))]:
                connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            try:
                return Answer(response.status, json.loads(text))
            except ValueError:
                return Answer(response.status, text)
        finally:
            connection.close()
