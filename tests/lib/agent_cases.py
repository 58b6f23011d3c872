"""agent_cases - the node agent with a real daemon: a known load on a shared GPU, a control plane that goes away, a GPU that
falls off the bus.

The driver is the fake library (tests/fakes/nvml.c); what it says is written here, so what must be told is known.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import fake_kubelet as kubelet  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402
from cluster import BUILD, wait_for  # noqa: E402

case = Cases()
SETTINGS = """
default_tenant: ""
tenants: { ours: { members: [uid-70001] }, theirs: { members: [uid-70002] } }
"""
OURS, THEIRS = 70001, 70002
DRIVER = f"{BUILD}/tests/fakes/libnvidia-ml.so.1"
GPUS = 2


class Machine:
    """A daemon whose keeper and agent see the fake driver's GPUs."""

    def __init__(self, c):
        self.c, self.agents = c, []
        self.node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]

    def start_agent(self, *more, token=None, server=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("NIGHTSHIFT_")} | self.c.env
        if token:
            env["NIGHTSHIFT_TOKEN"] = token
        argv = [f"{BUILD}/nightshift-agent", "--server", server or f"unix:{self.c.run}/api.sock", "--cgroup", self.c.cgroup,
                "--state", self.c.state, "--nvml", DRIVER, "--node-name", self.node, "--interval-ms", "200", "--report-ms", "200",
                "--kubelet", "", "--control", self.control, "--keep", f"{self.c.folder}/keep", *more]
        log = open(f"{self.c.folder}/agent.log", "ab")
        agent = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.agents.append(agent)
        wait_for("the agent to listen", lambda: os.path.exists(self.control))
        return agent

    @property
    def control(self):
        return f"{self.c.folder}/agent.sock"

    def say(self, *words, code=0):
        """What an owner types on the machine."""
        done = subprocess.run([f"{BUILD}/nightshift-agent", *words, "--control", self.control], capture_output=True, text=True,
                              check=False)
        same(done.returncode, code)
        return done.stdout + done.stderr

    def nightshift(self, *words):
        env = os.environ | {"NIGHTSHIFT_SERVER": f"unix:{self.c.run}/api.sock"}
        return subprocess.run([f"{BUILD}/nightshift", *words], env=env, capture_output=True, text=True, check=True).stdout

    def command(self, what, task, **more):
        """Sent, and what became of it."""
        sent = self.c.ask("POST", f"/v1/nodes/{self.node}/commands", {"what": what, "task": task, **more})
        same((sent["state"], sent["what"], sent["task"]), ("sent", what, task))
        path = f"/v1/nodes/{self.node}/commands"
        return wait_for("the agent's answer", lambda: (lambda x: x if x["state"] != "sent" else None)(
            [x for x in self.c.ask("GET", path)["commands"] if x["id"] == sent["id"]][0]))

    def stop_agents(self):
        for agent in self.agents:
            with contextlib.suppress(ProcessLookupError):
                agent.send_signal(signal.SIGCONT)
                agent.terminate()
            agent.wait(timeout=cl.PATIENCE_S)
        self.agents = []

    def log(self):
        return cl.read_file(f"{self.c.folder}/agent.log").decode()

    def metrics_port(self):
        return int(wait_for("its port", lambda: [x for x in self.log().split() if x.startswith("port=")])[0][5:])

    def driver_says(self, *gpus):
        """A list of lines for each GPU."""
        text = "driver 550.54.15\n"
        for i in range(GPUS):
            lines = ["memory 80000 0", "power 60000 400000", "temperature 35", "clocks 1410 1593", "ecc 0 0",
                     *(gpus[i] if i < len(gpus) else [])]
            text += f"gpu NVIDIA A100-SXM4-80GB\nminor {i}\n" + "\n".join(lines) + "\n"
        path = self.c.env["NIGHTSHIFT_FAKE_NVML"]
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f"{path}.new", path)

    def gpu(self, index, **more):
        return self.c.ask("GET", "/v1/gpus", **more)["gpus"][index]

    def load(self, **more):
        return self.c.ask("GET", f"/v1/nodes/{self.node}/load", **more)

    def state(self):
        return self.c.ask("GET", "/v1/nodes")["nodes"][0]

    def wait_reports(self):
        wait_for("the machine's reports", lambda: self.state()["reports"])

    def pid_in(self, job):
        """A process of the job, not the first of its container."""
        return wait_for("a process of the job", lambda: [p for p in self.c.job_pids(job)
                                                         if cl.proc_file(p, "cmdline").startswith(b"sleep\0")])[0]


def parts_of(gpu):
    return {p["name"] if p["kind"] == "job" else p["kind"]: (p["util_percent"], p["mem_mib"]) for p in gpu["parts"]}


def adds_up(gpu):
    """Within 2 % of the device, as promised; in fact to a thousandth."""
    for key, whole in (("util_percent", 100), ("mem_mib", gpu["mem_mib"])):
        total = sum(p[key] for p in gpu["parts"])
        assert abs(total - whole) <= whole * 0.02, f"{key}: {total} of {whole}: {gpu['parts']}"


