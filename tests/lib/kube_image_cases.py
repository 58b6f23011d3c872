"""kube_image_cases - the image that deploy/images/build makes, on a real node, run as the chart runs it."""
import base64
import json
import os
import shutil
import subprocess
import sys

import kube_site as ks
import images
from cases import Cases, Skip, same
from kube_site import BUILD, CHART, HOME, SOURCE
from patience import PATIENCE_S

case = Cases()
NAME = "docker.io/library/nightshift"
POD = f"/api/v1/namespaces/{HOME}/pods/nightshift-0"
# Until nightshiftd has the engine: all that the chart gives it but the settings file.
WITHOUT_ENGINE = ["/usr/local/sbin/nightshiftd", "--state", "/var/lib/nightshift", "--run", "/run/nightshift", "--keeper", "external",
                  "--listen", "0.0.0.0:7433", "--tls-cert", "/etc/nightshift/tls/tls.crt", "--tls-key", "/etc/nightshift/tls/tls.key"]


def why_not():
    if not shutil.which("buildah"):
        return "buildah is not installed (tools/install-deps --image)"
    if not os.path.exists(f"{BUILD}/nightshiftd"):
        return f"{BUILD}/nightshiftd is not built"
    return ks.why_not() or ks.rigs.why_not(real=True)


