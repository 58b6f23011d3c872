"""kube_cluster - a real nightshiftd on a real Kubernetes (tests/kube/rig.py), driven from the outside.

  with Rig(kwok=True) as rig:
      with KubeCluster(rig) as c:
          c.start(); c.wait_ready()

The daemon is the product's program and speaks to the API server as the service account of the chart,
with the rights that the chart gives it and no others.
"""
import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile

import cluster as cl

SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
KUBE = f"{SOURCE}/tests/kube"
sys.path.insert(0, KUBE)
import images  # noqa: E402
from rig import Refused, Rig, why_not  # noqa: E402,F401

INIT_IMAGE = f"{images.DOMAIN}/nightshift:1"
INIT_PATH = "/usr/libexec/nightshift/nightshift-init"
OWN = "nightshift"  # the namespace that the daemon is in
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OWN}/leases/nightshift"
CHART = f"{SOURCE}/deploy/helm/nightshift"


def init_image(folder):
    """What the product's image has of it, as far as pods of jobs need that: nightshift-init."""
    return images.make(f"{folder}/nightshift.tar", INIT_IMAGE,
                       [(INIT_PATH[1:], f"{cl.LIBEXEC}/nightshift-init", 0o755)], [INIT_PATH])


def helm():
    done = subprocess.run([f"{KUBE}/build-helm", "--where"], capture_output=True, text=True, timeout=cl.PATIENCE_S, check=True)
    return done.stdout.strip()


def grant(rig):
    """Exactly the chart's rights; the path of the service account's kubeconfig."""
    if rig.granted:
        return rig.granted
    with contextlib.suppress(Refused):
        rig.post("/api/v1/namespaces", {"metadata": {"name": OWN}})
    text = subprocess.run([helm(), "template", "nightshift", CHART, "--namespace", OWN,
                           "--show-only", "templates/rbac.yaml", "--show-only", "templates/tenants.yaml"],
                          capture_output=True, text=True, timeout=cl.PATIENCE_S, check=True).stdout
    rig.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    rig.granted = rig.kubeconfig_for(serviceaccount=f"{OWN}/nightshift")
    return rig.granted


class KubeCluster(cl.Cluster):
    def __init__(self, rig, options=(), kubeconfig=None):
        self.rig = rig
        self.program = f"{cl.BUILD}/nightshiftd"
        self.folder = tempfile.mkdtemp(prefix="ns.", dir="/tmp")
        self.state, self.run = f"{self.folder}/s", f"{self.folder}/r"
        self.log_path, self.libexec = f"{self.folder}/log", cl.LIBEXEC
        self.kubeconfig = kubeconfig or grant(rig)
        self.env, self.daemon = {}, None
        self.options = ["--listen", "none", "--engine", "kube", "--kube-config", self.kubeconfig,
                        "--kube-image", images.BUSYBOX, "--kube-init-image", INIT_IMAGE,
                        "--kube-init-path", INIT_PATH, *options]
        with open(f"{self.folder}/settings.yaml", "w", encoding="utf-8"):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def settings(self, text):
        with open(f"{self.folder}/settings.yaml", "w", encoding="utf-8") as f:
            f.write(text)

    def up(self):
        self.start()
        self.wait_ready()
        return self

    def submit(self, command, key=None, uid=0, **spec):
        """Once it is taken: an API server that is slow for long enough costs the daemon its lease, and nobody decides
        until it has that again."""
        def taken():
            status, answer = self.call("POST", "/v1/jobs", {"command": command, **spec}, key=key, uid=uid)
            assert status < 300 or status == 503, answer
            return answer["id"] if status < 300 else None
        return cl.wait_for("the daemon takes a job", taken)

    def pods(self, namespace=None):
        where = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        return self.rig.get(where)["items"]

    def job_pods(self, number):
        return [p for p in self.pods() if p["metadata"].get("labels", {}).get("nightshift.dev/job") == str(number)]

    def close(self, keep=False):
        if self.daemon and self.daemon.poll() is None:
            self.kill_daemon()
        with contextlib.suppress(Refused, OSError, http.client.HTTPException):
            self.rig.delete(LEASE)  # it was killed: the next one, with a store of its own, need not wait until it runs out
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