@case("the parts of a shared GPU are its jobs, other processes, what is not told and what is idle")
def _(m):
    m.driver_says()
    m.start_agent()
    half = {"resources": {"gpu_share": 0.5, "cpus": 1, "mem": "64Mi"}}
    ours = m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", name="mine", **half)
    theirs = m.c.submit(["sleep", "600"], uid=THEIRS, tenant="theirs", name="secret", **half)
    for job in (ours, theirs):
        m.c.wait_state(job, "running")
    a, b, stray = m.pid_in(ours), m.pid_in(theirs), subprocess.Popen(["sleep", "600"])
    try:
        m.driver_says(["memory 80000 60000", "utilisation 90 40", f"process {a} 20000 compute", f"process {b} 30000 compute",
                       f"process {stray.pid} 5000 graphics", f"load {a} 40", f"load {b} 30", f"load {stray.pid} 10"])
        gpu = wait_for("the load", lambda: (lambda g: g if g["util_percent"] == 90 else None)(m.gpu(0)))
        same(parts_of(gpu), {"mine": (40.0, 20000), "secret": (30.0, 30000), "other": (10.0, 5000), "unknown": (10.0, 5000),
                             "idle": (10.0, 20000)})
        adds_up(gpu)
        same((gpu["power_w"], gpu["temp_c"], gpu["sm_mhz"], gpu["simulated"], gpu["idle_since_ms"]), (60.0, 35, 1410, False, None))
        other = m.gpu(1)
        same(parts_of(other), {"idle": (100.0, 80000)})
        assert other["idle_since_ms"] > 0
        # The driver's stretches of time differ: processes may pass the device.
        m.driver_says(["memory 80000 40000", "utilisation 50 40", f"process {a} 30000 compute", f"process {b} 30000 compute",
                       f"load {a} 60", f"load {b} 40"])
        gpu = wait_for("the load", lambda: (lambda g: g if g["util_percent"] == 50 else None)(m.gpu(0)))
        same(parts_of(gpu), {"mine": (30.0, 20000), "secret": (20.0, 20000), "idle": (50.0, 40000)})
        adds_up(gpu)
        # Who may not see a tenant sees its work, and no name of it.
        text = json.dumps([m.gpu(0, uid=OURS), m.load(uid=OURS)])
        assert "mine" in text and "secret" not in text and "theirs" not in text and "(another tenant)" in text, text
        same([t["name"] for t in m.load(uid=OURS)["tasks"]], ["mine"])
        same(sorted(t["name"] for t in m.load()["tasks"]), ["mine", "secret"])
        one = m.load()["tasks"][0]
        assert one["mem_mib"] >= 0 and one["processes"] >= 1 and one["cpu_milli"] is not None, one
    finally:
        stray.kill()
        stray.wait()
    for job in (ours, theirs):
        m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
        m.c.wait_end(job)
    node = m.load()
    assert node["cpus_milli"] > 0 and node["mem_mib"] > node["mem_used_mib"] > 0 and node["disk_mib"] > 0, node


@case("a job has charts of its GPUs and of what it used itself, and keeps them when it has ended")
def _(m):
    m.driver_says()
    m.start_agent()
    half = {"resources": {"gpu_share": 0.5, "cpus": 1, "mem": "64Mi"}}
    job = m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", **half)
    m.c.wait_state(job, "running")
    pid = m.pid_in(job)
    m.driver_says(["memory 80000 60000", "utilisation 90 40", f"process {pid} 20000 compute", f"load {pid} 40"])
    known = lambda v: [x for x in v if x is not None]  # noqa: E731

    def charts(**more):
        return m.c.ask("GET", f"/v1/jobs/{job}/history?step_ms=1000", **more)["runs"]

    def own_part():
        own = charts(uid=OURS)[0]["replicas"][0]["own"]
        return own if own and 40.0 in known(own["gpu_percent"]) and known(own["cpu_milli"]) else None
    own = wait_for("the job's own part", own_part)
    assert 20000 in known(own["gpu_mem_mib"]) and known(own["mem_mib"]), own
    run = charts()[0]
    one = run["replicas"][0]
    same((run["run"], run["to_ms"], one["node"], one["step_ms"], len(run["replicas"])), (1, None, m.node, 1000, 1))
    same([(g["milli"], g["whole"]) for g in one["gpus"]], [(500, False)])
    wait_for("the whole GPU", lambda: 90.0 in known(charts()[0]["replicas"][0]["gpus"][0]["util_percent"]))
    same(m.c.call("GET", f"/v1/jobs/{job}/history", uid=THEIRS)[0], 404)
    m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
    m.c.wait_end(job)
    m.c.daemon.send_signal(signal.SIGTERM)
    m.c.daemon.wait(cl.PATIENCE_S)
    m.c.start()
    m.c.wait_ready()
    m.wait_reports()
    run = charts(uid=OURS)[0]
    assert run["to_ms"] >= run["from_ms"], run
    assert 90.0 in known(run["replicas"][0]["gpus"][0]["util_percent"]), run
    assert 40.0 in known(run["replicas"][0]["own"]["gpu_percent"]), run
    same(m.c.ask("GET", f"/v1/jobs/{job}/history?run=2")["runs"], [])


