"""kube_agent_cases - the agent on a real node: its kubelet hands out GPUs of a device plugin that has none, and the driver is
the fake library (tests/fakes/nvml.c), so what must be told is known."""
import contextlib
import json
import os
import subprocess
import sys

import cluster as cl
import fake_kubelet
from cases import Cases, same
from kube_cluster import OWN, KubeCluster, Rig, images, init_image, why_not as no_rig

case = Cases()
GPU = "nvidia.com/gpu"
UUIDS = ["GPU-00000000-0000-0000-0000-00000000000a", "GPU-00000000-0000-0000-0000-00000000000b"]
DRIVER = f"{cl.BUILD}/tests/fakes/libnvidia-ml.so.1"
AGENT = f"{OWN}/nightshift-agent"
PODS = "/api/v1/namespaces/{}/pods"


def why_not():
    return no_rig(real=True) or (None if fake_kubelet.python_with_grpc() else "python3-grpcio is not installed")


class Lab:
    """A real node with two GPUs, the daemon, and an agent beside the kubelet."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        try:
            self._up()
        except BaseException:
            self.stack.close()
            raise
        return self

    def _up(self):
        self.rig = self.stack.enter_context(Rig(scheduler=True, real=True))
        self.rig.real_node("a", images=[init_image(self.rig.folder)])
        self.node = self.rig.nodes["a"]
        # Wherever the kubelet keeps all else, that folder has this name, on the machine.
        self.start([*self.node.enter(), fake_kubelet.python_with_grpc(), f"{os.path.dirname(os.path.abspath(__file__))}/fake_plugin.py",
                    "/var/lib/kubelet/device-plugins", *UUIDS], "plugin")
        self.rig.wait(lambda: self.rig.get("/api/v1/nodes/a")["status"]["allocatable"].get(GPU) == "2", "the node's GPUs")
        self.c = self.stack.enter_context(KubeCluster(self.rig))
        self.c.settings("tenants: { vision: {} }\n")
        self.c.up()
        self.says()
        cl.wait_for("the machine", lambda: [n for n in self.c.ask("GET", "/v1/nodes")["nodes"] if len(n["gpus"]) == 2])
        self.start([f"{cl.BUILD}/nightshift-agent", "--server", f"unix:{self.c.run}/api.sock", "--node-name", "a", "--nvml", DRIVER,
                    "--interval-ms", "200", "--report-ms", "200", "--state", self.c.folder, "--control", f"{self.c.folder}/agent.sock",
                    "--keep", f"{self.c.folder}/keep", "--kubelet", f"{self.node.folder}/kubelet/pod-resources/kubelet.sock",
                    "--pod-logs", f"{self.node.folder}/var/log/containers"], "agent",
                   {"NIGHTSHIFT_FAKE_NVML": f"{self.c.folder}/nvml"})

    def start(self, argv, name, env=None):
        log = self.stack.enter_context(open(f"{self.rig.folder}/{name}.log", "ab"))
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, env=os.environ | (env or {}))
        self.stack.callback(lambda: (process.kill(), process.wait()))

    def __exit__(self, *_):
        self.stack.close()

    @property
    def log_path(self):
        return f"{self.rig.folder}/agent.log"

    def log_tail(self, lines):
        return cl.read_file(self.log_path).decode(errors="replace")[-lines * 200:]

    def says(self, *gpus):
        """What the driver says of each GPU."""
        text = "driver 550.54.15\n"
        for i, uuid in enumerate(UUIDS):  # no device belongs to them
            lines = [f"uuid {uuid}", "memory 80000 0", *(gpus[i] if i < len(gpus) else [])]
            text += f"gpu NVIDIA A100-SXM4-80GB\nminor none\n" + "\n".join(lines) + "\n"
        with open(f"{self.c.folder}/nvml.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f"{self.c.folder}/nvml.new", f"{self.c.folder}/nvml")

    def gpus(self):
        return {g["uuid"]: g for g in self.c.ask("GET", "/v1/gpus")["gpus"]}

    def kubelet(self):
        return self.c.ask("GET", "/v1/nodes/a/load")["kubelet"]

    def pod(self, name, gpus, space="default", **spec):
        sizes = {"cpu": "100m", "memory": "32Mi", **({GPU: str(gpus)} if gpus else {})}
        self.rig.post(PODS.format(space), {"metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 1, "nodeName": "a", **spec,
            "containers": [{"name": "app", "image": images.BUSYBOX, "command": ["sleep", "3600"],
                            "resources": {"requests": sizes, "limits": sizes}}]}})
        self.rig.wait(lambda: self.rig.get(f"{PODS.format(space)}/{name}")["status"]["phase"] == "Running", f"pod {name} runs")
        return self.rig.get(f"{PODS.format(space)}/{name}")["metadata"]["uid"]

    def pid_of(self, uid):
        """A process of the pod, as this machine numbers it: not the one that holds its namespaces."""
        def find():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if f"pod{uid}/".encode() in cl.proc_file(int(pid), "cgroup") and b"sleep" in cl.proc_file(int(pid), "cmdline"):
                    return int(pid)
            return None
        return cl.wait_for("a process of the pod", find)

    def remove(self, name, space="default"):
        self.rig.kubectl("-n", space, "delete", "pod", name, "--wait=true")


def adds_up(gpu):
    same(round(sum(p["util_percent"] for p in gpu["parts"]), 1), 100.0)
    same(sum(p["mem_mib"] for p in gpu["parts"]), gpu["mem_mib"])


@case("a real kubelet says which pod has which GPU, and the agent whose work it does")
def _(lab):
    cl.wait_for("the kubelet", lambda: (lab.kubelet() or {}).get("devices") == 2)
    lab.pod("idle", 0)
    uid = lab.pod("web", 1)
    cl.wait_for("its device", lambda: (lambda k: k and k["devices_given"] == 1 and k["pods"] >= 2)(lab.kubelet()))
    gpu = cl.wait_for("its GPU", lambda: [g for g in lab.gpus().values() if g["pods"]])[0]
    same(gpu["pods"], [{"namespace": "default", "pod": "web", "container": "app", "device": gpu["uuid"], "id": None}])
    pid, at = lab.pid_of(uid), UUIDS.index(gpu["uuid"])
    load = ["memory 80000 60000", "utilisation 90 40", f"process {pid} 50000 compute", f"load {pid} 70"]
    lab.says(*([[], load] if at else [load]))
    gpu = cl.wait_for("its work", lambda: (lambda g: g if g and g["util_percent"] == 90 else None)(lab.gpus().get(gpu["uuid"])))
    same({(p["kind"], p["name"]): (p["util_percent"], p["mem_mib"]) for p in gpu["parts"]},
         {("pod", "default/web/app"): (70.0, 50000), ("unknown", None): (20.0, 10000), ("idle", None): (10.0, 20000)})
    adds_up(gpu)
    cl.wait_for("its series", lambda: (lambda page: f'UUID="{gpu["uuid"]}"' in page and
                                       'pod="web",namespace="default",container="app"} 90' in page)(lab.c.ask("GET", "/metrics")))
    lab.says()
    for name in ("web", "idle"):
        lab.remove(name)
    cl.wait_for("it to be free", lambda: not any(g["pods"] for g in lab.gpus().values()))


@case("the pod of a job is its task, wherever the kubelet put it")
def _(lab):
    job = lab.c.submit(["sleep", "600"], name="mine", tenant="vision", resources={"gpus": 1, "cpus": 0.1, "mem": "32Mi"})
    lab.c.wait_state(job, "running")
    gpu = cl.wait_for("its GPU", lambda: [g for g in lab.gpus().values() if g["pods"]])[0]
    same([(p["namespace"], p["pod"], p["container"], p["id"]) for p in gpu["pods"]],
         [("nightshift-vision", f"nightshift-{job}-1-0", "job", job)])
    same([j["id"] for j in gpu["jobs"]], [job])  # by our books it has the first; here it has the one that it was given
    uid = lab.c.job_pods(job)[0]["metadata"]["uid"]
    pid, at = lab.pid_of(uid), UUIDS.index(gpu["uuid"])
    load = ["memory 80000 1000", "utilisation 40 40", f"process {pid} 1000 compute", f"load {pid} 40"]
    lab.says(*([[], load] if at else [load]))
    gpu = cl.wait_for("its work", lambda: (lambda g: g if g and g["util_percent"] == 40 else None)(lab.gpus().get(gpu["uuid"])))
    same([(p["kind"], p["id"], p["pod"], p["util_percent"]) for p in gpu["parts"]][0], ("job", job, f"nightshift-{job}-1-0", 40.0))
    adds_up(gpu)
    lab.says()
    lab.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
    lab.c.wait_end(job)


def token_of(lab, account, pod, audience="nightshift"):
    """As the kubelet gets one for a pod."""
    space, name = account.split("/")
    bound = {}
    if pod:
        one = lab.rig.get(f"{PODS.format(space)}/{pod}")
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": one["metadata"]["uid"]}}
    made = lab.rig.post(f"/api/v1/namespaces/{space}/serviceaccounts/{name}/token",
                        {"spec": {"audiences": [audience], "expirationSeconds": 600, **bound}})
    return made["status"]["token"]


@case("an agent's token is good for its own node, as the API server says, and for nothing else")
def _(lab):
    for name in ("nightshift-agent", "other"):
        lab.rig.post(f"/api/v1/namespaces/{OWN}/serviceaccounts", {"metadata": {"name": name}})
        lab.pod(f"p-{name}", 0, space=OWN, serviceAccountName=name)

    def report(token, node="a"):
        body = f"nightshift-report 2\nfrom {node} boot 1 0 0.1.0\ns 1\n".encode()
        return lab.c.call("POST", f"/v1/nodes/{node}/report", body, kind="application/octet-stream", token=token)

    def settled(token, node="a"):
        """Whose it is the cluster is asked the first time: the agent comes again, and so do we."""
        return cl.wait_for("the cluster's word", lambda: (lambda r: r if r[0] != 503 else None)(report(token, node)))
    good = token_of(lab, AGENT, "p-nightshift-agent")
    same(report(good)[0], 503)
    same(settled(good)[0], 200)
    same(report(good)[0], 200)  # known now
    same(report(good, "b")[0], 403)
    same(lab.c.call("GET", "/v1/nodes", token=good)[0], 401)
    same(lab.c.call("POST", "/v1/nodes/a/drain", {}, token=good)[0], 401)
    for token, says in ((token_of(lab, f"{OWN}/other", "p-other"), "another service account"),
                        (token_of(lab, AGENT, None), "on which machine"),
                        (token_of(lab, AGENT, "p-nightshift-agent", "elsewhere"), "does not know"),
                        ("eyJhbGciOiJub25lIn0.e30.", "does not know")):
        status, answer = settled(token)
        same((status, says in json.dumps(answer)), (401, True))
    for name in ("nightshift-agent", "other"):
        lab.remove(f"p-{name}", OWN)


if __name__ == "__main__":
    sys.exit(case.on(Lab, why_not))
