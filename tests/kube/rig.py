"""rig - a real Kubernetes for tests: etcd, the API server and what else is asked for, in a folder of its own.

  with Rig(kwok=True) as rig:
      rig.kwok_nodes(100, gpus=8)
      rig.post("/api/v1/namespaces/default/pods", {...})
      rig.wait(lambda: ..., "the pod runs")

Everything listens on loopback, or, with real=True, on the address of a bridge that only the rig's
own nodes are on (node.py).  Processes die with the test, however it dies; what a killed test could
not remove, the next rig removes.  Waiting is for a condition and has a bound.

PARTS by name, for stop, start, pause and resume: etcd, apiserver, controllers, scheduler, kwok, a
node's name, and NODE/kubelet, NODE/containerd.
"""
import concurrent.futures
import contextlib
import fcntl
import http.client
import json
import os
import select
import shutil
import signal
import ssl
import subprocess
import threading
import urllib.parse

import images as images_of
import node as nodes
import pki
from parts import PATIENCE_S, Failed, Part, Refused, free_ports, pids_of, wait

HERE = os.path.dirname(os.path.realpath(__file__))
BASE = f"/tmp/nightshift-rig-{os.geteuid()}"
SLOTS = 16
GPU = "nvidia.com/gpu"
PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}


def why_not(real=False):
    """Why a rig cannot run here and the way out, or None."""
    if not os.path.exists(f"{programs()}/etcd"):
        return "the Kubernetes of the tests is not built (tests/kube/build)"
    needs = ["openssl", "setpriv"]
    if real:
        if os.geteuid() != 0:
            return "real nodes need root"
        needs += nodes.NEEDS
    for program in needs:
        if not shutil.which(program):
            return f"{program} is not installed (tools/install-deps --kube)"
    return None