@case("what was measured while the control plane was away is told when it is back, second by second")
def _(m):
    m.driver_says(["memory 80000 1000", "utilisation 10 5"])
    m.start_agent("--interval-ms", "1000", "--report-ms", "1000", "--metrics", "127.0.0.1:0")
    m.wait_reports()
    port = m.metrics_port()
    m.c.kill_daemon()
    wait_for("the agent to see that", lambda: "agent.away" in m.log())
    began = time.time()
    for percent in (77, 33):
        m.driver_says(["memory 80000 1000", f"utilisation {percent} 5"])
        wait_for("it to be measured", lambda: f"}} {percent}\n" in own_line(scrape(port), 'DCGM_FI_DEV_GPU_UTIL{gpu="0"'))
        # Samples are a second apart at least, however late they come: of so many one has its second to itself.
        for _ in range(4):
            had = waiting(port)
            wait_for("one more sample", lambda: waiting(port) > had)
    m.driver_says(["memory 80000 1000", "utilisation 10 5"])
    wait_for("it to be measured", lambda: "} 10\n" in own_line(scrape(port), 'DCGM_FI_DEV_GPU_UTIL{gpu="0"'))
    ended = time.time()
    m.c.start()
    m.c.wait_ready()
    wait_for("the agent to be back", lambda: "agent.back" in m.log())
    wait_for("all of it", lambda: (m.load()["seen_ms"] or 0) > (ended + 2) * 1000)
    chart = m.c.ask("GET", f"/v1/nodes/{m.node}/history?from_ms={int(began) * 1000}&to_ms={int(ended + 1) * 1000}&step_ms=1000")
    same(chart["step_ms"], 1000)
    util = chart["gpus"][0]["util_percent"]
    assert 77.0 in util and 33.0 in util[util.index(77.0):], util
    assert "lost=0" in m.log().split("agent.back")[1].splitlines()[0], m.log()


@case("a GPU that falls off the bus drains its machine, and its job's user reads why")
def _(m):
    m.driver_says()
    m.start_agent()
    m.wait_reports()
    job = m.c.submit(["sh", "-c", "trap 'exit 3' USR1; while :; do sleep 0.1; done"], uid=OURS, tenant="ours",
                     resources={"gpus": 2, "cpus": 1, "mem": "64Mi"})
    m.c.wait_state(job, "running")
    same(m.c.job(job)["trouble"], None)
    m.driver_says([], ["fail nvmlDeviceGetHandleByIndex_v2 15"])
    node = wait_for("the drain", lambda: (lambda n: n if n["state"] == "drain" else None)(m.state()))
    wait_for("the reason", lambda: "fell off the bus" in (m.state()["drained_because"] or ""))
    same([(h["rule"], h["gpu"]) for h in node["health"]], [("gpu_lost", 1)])
    told = m.c.ask("GET", f"/v1/jobs/{job}", uid=OURS)["trouble"]
    assert "GPU 1 fell off the bus" in told and m.node in told, told
    rows = m.c.ask("GET", "/v1/audit?what=node.drain")["rows"]
    assert "fell off the bus" in rows[0]["reason"], rows[0]
    # It waits, and says that machines are drained.
    waits = m.c.submit(["true"], uid=OURS, tenant="ours", resources={"gpus": 1, "cpus": 1, "mem": "64Mi"})
    # An operator's word counts: the same cause does not drain it again, also after a restart of both.
    m.c.ask("POST", f"/v1/nodes/{m.node}/resume", {})
    seen = m.load()["seen_ms"]
    wait_for("more reports", lambda: m.load()["seen_ms"] > seen + 1000)
    same((m.state()["state"], m.state()["drained_because"]), ("up", None))
    m.c.kill_daemon()
    m.c.start()
    m.c.wait_ready()
    m.wait_reports()
    seen = m.load()["seen_ms"]
    wait_for("more reports", lambda: (m.load()["seen_ms"] or 0) > seen + 1000)
    same(m.state()["state"], "up")
    m.c.signal(job, "USR1")
    ended = m.c.wait_end(job)
    same(ended["state"], "failed")
    assert "exit code 3" in ended["message"] and "GPU 1 fell off the bus" in ended["message"], ended["message"]
    m.c.wait_end(waits)
    # Another cause is another drain; when it is gone and comes again, too.
    m.driver_says(["ecc 0 2"])
    wait_for("the second drain", lambda: "could not be corrected" in (m.state()["drained_because"] or ""))
    m.c.ask("POST", f"/v1/nodes/{m.node}/resume", {})
    m.driver_says()
    wait_for("health", lambda: m.state()["health"] == [])
    m.driver_says(["ecc 0 2"])
    wait_for("the third drain", lambda: m.state()["state"] == "drain")
    m.driver_says()
    wait_for("health", lambda: m.state()["health"] == [])
    m.c.ask("POST", f"/v1/nodes/{m.node}/resume", {})


