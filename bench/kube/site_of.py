"""site_of - the cluster of bench/kube: a real API server with pretended nodes, pods that wait, and a witness.

The witness watches the pods that have a node and notes when it first saw each: nobody polls.  It reads no
JSON, so that it costs everybody as little as it can.
"""
import concurrent.futures
import contextlib
import http.client
import os
import re
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("NIGHTSHIFT_SOURCE", ROOT)
os.environ.setdefault("NIGHTSHIFT_BUILD", f"{ROOT}/build")
sys.path[:0] = [f"{ROOT}/tests/lib"]
import kube_cluster  # noqa: E402

SPACE = "bench"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
NAME = re.compile(rb'"name":"([^"]+)"')
VERSION = re.compile(rb'"resourceVersion":"([^"]+)"')
QUIET_S = 30  # without a binding for so long nothing will come any more
MAKERS = 8
SERVERS = ("apiserver", "etcd", "controllers", "kwok")
SETTLE_S = 60  # what they have left to do after a work may take so long


class Stuck(Exception):
    """Says how far it came."""


class Witness:
    """Notes the moment in which each pod of the namespace was first seen on a node."""

    def __init__(self, rig):
        self.rig, self.seen, self.over, self.why = rig, {}, False, None
        self.version = rig.get(f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        self.connection = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(2)
        self.thread.join(10)

    def _run(self):
        try:
            while not self.over:  # the server ends a watch that is slower than it likes
                self._watch()
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
            self.why = None if self.over else e

    def _watch(self):
        self.connection = http.client.HTTPSConnection(self.rig.address, self.rig.ports["apiserver"],
                                                      context=self.rig.context, timeout=600)
        self.connection.request("GET", f"{PODS}?watch=1&fieldSelector=spec.nodeName!%3D&timeoutSeconds=1800"
                                       f"&resourceVersion={self.version}", headers={"Accept": "application/json"})
        answer, rest = self.connection.getresponse(), b""
        while part := answer.read1(1 << 18):
            now = time.monotonic()
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                name, version = NAME.search(line), VERSION.search(line)  # the first of each is the pod's own
                if name and version:
                    self.seen.setdefault(name[1].decode(), now)
                    self.version = version[1].decode()
        self.connection.close()

    def wait(self, count, alive=lambda: None):
        """Until so many were seen; the moments, in their order."""
        last, since = -1, time.monotonic()
        while len(self.seen) < count:
            if len(self.seen) != last:
                last, since = len(self.seen), time.monotonic()
            alive()
            if self.why or time.monotonic() - since > QUIET_S:
                raise Stuck(f"{len(self.seen)} of {count} pods were bound, and no more: {self.why or ''}")
            time.sleep(0.05)
        return sorted(self.seen.values())


def cpu_of(rig):
    """Seconds of CPU that each of the servers has used."""
    return {name: Process(rig.parts[name].process.pid, None).cpu_s() for name in SERVERS}


class Meter:
    """What the servers did from its beginning on: their CPU, and how many bindings were at work at a time."""

    BINDINGS = re.compile(r'^apiserver_request_duration_seconds_sum\{.*subresource="binding".*\} (\S+)$', re.M)

    def __init__(self, rig):
        self.rig = rig
        self.cpu, self.took, self.idle, self.began = cpu_of(rig), self.took_s(), self.idle_s(), time.monotonic()

    def took_s(self):
        """Of all bindings, in the server's handlers."""
        return sum(map(float, self.BINDINGS.findall(self.rig.get("/metrics"))))

    def idle_s(self):
        with open("/proc/stat", encoding="utf-8") as f:
            words = f.readline().split()
        return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")

    def figures(self, pods, pods_s):
        now, idle, past = cpu_of(self.rig), self.idle_s(), time.monotonic() - self.began
        figures = {f"{name}_ms": (now[name] - self.cpu[name]) * 1e3 / pods for name in SERVERS}
        figures["idle"] = (idle - self.idle) / past / os.cpu_count()
        figures["at_work"] = (self.took_s() - self.took) * pods_s / pods
        return figures


class Process:
    """What a process has used, as the kernel counts it."""

    def __init__(self, pid, ready):
        self.pid, self.ready = pid, ready  # ready() returns when it is

    def cpu_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as f:
            words = f.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


class Site:
    def __init__(self, nodes, in_flight):
        self.count, self.in_flight = nodes, in_flight
        self.rig, self.nodes, self.kubeconfig = None, [], None

    def __enter__(self):
        self.rig = kube_cluster.Rig(kwok=True, scheduler=True, fsync=True).__enter__()
        try:
            self.rig.stop("scheduler")
            self.rig.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
            self.rig.wait(lambda: self.rig.get(f"/api/v1/namespaces/{SPACE}/serviceaccounts/default"), "its account")
            self.nodes = self.rig.kwok_nodes(self.count)
            self.kubeconfig = kube_cluster.grant(self.rig)
        except BaseException:
            self.rig.close()
            raise
        return self

    def __exit__(self, *_):
        self.rig.close()

    def pod(self, name, scheduler, gang=None):
        annotations = {"nightshift.dev/gang": gang[0], "nightshift.dev/gang-size": str(gang[1])} if gang else {}
        asks = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
        return {"metadata": {"name": name, "annotations": annotations},
                "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
                         "automountServiceAccountToken": False,
                         "containers": [{"name": "c", "image": "none", "resources": {"requests": asks, "limits": asks}}]}}

    def make(self, pods):
        """All of them are there when it returns."""
        with concurrent.futures.ThreadPoolExecutor(MAKERS) as pool:
            list(pool.map(lambda pod: self.rig.post(PODS, pod), pods))

    def clear(self):
        """No pod is left, and nothing of them is still to be done."""
        self.empty(f"{PODS}?gracePeriodSeconds=0", f"{PODS}?limit=1")
        events = f"/api/v1/namespaces/{SPACE}/events"
        self.empty(events, f"{events}?limit=1")
        self.settle()

    def empty(self, delete, first):
        """The server gives up a request after a minute, which thousands may take longer than: it is asked again."""
        def none_left():
            with contextlib.suppress(http.client.HTTPException, OSError):
                self.rig.ask("DELETE", delete, timeout=90)
            return not self.rig.get(first)["items"]
        self.rig.wait(none_left, f"nothing is left of {first}", 600)

    def settle(self):
        """The servers use no less CPU in two seconds than in the two before: nothing is left of the last work."""
        used, until = float("inf"), time.monotonic() + SETTLE_S
        while time.monotonic() < until:
            before = sum(cpu_of(self.rig).values())
            time.sleep(2)
            now = sum(cpu_of(self.rig).values()) - before
            if now >= used * 0.9:
                return
            used = now

    @contextlib.contextmanager
    def kube_scheduler(self):
        part = self.rig.parts["scheduler"]
        part.start()
        try:
            yield Process(part.process.pid, part.wait_ready)
        finally:
            part.stop()

    @contextlib.contextmanager
    def nightshiftd(self):
        """With an empty store, as the service account of the chart and with its rights."""
        with kube_cluster.KubeCluster(self.rig, kubeconfig=self.kubeconfig) as c:
            c.start()
            try:
                yield Process(c.daemon.pid, c.wait_ready)
            except Stuck as e:
                raise Stuck(f"{e}\n{c.log_tail()}") from e