def programs():
    """The folder of kube-apiserver and its like."""
    done = subprocess.run([f"{HERE}/build", "--where"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout.strip()


class Slot:
    """A number that is ours alone while we live; names our folder, bridge, cgroups and addresses."""

    def __init__(self):
        os.makedirs(BASE, mode=0o700, exist_ok=True)
        if os.stat(BASE).st_uid != os.geteuid():
            raise Failed(f"{BASE} is somebody else's; remove it")
        self.lock = self.number = None
        for number in range(SLOTS):
            left = os.path.exists(f"{BASE}/{number}")
            lock = self.taken(number) if left or not self.lock else None
            if lock and os.path.exists(f"{BASE}/{number}"):
                clear(number)
            if lock and not self.lock:
                self.lock, self.number = lock, number
            elif lock:
                lock.close()
        if not self.lock:
            raise Failed(f"{SLOTS} rigs run already; see {BASE}")
        self.folder = f"{BASE}/{self.number}"
        os.mkdir(self.folder, 0o700)

    @staticmethod
    def taken(number):
        """The lock of a number, which closing gives back; None when a rig that lives has it."""
        lock = open(f"{BASE}/{number}.lock", "w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            lock.close()
            return None

    def release(self):
        clear(self.number)
        self.lock.close()


def clear(number):
    """Remove what the rig of this number left on the machine; its owner is dead or asks for it."""
    folder = f"{BASE}/{number}"
    for pid in pids_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait(lambda: not pids_of(folder), f"the processes of {folder} end")
    if os.geteuid() == 0:
        nodes.clear(number)
    shutil.rmtree(folder, ignore_errors=True)


class Rig:
    def __init__(self, controllers=True, scheduler=False, kwok=False, real=False, fsync=False, flags=None,
                 node_grace=None):
        """kwok may be a file of Stages.  real: real_node() may be called (needs root).  fsync: etcd
        writes as it would for a user.  flags: more arguments by the part's name.  node_grace: how
        long a node may be silent ("20s"; two hours with KWOK, whose nodes are quiet)."""
        why = why_not(real)
        if why:
            raise Failed(why)
        self.wanted = {"controllers": controllers, "scheduler": scheduler, "kwok": kwok}
        self.real, self.fsync, self.more = real, fsync, flags or {}
        self.node_grace = node_grace or ("2h" if kwok else "50s")
        self.programs = programs()
        self.parts, self.nodes = {}, {}
        self.local = threading.local()
        self.kubeconfigs, self.archives = 0, []
        self.granted = None  # the daemon's kubeconfig, once there is one (tests/lib/kube_cluster.py)
        self.slot = None

    def __enter__(self):
        self.slot = Slot()
        try:
            self._bring_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for part in [*self.nodes.values(), *reversed(self.parts.values())]:
            part.stop()
        if self.slot:
            self.slot.release()
            self.slot = None

    # ---- bringing it up ----

    def _bring_up(self):
        self.folder = self.slot.folder
        self.log_path = f"{self.folder}/apiserver.log"
        self.address = nodes.make_bridge(self.slot.number) if self.real else "127.0.0.1"
        names = ["etcd", "peer", "apiserver", "controllers", "scheduler", "kwok"]
        self.ports = dict(zip(names, free_ports(len(names))))
        self.url = f"https://{self.address}:{self.ports['apiserver']}"
        self.pki = pki.Authority(f"{self.folder}/pki")
        self.pki.service_account_keys()
        self.pki.certificate("apiserver", "kube-apiserver", addresses=["127.0.0.1", self.address],
                             names=["localhost", "kubernetes.default.svc"])
        self.pki.certificate("kubelet-client", "rig:apiserver", ["system:masters"])
        self.kubeconfig = self.kubeconfig_for("rig:admin", ["system:masters"])
        self.context = ssl.create_default_context(cafile=self.pki.ca)
        self.context.load_cert_chain(*self.pki.pair("rig:admin"))
        self._add("etcd", self._etcd(), self._healthy("etcd", "/health", "http"))
        self._add("apiserver", self._apiserver(), lambda: self.get("/readyz") == "ok")
        if self.wanted["controllers"]:
            self._add("controllers", self._controllers(), self._healthy("controllers", "/healthz"))
        if self.wanted["scheduler"]:
            self._add("scheduler", self._scheduler(), self._healthy("scheduler", "/readyz"))
        if self.wanted["kwok"]:
            self._add("kwok", self._kwok(), self._healthy("kwok", "/healthz", "http"))
        for name in ("etcd", "apiserver"):  # the others end when there is nobody to ask
            self.parts[name].start()
            self.parts[name].wait_ready()
        rest = [part for name, part in self.parts.items() if name not in ("etcd", "apiserver")]
        for part in rest:
            part.start()
        for part in rest:
            part.wait_ready()
        if self.wanted["controllers"]:  # without it no pod can be made
            self.wait(lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"), "the default account")

    def _add(self, name, argv, ready):
        self.parts[name] = Part(name, argv + self.more.get(name, []), ready, self.folder)

    def add(self, name, argv):
        """Another program of the cluster, that runs as long as it: an operator."""
        self._add(name, argv, lambda: True)
        self.parts[name].start()

    def _healthy(self, name, path, scheme="https"):
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # made by the program itself
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        options = {"context": trust} if scheme == "https" else {}

        def healthy():
            connection = kind("127.0.0.1", self.ports[name], timeout=PATIENCE_S, **options)
            try:
                connection.request("GET", path)
                return connection.getresponse().status == 200
            finally:
                connection.close()
        return healthy

    def _etcd(self):
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peer"))
        argv = [f"{self.programs}/etcd", "--name=rig", f"--data-dir={self.folder}/etcd", "--log-level=warn",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=rig={peer}"]
        return argv if self.fsync else argv + ["--unsafe-no-fsync"]

    def _apiserver(self):
        certificate, key = self.pki.pair("apiserver")
        client_certificate, client_key = self.pki.pair("kubelet-client")
        return [f"{self.programs}/kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}",
                f"--bind-address={self.address}", f"--advertise-address={self.address}",
                f"--secure-port={self.ports['apiserver']}", "--endpoint-reconciler-type=none",
                f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--client-ca-file={self.pki.ca}",
                f"--kubelet-certificate-authority={self.pki.ca}", "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-client-certificate={client_certificate}", f"--kubelet-client-key={client_key}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.230.0.0/16",
                f"--service-account-key-file={self.pki.folder}/sa.pub",
                f"--service-account-signing-key-file={self.pki.folder}/sa.key",
                "--allow-privileged=true", "--profiling=false"]

    def _controllers(self):
        return [f"{self.programs}/kube-controller-manager", "--bind-address=127.0.0.1",
                f"--secure-port={self.ports['controllers']}", f"--cert-dir={self.folder}/controllers",
                f"--kubeconfig={self.kubeconfig_for('system:kube-controller-manager')}", "--leader-elect=false",
                "--use-service-account-credentials=true", f"--root-ca-file={self.pki.ca}",
                f"--service-account-private-key-file={self.pki.folder}/sa.key",
                f"--node-monitor-grace-period={self.node_grace}", "--kube-api-qps=1000", "--kube-api-burst=2000"]

    def _scheduler(self):
        kubeconfig = self.kubeconfig_for("system:kube-scheduler")
        settings = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    "clientConnection": {"kubeconfig": kubeconfig, "qps": 2000, "burst": 4000}}
        path = f"{self.folder}/scheduler.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(settings, f)
        return [f"{self.programs}/kube-scheduler", f"--config={path}", "--bind-address=127.0.0.1",
                f"--secure-port={self.ports['scheduler']}", f"--cert-dir={self.folder}/scheduler"]

    def _kwok(self):
        port = self.ports["kwok"]
        argv = [f"{self.programs}/kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--enable-crds=",
                "--node-ip=127.0.0.1", f"--node-port={port}", f"--server-address=127.0.0.1:{port}",
                "--node-lease-duration-seconds=2400", "--v=WARN"]
        stages = self.wanted["kwok"]
        return argv + ([f"--config={stages}"] if isinstance(stages, str) else [])

    # ---- talking to it ----

    def kubectl(self, *args, input=None):
        """What it prints; raises Failed with what it says when it fails."""
        done = subprocess.run([f"{self.programs}/kubectl", f"--kubeconfig={self.kubeconfig}", *args], input=input,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder})
        if done.returncode:
            raise Failed(f"kubectl {' '.join(args)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body):
        return self.ask("POST", path, body)

    def patch(self, path, body, kind="merge"):
        """kind: merge, json, strategic or apply."""
        return self.ask("PATCH", path, body, PATCHES[kind])

    def put(self, path, body):
        return self.ask("PUT", path, body)

    def delete(self, path, body=None):
        return self.ask("DELETE", path, body)

    def ask(self, method, path, body=None, kind="application/json", timeout=PATIENCE_S):
        """The answer, from JSON where it is; one connection a thread is kept open."""
        data = None if body is None else json.dumps(body).encode()
        connection = self._connection(timeout)
        try:
            connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json, */*"})
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if "json" in (response.headers.get("Content-Type") or ""):
            answer = json.loads(answer)
        else:
            answer = answer.decode(errors="replace")
        if response.status >= 400:
            raise Refused(method, path, response.status, answer)
        return answer

    def _connection(self, timeout):
        connection = getattr(self.local, "connection", None)
        if not connection:
            connection = self.local.connection = http.client.HTTPSConnection(
                self.address, self.ports["apiserver"], context=self.context)
        connection.timeout = timeout
        if connection.sock:
            connection.sock.settimeout(timeout)
            # Words that nobody asked for are the other side's goodbye.
            if select.select([connection.sock], [], [], 0)[0]:
                connection.close()
        return connection

    def wait(self, fn, what, seconds=PATIENCE_S):
        """fn's value, once it is true; no answer and a refusal mean not yet."""
        return wait(fn, what, seconds)

    def log_tail(self, lines=12):
        """The last words of the API server."""
        return self.parts["apiserver"].tail(lines)

    def kubeconfig_for(self, user=None, groups=(), serviceaccount=None):
        """The path of a kubeconfig of a user, or of a service account "NAMESPACE/NAME"."""
        if serviceaccount:
            namespace, name = serviceaccount.split("/")
            answer = self.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
                               {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
            user, who = f"system:serviceaccount:{namespace}:{name}", {"token": answer["status"]["token"]}
        else:
            certificate, key = self.pki.certificate(user, user, groups)
            who = {"client-certificate": certificate, "client-key": key}
        self.kubeconfigs += 1
        path = f"{self.folder}/kubeconfig-{self.kubeconfigs}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "rig",
                       "clusters": [{"name": "rig", "cluster": {"server": self.url, "certificate-authority": self.pki.ca}}],
                       "users": [{"name": user, "user": who}],
                       "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": user}}]}, f)
        return path

    # ---- nodes ----

    def kwok_nodes(self, n, gpus=8, labels=None, prefix="n", first=0, cpus=96, memory="1Ti", more=None):
        """Makes nodes that are only pretended, PREFIX0 and so on; returns their names once they are Ready."""
        names = [f"{prefix}{first + i}" for i in range(n)]
        sizes = {"cpu": str(cpus), "memory": memory, "pods": "250", "ephemeral-storage": "1Ti"}
        if gpus:
            sizes[GPU] = str(gpus)
        sizes.update(more or {})  # what other device plugins would report

        def make(name):
            known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                     "type": "kwok"}
            self.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {**known, **(labels or {})},
                                                     "annotations": {"kwok.x-k8s.io/node": "fake"}},
                                        "status": {"capacity": sizes, "allocatable": sizes}})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(make, names))
        missing = set(names)

        def fewer():
            before = len(missing)
            missing.difference_update(self.ready_nodes())
            return len(missing) < before
        while missing:  # however slow it is, as long as it goes on
            self.wait(fewer, f"{len(missing)} of {n} KWOK nodes are Ready")
        return names

    def ready_nodes(self):
        """The names of the nodes that are Ready."""
        return {one["metadata"]["name"] for one in self.get("/api/v1/nodes?resourceVersion=0")["items"]
                if any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", []))}

    def set_gpus(self, name, gpus):
        """What a device plugin would report; a kubelet that runs leaves it alone."""
        self.patch(f"/api/v1/nodes/{name}/status",
                   {"status": {"capacity": {GPU: str(gpus)}, "allocatable": {GPU: str(gpus)}}})

    def images(self):
        """The archives that a real node starts with: pause and busybox."""
        if not self.archives:
            self.archives = [images_of.pause(self.folder), images_of.busybox(self.folder)]
        return self.archives

    def real_node(self, name, gpus=0, labels=None, images=()):
        """A kubelet with containerd in namespaces of their own; returns it once it is Ready.  images:
        archives besides pause and busybox."""
        if not self.real:
            raise Failed("this rig has no network for real nodes: Rig(real=True)")
        one = self.nodes[name] = nodes.Node(self, name, len(self.nodes) + 1, gpus, labels, images)
        self.start(name)
        return one

    # ---- harm ----

    def stop(self, name, number=signal.SIGKILL):
        self._part(name).stop(number)

    def start(self, name):
        """Returns once it is ready."""
        part = self._part(name)
        part.start()
        part.wait_ready()
        one = self.nodes.get(name.partition("/")[0])
        if one:
            one.report_gpus()

    def pause(self, name):
        self._part(name).pause()

    def resume(self, name):
        self._part(name).send(signal.SIGCONT)

    def _part(self, name):
        whole, _, inner = name.partition("/")
        if inner and whole in self.nodes:
            return self.nodes[whole].parts[inner]
        return self.nodes[whole] if whole in self.nodes else self.parts[name]


def quoted(**parameters):
    """A query: quoted(labelSelector="a=b")."""
    return "?" + urllib.parse.urlencode(parameters)