@case("an XID that means a broken GPU drains, one that a program causes does not")
def _(m):
    m.driver_says()
    m.start_agent()
    m.wait_reports()
    m.driver_says(["xid 31"])
    wait_for("the number", lambda: m.gpu(0)["xid"] == 31)
    same(m.state()["state"], "up")
    m.driver_says(["xid 79"])
    wait_for("the drain", lambda: "XID 79" in (m.state()["drained_because"] or ""))
    m.driver_says()
    m.c.ask("POST", f"/v1/nodes/{m.node}/resume", {})


@case("an agent on another machine reports with a token that is bound to it, and with no other")
def _(m):
    m.driver_says()
    c = m.c
    c.ask("PUT", "/v1/users/agent-1", {})
    c.ask("PUT", "/v1/users/agent-2", {})
    c.ask("PUT", f"/v1/nodes/{m.node}/owners/agent-1", {})
    good, bad, narrow = [c.ask("POST", "/v1/tokens", {"user": user, "name": name, "scopes": scopes})["token"]
                         for user, name, scopes in (("agent-1", "report", ["report"]), ("agent-2", "report", ["report"]),
                                                    ("agent-1", "look", ["read"]))]
    server = f"http://127.0.0.1:{c.port()}"
    for token in (bad, narrow):
        m.start_agent(token=token, server=server)
        wait_for("the refusal", lambda: "status 403" in m.log())
        same(m.state()["reports"], False)
        m.stop_agents()
        os.unlink(f"{c.folder}/agent.log")
    m.start_agent(token=good, server=server)
    m.wait_reports()
    same(m.c.call("POST", f"/v1/nodes/{m.node}/drain", {}, token=good)[0], 403)  # it may report, and no more


@case("what is no report is refused by line, and changes nothing")
def _(m):
    path = f"/v1/nodes/{m.node}/report"
    head = f"nightshift-report 1\nfrom {m.node} boot 1 0 0.1.0\n"
    for text, says in (("", "no report"), ("nightshift-report 3\n", "no report"), (head + "s 1\nD\n", "line 4"), (head, "no sample"),
                       (head + "s 1\ng 0 1\n", "line 4"), (head + "s 1\nn 1\n", "line 4"), (head + "s x\n", "line 3"),
                       (head.replace(m.node, "elsewhere") + "s 1\n", "elsewhere"), (head + "s 1\nwhat 1\n", "line 4")):
        status, answer = m.c.call("POST", path, text.encode(), kind="application/octet-stream")
        same(status, 400)
        assert says in answer["detail"], (text, answer)
    same(m.c.call("POST", "/v1/nodes/nowhere/report", head.encode(), kind="application/octet-stream")[0], 404)
    same(m.c.call("POST", path, head.encode(), kind="application/octet-stream", uid=OURS)[0], 403)


@case("a machine whose agent is silent has no figures, and says so")
def _(m):
    m.driver_says()
    agent = m.start_agent()
    m.wait_reports()
    agent.send_signal(signal.SIGSTOP)
    wait_for("silence", lambda: not m.state()["reports"])
    same((m.gpu(0)["util_percent"], m.gpu(0)["parts"], m.load()["cpu_milli"]), (None, [], None))
    agent.send_signal(signal.SIGCONT)
    m.wait_reports()


CONTAINERS = {"ours": "a" * 64, "theirs": "b" * 64, "late": "c" * 64}