class Lab(ks.rigs.Rig):
    """One real node that has the image, a volume there, and the chart."""

    ask_as, send = ks.Site.ask_as, ks.Site.send

    def __init__(self):
        super().__init__(scheduler=True, real=True)

    def __enter__(self):
        super().__enter__()
        try:
            self._install()
        except BaseException:
            self.close()
            raise
        return self

    def _install(self):
        archive = f"{self.folder}/nightshift.oci.tar"
        subprocess.run([f"{SOURCE}/deploy/images/build", "--build", BUILD, "--name", NAME, "--tag", "test", "--output", archive],
                       stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)
        self.real_node("a", images=[archive])
        os.mkdir(f"{self.folder}/volume")
        # Of kind local: unlike a hostPath it is given to the pod's group, as real storage is.
        self.post("/api/v1/persistentvolumes", {"metadata": {"name": "here"}, "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOncePod"], "local": {"path": f"{self.folder}/volume"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}]}}}})
        # What is not the agent would pass the strictest rules (kube_chart_cases); the agent sees the machine.
        self.post("/api/v1/namespaces", {"metadata": {"name": HOME, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
        self.helm("install", "nightshift", CHART)
        options = subprocess.run([f"{BUILD}/nightshiftd", "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.engine = "--kube-namespace" in options.stdout
        if not self.engine:
            self.patch(f"/apis/apps/v1/namespaces/{HOME}/statefulsets/nightshift", [
                {"op": "replace", "path": "/spec/template/spec/containers/0/command", "value": WITHOUT_ENGINE}], "json")
            self.kubectl("-n", HOME, "delete", "pod", "nightshift-0", "--ignore-not-found", "--grace-period=0", "--force")
        self.wait_up()

    def helm(self, *args):
        # No kube-proxy runs here, so the API server is named by its own address; no storage class either.
        where = [{"name": "KUBERNETES_SERVICE_HOST", "value": self.address},
                 {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.ports["apiserver"])}]
        ks.helm(*args, "--namespace", HOME, env={"KUBECONFIG": self.kubeconfig, "HOME": self.folder},
                values={"image": {"repository": NAME, "tag": "test"}, "env": where,
                        "agent": {"server": f"https://nightshift.{HOME}.svc:7433", "kubeletFolder": f"{self.folder}/a/kubelet"},
                        "jobs": {"image": images.BUSYBOX, "stateSize": "0", "homeSize": "0"}})

    def wait_up(self, other_than=None):
        def up():
            one = self.get(POD)
            return one["metadata"]["uid"] != other_than and any(
                c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", []))
        try:
            self.wait(up, "the daemon's pod is ready")
        except ks.rigs.Failed:
            print("# " + self.kubectl("-n", HOME, "describe", "pod", "nightshift-0").replace("\n", "\n# "))
            raise

    def log_tail(self, lines=12):
        """The last words of the daemon."""
        return self.kubectl("-n", HOME, "logs", "nightshift-0", "--tail", str(lines))

    def inside(self, *command):
        return self.kubectl("-n", HOME, "exec", "nightshift-0", "--", *command)


@case("the pod is ready: not root, on a read-only system, with its claim and its certificate")
def _(lab):
    one = lab.get(POD)
    same(one["status"]["containerStatuses"][0]["restartCount"], 0)
    same(lab.get(f"/api/v1/namespaces/{HOME}/persistentvolumeclaims/state-nightshift-0")["status"]["phase"], "Bound")
    status = lab.inside("cat", "/proc/1/status")
    rows = dict(line.split(":", 1) for line in status.splitlines())
    same(rows["Uid"].split(), ["7433"] * 4)
    same((rows["CapEff"].strip(), rows["NoNewPrivs"].strip(), rows["Seccomp"].strip()), ("0" * 16, "1", "2"))


@case("the service's name answers over TLS that the chart's authority signed")
def _(lab):
    data = lab.get(f"/api/v1/namespaces/{HOME}/secrets/nightshift-tls")["data"]
    with open(f"{lab.folder}/ca.crt", "wb") as f:
        f.write(base64.b64decode(data["ca.crt"]))
    address, host = lab.get(POD)["status"]["podIP"], f"nightshift.{HOME}.svc"
    done = subprocess.run(["curl", "-sS", "--cacert", f"{lab.folder}/ca.crt", "--resolve", f"{host}:7433:{address}",
                           f"https://{host}:7433/healthz"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    same((done.stdout, done.stderr), ("ok\n", ""))


@case("the one-time code is read as the notes of the chart say, and the command line works in the pod")
def _(lab):
    code = lab.inside("cat", "/var/lib/nightshift/setup-code").strip()
    same((len(code), code.count("-")), (19, 3))
    assert "nightshift" in lab.inside("nightshift", "status")
    assert "vision" in lab.inside("nightshift", "tenants", "set", "vision") + lab.inside("nightshift", "tenants")


@case("a backup is made in the pod while the daemon runs")
def _(lab):
    lab.inside("sqlite3", "/var/lib/nightshift/nightshift.db", ".backup '/tmp/backup.db'")
    same(lab.inside("sqlite3", "/tmp/backup.db", "PRAGMA integrity_check").strip(), "ok")


@case("what the daemon knew it knows after its pod was replaced")
def _(lab):
    lab.inside("nightshift", "tenants", "set", "kept", "--weight", "3")
    uid = lab.get(POD)["metadata"]["uid"]
    lab.kubectl("-n", HOME, "delete", "pod", "nightshift-0")
    lab.wait_up(other_than=uid)
    rows = json.loads(lab.inside("nightshift", "tenants", "-o", "json"))
    assert "kept" in json.dumps(rows), rows


def need_engine(lab):
    if not lab.engine:
        raise Skip("this nightshiftd has no engine kube")
    lab.wait(lambda: ready(lab), "the engine is there")


def ready(lab):
    address = lab.get(POD)["status"]["podIP"]
    done = subprocess.run(["curl", "-skS", f"https://{address}:7433/readyz"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.stdout == "ready\n"


@case("with the chart's account alone the daemon finds the machines and makes a tenant's namespace")
def _(lab):
    need_engine(lab)
    same(lab.inside("nightshift", "nodes", "-o", "name").split(), ["a"])
    lab.inside("nightshift", "tenants", "set", "lab", "--limit", "cpus=4")
    lab.inside("nightshift", "tenants", "add", "lab", "ana")
    core = "/api/v1/namespaces/nightshift-lab"
    binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/nightshift-lab/rolebindings/nightshift-tenant-member"
    lab.wait(lambda: lab.get(binding)["subjects"][0]["name"] == "ana", "ana is bound")
    same(lab.get(f"{core}/resourcequotas/nightshift")["spec"]["hard"], {"requests.cpu": "4"})
    lab.wait(lambda: lab.get(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/nightshift")["spec"].get("holderIdentity"), "a Lease")


@case("a job runs to its end with the chart's account alone, and its output is there")
def _(lab):
    need_engine(lab)
    lab.inside("nightshift", "tenants", "set", "lab")
    lab.send(ks.print_tenant("lab"))  # as the engine does, so that the job need not wait for it
    out = lab.inside("nightshift", "run", "--tenant", "lab", "--cpus", "1", "--mem", "64Mi", "sh", "-c", "echo it runs; id -u")
    assert "it runs" in out, out


@case("the agent's pod reports for its node with the cluster's word, without a capability, and knows the pods there")
def _(lab):
    need_engine(lab)
    # There is no DNS here, so its pod is told where the service's name is.
    lab.patch(f"/apis/apps/v1/namespaces/{HOME}/daemonsets/nightshift-agent", {"spec": {"template": {"spec": {"hostAliases": [
        {"ip": lab.get(POD)["status"]["podIP"], "hostnames": [f"nightshift.{HOME}.svc"]}]}}}})
    lab.kubectl("label", "node", "a", "nvidia.com/gpu.present=true")
    agent = f"/api/v1/namespaces/{HOME}/pods?labelSelector=app.kubernetes.io/name%3Dnightshift-agent"
    lab.wait(lambda: [p for p in lab.get(agent)["items"] if p["status"]["phase"] == "Running"], "the agent's pod")
    name = lab.get(agent)["items"][0]["metadata"]["name"]

    def load():
        return json.loads(lab.inside("nightshift", "nodes", "-o", "json"))["nodes"][0]
    try:
        lab.wait(lambda: load()["reports"], "its reports")
    finally:
        print("# " + lab.kubectl("-n", HOME, "logs", name, "--tail", "8").replace("\n", "\n# "))
    program = "/usr/local/libexec/nightshift/nightshift-agent"
    same(lab.kubectl("-n", HOME, "exec", name, "--", program, "show"), "not held\n")
    rows = dict(line.split(":", 1) for line in lab.kubectl("-n", HOME, "exec", name, "--", "cat", "/proc/self/status").splitlines())
    same((rows["CapEff"].strip(), rows["NoNewPrivs"].strip(), rows["Seccomp"].strip()), ("0" * 16, "1", "2"))
    address = lab.get(agent)["items"][0]["status"]["podIP"]
    page = subprocess.run(["curl", "-sS", f"http://{address}:9433/metrics"], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert 'nightshift_agent_reports{node="a"} 1' in page and page.endswith("# EOF\n"), page
    assert int(page.split('nightshift_agent_pods{node="a"} ')[1].split()[0]) >= 2, page  # the daemon's and its own
    lab.kubectl("-n", HOME, "exec", name, "--", program, "hold", "--reason", "mine")
    lab.wait(lambda: (load()["held"] or {}).get("reason") == "mine", "the hold")
    lab.wait(lambda: "nightshift" in json.dumps(lab.get("/api/v1/nodes/a")["spec"].get("taints", [])), "the taint of a hand-back")
    lab.kubectl("-n", HOME, "exec", name, "--", program, "release")
    lab.wait(lambda: load()["held"] is None, "the release")


@case("nightshift-init is where jobs take it from")
def _(lab):
    assert "nightshift-init" in lab.inside("/usr/local/libexec/nightshift/nightshift-init", "--version")


if __name__ == "__main__":
    sys.exit(case.on(Lab, why_not))