@contextlib.contextmanager
def in_pod(m, name, driver):
    """A process in a container's control group, as a driver of the kubelet names it."""
    uid = "0f3a6b1c-7d52-4c86-9e52-a1b2c3d4e5f6"
    path = {"cgroupfs": f"burstable/pod{uid}/{CONTAINERS[name]}",
            "systemd": f"x-kubepods-burstable.slice/x-kubepods-burstable-pod{uid.replace('-', '_')}.slice/"
                       f"cri-containerd-{CONTAINERS[name]}.scope"}[driver]
    v1 = "memory/" if os.path.isdir("/sys/fs/cgroup/memory") else ""
    top = f"/sys/fs/cgroup/{v1}{m.c.cgroup.replace('/', '-')}-kubepods"
    os.makedirs(f"{top}/{path}", exist_ok=True)
    process = subprocess.Popen(["sleep", "600"])
    try:
        with open(f"{top}/{path}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(process.pid))
        yield process.pid
    finally:
        process.kill()
        process.wait()
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


@case("on Kubernetes the parts of a GPU are pods too, and the kubelet says who has it")
def _(m):
    python = kubelet.python_with_grpc()
    if not python:
        assert not os.environ.get("NIGHTSHIFT_STRICT"), "there is no python3-grpcio; see tools/install-deps"
        raise Skip("python3-grpcio is not installed")
    m.driver_says([], ["mig 1", "instance MIG-71"])
    logs = f"{m.c.folder}/containers"
    os.makedirs(logs, exist_ok=True)
    job = m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", name="mine", resources={"gpus": 1, "cpus": 1, "mem": "64Mi"})
    m.c.wait_state(job, "running")
    fake = kubelet.Kubelet(m.c.folder, python)
    m.start_agent("--kubelet", fake.socket, "--pod-logs", logs, "--kube-prefix", "ns-")
    m.wait_reports()
    wait_for("the kubelet", lambda: m.load()["kubelet"] == {"pods": 0, "containers": 0, "devices_given": 0, "devices": 0})
    uuids = [g["uuid"] for g in m.c.ask("GET", "/v1/gpus")["gpus"]]
    pod = f"nightshift-{job}-1-0"
    pods = [("ns-ours", pod, "job", [uuids[0]]), ("web", "shop-1", "train", ["MIG-71"]), ("kube-system", "dns", "dns", [])]
    fake.says(pods, allocatable=[uuids[0], "MIG-71"])
    for container, (space, name, what) in {"ours": ("ns-ours", pod, "job"), "theirs": ("web", "shop-1", "train")}.items():
        open(f"{logs}/{name}_{space}_{what}-{CONTAINERS[container]}.log", "w", encoding="ascii").close()
    with in_pod(m, "ours", "cgroupfs") as a, in_pod(m, "theirs", "systemd") as b, in_pod(m, "late", "cgroupfs") as c:
        m.driver_says(["memory 80000 60000", "utilisation 90 40", f"process {a} 20000 compute", f"process {b} 30000 compute",
                       f"process {c} 5000 compute", f"load {a} 40", f"load {b} 30", f"load {c} 10"],
                      ["mig 1", "instance MIG-71"])
        gpu = wait_for("the pods", lambda: (lambda g: g if len(g["pods"]) == 1 and g["util_percent"] == 90 else None)(m.gpu(0)))
        same(gpu["pods"], [{"namespace": "ns-ours", "pod": pod, "container": "job", "device": uuids[0], "id": job}])
        gpu = wait_for("the parts", lambda: (lambda g: g if len(g["parts"]) == 5 else None)(m.gpu(0)))
        same({(p["kind"], p["name"]): (p["util_percent"], p["mem_mib"], p["pod"]) for p in gpu["parts"]},
             {("job", "mine"): (40.0, 20000, pod), ("pod", "web/shop-1/train"): (30.0, 30000, "shop-1"),
              ("other", None): (10.0, 5000, None), ("unknown", None): (10.0, 5000, None), ("idle", None): (10.0, 20000, None)})
        adds_up(gpu)
        same([(p["pod"], p["device"], p["id"]) for p in m.gpu(1)["pods"]], [("shop-1", "MIG-71", None)])
        now = m.load()["kubelet"]
        same((now["pods"], now["containers"], now["devices_given"]), (3, 3, 2))
        # Who does not see everything sees a pod of no job without its names, and other tenants' not at all.
        text = json.dumps([m.gpu(0, uid=THEIRS), m.gpu(1, uid=THEIRS)])
        assert "shop-1" not in text and pod not in text and "(another pod)" in text, text
        same([p["pod"] for p in m.gpu(0, uid=OURS)["parts"] if p["kind"] == "job"], [pod])
        page = m.c.ask("GET", "/metrics")
        line = [x for x in page.splitlines() if x.startswith("DCGM_FI_DEV_GPU_UTIL{") and uuids[0] in x][0]
        assert f',pod="{pod}",namespace="ns-ours",container="job"}} 90' in line, line
        line = [x for x in page.splitlines() if x.startswith("DCGM_FI_DEV_GPU_TEMP{") and uuids[1] in x][0]
        assert ',pod="shop-1",namespace="web",container="train"}' in line, line
        assert 'kind="pod",job="",user="",tenant="",pod="shop-1",namespace="web",container="train"} 30' in page, page
        # A container whose log comes later gets its name then.
        open(f"{logs}/late-1_web_app-{CONTAINERS['late']}.log", "w", encoding="ascii").close()
        wait_for("its name", lambda: "web/late-1/app" in [p["name"] for p in m.gpu(0)["parts"]])
        adds_up(m.gpu(0))
        # A kubelet that refuses, talks nonsense or hangs: the machine is still measured, and has no pods.
        for says in ("refuse", "garbage", "hang"):
            fake.says(pods, says=says)
            wait_for(f"the kubelet's {says}", lambda: m.load()["kubelet"] is None)
            seen = m.load()["seen_ms"]
            wait_for("more samples", lambda: m.load()["seen_ms"] > seen)
            m.stop_agents()
            fake.says(pods, allocatable=[uuids[0], "MIG-71"])
            m.start_agent("--kubelet", fake.socket, "--pod-logs", logs, "--kube-prefix", "ns-")
            wait_for("the kubelet again", lambda: (m.load()["kubelet"] or {}).get("pods") == 3)
            same(m.load()["kubelet"]["devices"], 2)
    fake.close()
    m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
    m.c.wait_end(job)


# ---- its own figures ----

def own_line(page, start):
    """With its end; a page that has just begun may have none."""
    return next((line + "\n" for line in page.splitlines() if line.startswith(start)), "")


def waiting(port):
    """Bytes of samples that nobody has taken yet."""
    return float(own_line(scrape(port), "nightshift_agent_waiting_bytes").split()[-1])


def scrape(port, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    with socket.create_connection(("127.0.0.1", port), timeout=cl.PATIENCE_S) as s:
        s.sendall(request)
        out = b""
        while (some := s.recv(65536)):
            out += some
    return out.decode()


@case("the agent's own page has the daemon's series, and answers nothing else")
def _(m):
    m.driver_says(["memory 80000 1000", "utilisation 55 5"])
    m.start_agent("--metrics", "127.0.0.1:0")
    m.wait_reports()
    port = m.metrics_port()
    page = wait_for("the load", lambda: (lambda p: p if "} 55\n" in p else None)(scrape(port)))
    head, body = page.split("\r\n\r\n", 1)
    assert head.startswith("HTTP/1.1 200") and "application/openmetrics-text" in head and body.endswith("# EOF\n"), page
    same(int(head.split("Content-Length: ")[1].split()[0]), len(body))

    def names(text):
        return {x.split()[2] for x in text.splitlines() if x.startswith("# TYPE DCGM_") or x.startswith("# TYPE nightshift_gpu_part")}

    def line(text, start):
        return [x for x in text.splitlines() if x.startswith(start)][0]

    theirs = m.c.ask("GET", "/metrics")
    same(names(body), names(theirs))
    same(line(body, 'DCGM_FI_DEV_GPU_UTIL{gpu="0"'), line(theirs, 'DCGM_FI_DEV_GPU_UTIL{gpu="0"'))
    assert "nightshift_agent_reports{" in body and "nightshift_node_held{" in body, body
    if shutil.which("promtool"):
        subprocess.run(["promtool", "check", "metrics"], input=body.encode(), check=True)
    same(scrape(port, b"GET / HTTP/1.1\r\n\r\n").split()[1], "404")
    same(scrape(port, b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\n").split()[1], "405")
    with contextlib.suppress(ConnectionResetError):
        same(scrape(port, b"GET /" + b"x" * 10000), "")  # too long: closed
    # Those who say nothing are let go, and hold up nobody for long.
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]

    def works():
        try:
            return "# EOF" in scrape(port)
        except ConnectionResetError:
            return False
    wait_for("the page again", works)
    for s in idle:
        s.close()


# ---- the owner's hold ----

@case("a machine that its owner holds is taken back, and nothing is thawed there until it is released")
def _(m):
    m.driver_says()
    m.start_agent()
    m.wait_reports()
    script = f"n=$(cat {m.c.work}/hold.n 2>/dev/null || echo 0); trap 'echo $n >{m.c.work}/hold.n; exit 85' USR1; " \
             f"touch {m.c.work}/hold.up; until [ -e {m.c.work}/hold.go ]; do n=$((n + 1)); sleep 0.05; done"
    job = m.c.submit(["sh", "-c", script], uid=0, tenant="ours", volumes=[f"{m.c.work}:{m.c.work}"],
                     freeze={"mode": "signal", "signal": "USR1", "grace": "10m"},
                     resources={"gpus": 1, "cpus": 1, "mem": "64Mi"})
    up = f"{m.c.work}/hold.up"  # from here on the signal is its own to take
    m.c.wait_state(job, "running")
    wait_for("it to begin", lambda: os.path.exists(up))
    same(m.say("show"), "not held\n")
    said = m.say("hold", "--reason", "a talk at three")
    assert "held by root since" in said and "a talk at three" in said, said
    node = wait_for("the hold", lambda: (lambda n: n if n["held"] else None)(m.state()))
    same((node["held"]["by"], node["held"]["reason"], node["held"]["until_ms"], node["pool"], node["open"]),
         ("root", "a talk at three", None, "owner-held", False))
    m.c.wait_state(job, "frozen")
    wait_for("nothing of it to run", lambda: not m.c.job_pids(job))
    assert "is held by its owner (root) since" in m.nightshift("nodes"), m.nightshift("nodes")
    assert "held by its owner (root) since" in m.nightshift("why", str(job)), m.nightshift("why", str(job))
    said = m.nightshift("why", str(job))
    assert "1 machine that could run it is held by its owner until released" in said and "will start" not in said, said
    rows = m.c.ask("GET", "/v1/audit?what=node.hold")["rows"]
    assert "a talk at three" in rows[0]["reason"] and rows[0]["subject"] == m.node, rows[0]
    # It outlives agent and daemon; nobody's thaw counts, and the pool is the owner's.
    m.stop_agents()
    m.c.kill_daemon()
    m.c.start()
    m.c.wait_ready()
    same((m.c.job(job)["state"], m.state()["pool"]), ("frozen", "owner-held"))
    m.start_agent()
    m.wait_reports()
    wait_for("the hold again", lambda: (m.state()["held"] or {}).get("reason") == "a talk at three")
    m.c.call("POST", f"/v1/jobs/{job}/thaw", {})
    same(m.c.call("POST", "/v1/pools/owner-held/open", {"for": "1h"})[0], 409)
    same(m.c.call("PUT", "/v1/pools/owner-held", {"nodes": []})[0], 409)
    seen = m.load()["seen_ms"]
    wait_for("more reports", lambda: m.load()["seen_ms"] > seen + 1000)
    same((m.c.job(job)["state"], m.c.job_pids(job)), ("frozen", []))
    os.unlink(up)
    same(m.say("release"), "not held\n")
    m.c.wait_state(job, "running")
    wait_for("it to begin again", lambda: os.path.exists(up))
    same((m.state()["held"], m.state()["pool"]), (None, None))
    same([p["name"] for p in m.c.ask("GET", "/v1/pools")["pools"]], [])
    # With a time it ends by itself; it counts from when it was said.
    assert "held by root" in m.say("hold", "--for", "2s")
    wait_for("the end of the hold", lambda: m.say("show") == "not held\n")
    wait_for("that to be told", lambda: not m.state()["held"])
    m.c.wait_state(job, "running")
    open(f"{m.c.work}/hold.go", "w", encoding="ascii").close()
    m.c.wait_end(job)
    # What is wrong is said, and nothing changes.
    assert "--for" in m.say("hold", "--for", "soon", code=2), "no time"
    assert "can be said" in m.say("shout", code=2), "no verb"
    same(os.stat(m.control).st_mode & 0o777, 0o600)
    m.stop_agents()
    assert "agent.sock" in m.say("show", code=8), "nobody listens"


# ---- commands ----

def freezer(m, task):
    v1 = os.path.isdir("/sys/fs/cgroup/freezer")
    path = f"/sys/fs/cgroup/freezer/{m.c.cgroup}/{task}/freezer.state" if v1 else f"/sys/fs/cgroup/{m.c.cgroup}/{task}/cgroup.freeze"
    with open(path, encoding="ascii") as f:
        return f.read().strip() in ("FROZEN", "1")


@case("an operator has the agent pause, throttle and resume a task; what is none is refused")
def _(m):
    m.driver_says()
    path = f"/v1/nodes/{m.node}/commands"
    job = m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", freeze={"mode": "none"},
                     resources={"cpus": 1, "mem": "64Mi"})
    m.c.wait_state(job, "running")
    task = f"{job}.1.0"
    wait_for("its processes", lambda: m.c.job_pids(job))
    same(m.c.call("POST", path, {"what": "pause", "task": task})[0], 409)  # nobody would do it
    m.start_agent()
    m.wait_reports()
    same(m.command("pause", task, reason="too loud")["state"], "done")
    wait_for("it to stand still", lambda: freezer(m, task))
    same(m.command("pause", task)["state"], "done")  # once more is as once
    same("stand still: root had them paused" in m.c.job(job)["trouble"], True)
    m.stop_agents()
    m.start_agent()
    m.wait_reports()
    m.say("hold", "--for", "1h")
    refused = m.command("resume", task)
    same((refused["state"], "owner holds" in refused["text"], freezer(m, task)), ("refused", True, True))
    m.say("release")
    wait_for("the release", lambda: m.state()["held"] is None)
    same(m.command("resume", task)["state"], "done")
    wait_for("it to go on", lambda: not freezer(m, task))
    same(m.c.job(job)["trouble"], None)
    same(m.command("throttle", task, weight=50)["state"], "done")
    if os.path.isdir("/sys/fs/cgroup/cpu"):
        same(cl.read_file(f"/sys/fs/cgroup/cpu/{m.c.cgroup}/{task}/cpu.shares"), b"512\n")
    for body, status in (({"what": "pause", "task": f"{job + 7}.1.0"}, 404), ({"what": "pause", "task": "../.."}, 404),
                         ({"what": "shoot", "task": task}, 400), ({"what": "throttle", "task": task}, 400),
                         ({"what": "throttle", "task": task, "weight": 0}, 400), ({"what": "pause", "task": task, "weight": 5}, 400)):
        same((body, m.c.call("POST", path, body)[0]), (body, status))
    other = m.command("pause", f"{job}.9.0")  # a run that is not there
    same((other["state"], "no such task" in other["text"]), ("refused", True))
    same(m.c.call("POST", path, {"what": "pause", "task": task}, uid=OURS)[0], 403)
    same(m.c.call("GET", path, uid=OURS)[0], 403)
    rows = m.c.ask("GET", "/v1/audit?what=node.command")["rows"]
    assert any(r["reason"] == "too loud" and task in json.dumps(r["after"]) for r in rows), rows
    m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
    m.c.wait_end(job)


@case("a command that was taken outlives the daemon, with what became of it")
def _(m):
    m.driver_says()
    path = f"/v1/nodes/{m.node}/commands"
    job = m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", freeze={"mode": "none"}, resources={"cpus": 1, "mem": "64Mi"})
    m.c.wait_state(job, "running")
    task = f"{job}.1.0"
    wait_for("its processes", lambda: m.c.job_pids(job))
    agent = m.start_agent()
    m.wait_reports()
    agent.send_signal(signal.SIGSTOP)  # it cannot answer
    sent = m.c.ask("POST", path, {"what": "pause", "task": task, "reason": "while it sleeps"})
    m.c.kill_daemon()
    m.c.start()
    m.c.wait_ready()
    same([(x["id"], x["state"], x["by"]) for x in m.c.ask("GET", path)["commands"][:1]], [(sent["id"], "sent", "root")])
    agent.send_signal(signal.SIGCONT)
    wait_for("the agent's answer", lambda: m.c.ask("GET", path)["commands"][0]["state"] == "done")
    same(freezer(m, task), True)
    m.c.kill_daemon()
    m.c.start()
    m.c.wait_ready()
    last = m.c.ask("GET", path)["commands"][:1]
    same([(x["id"], x["state"], x["text"]) for x in last], [(sent["id"], "done", "pause: done")])
    same("stand still" in m.c.job(job)["trouble"], True)
    m.wait_reports()
    same(m.command("resume", task)["state"], "done")
    same(m.c.job(job)["trouble"], None)
    m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
    m.c.wait_end(job)


def serve_https(m, *others):
    """The daemon again, over TLS; where an agent finds it, and its flags there.  others: authorities that did not sign."""
    c, folder = m.c, m.c.folder
    for name in ("ours", *others):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/{name}.key",
                        "-out", f"{folder}/{name}.crt"], check=True, capture_output=True)
    c.ask("PUT", "/v1/users/agent-3", {})
    c.ask("PUT", f"/v1/nodes/{m.node}/owners/agent-3", {})
    token = c.ask("POST", "/v1/tokens", {"user": "agent-3", "name": "report", "scopes": ["report"]})["token"]
    with open(f"{folder}/agent.token", "w", encoding="ascii") as f:
        f.write(token + "\n")
    os.chmod(f"{folder}/agent.token", 0o600)
    c.kill_daemon()
    c.options += ["--tls-cert", f"{folder}/ours.crt", "--tls-key", f"{folder}/ours.key"]
    c.start()
    c.wait_ready()
    return f"https://127.0.0.1:{c.port()}", lambda authority: ("--ca-file", f"{folder}/{authority}.crt",
                                                              "--token-file", f"{folder}/agent.token")


@case("over https the control plane's certificate is checked, and with its authority's the agent reports")
def _(m):
    m.driver_says()
    server, flags = serve_https(m, "others")
    m.start_agent(*flags("others"), server=server)
    wait_for("the refusal", lambda: "agent.away" in m.log())
    same(m.state()["reports"], False)
    m.stop_agents()
    m.start_agent(*flags("ours"), server=server)
    m.wait_reports()


def make():
    c = WithAgents(size=("--cpus", "64", "--mem", "64Gi", "--nvml", DRIVER), listen="127.0.0.1:0")
    dev = f"{c.folder}/dev"
    os.mkdir(dev)
    os.chmod(c.work, 0o777)  # whoever root's jobs are run as, beside those of others
    for i in range(GPUS):
        os.mknod(f"{dev}/nvidia{i}", 0o666 | 0o020000, os.makedev(195, i))
        os.chmod(f"{dev}/nvidia{i}", 0o666)
    c.options += ["--dev", dev]
    c.env |= {"NIGHTSHIFT_FAKE_NVML": f"{c.folder}/nvml", "NIGHTSHIFT_FAKE_DEV": dev}
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    m = Machine.__new__(Machine)
    m.c = c
    m.driver_says()
    return c


def fresh(c):
    """Each case begins without agents, and with a daemon that has heard of none: it would believe the last one for a while."""
    if not hasattr(c, "machine"):
        c.machine = Machine(c)
    c.machine.stop_agents()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{c.folder}/agent.log")
    if c.machine.state()["reports"]:
        c.kill_daemon()
        c.start()
        c.wait_ready()
    same(c.machine.state()["reports"], False)
    return (c.machine,)


class WithAgents(cl.Cluster):
    def close(self):
        if hasattr(self, "machine"):
            self.machine.stop_agents()
        super().close()


if __name__ == "__main__":
    sys.exit(case.together(make=make, arguments=fresh))
