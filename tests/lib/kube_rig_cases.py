"""kube_rig_cases - what tests on Kubernetes rely on: the rig does what it says and leaves nothing behind."""
import os
import signal
import socket
import subprocess
import sys

from cases import Cases, same
from patience import PATIENCE_S

KUBE = os.path.join(os.environ["NIGHTSHIFT_SOURCE"], "tests", "kube")
sys.path.insert(0, KUBE)
import images  # noqa: E402
import node  # noqa: E402
import parts  # noqa: E402
from rig import BASE, GPU, Refused, Rig, Slot, why_not  # noqa: E402

case = Cases()
PODS = "/api/v1/namespaces/default/pods"


def machine(rig, name, gpus=0):
    """A real node; the first case that wants it makes it."""
    return rig.nodes.get(name) or rig.real_node(name, gpus=gpus)


def make_pod(rig, name, where, *command, image=images.BUSYBOX):
    rig.post(PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": where, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": image, "command": list(command)}]}})


def phase(rig, name):
    return rig.get(f"{PODS}/{name}")["status"].get("phase")


def wait_phase(rig, name, wanted):
    rig.wait(lambda: phase(rig, name) == wanted, f"pod {name} is {wanted}")
    return rig.get(f"{PODS}/{name}")["status"]


def exit_code(status):
    return status["containerStatuses"][0]["state"]["terminated"]["exitCode"]


@case("the control plane is ready and says who may do what")
def _(rig):
    same(rig.get("/readyz"), "ok")
    same(rig.get("/version")["gitVersion"][:2], "v1")
    path = rig.kubeconfig_for("nobody:much")
    done = subprocess.run([f"{rig.programs}/kubectl", f"--kubeconfig={path}", "get", "pods"], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    assert "nobody:much" in done.stderr and "forbidden" in done.stderr, done.stderr


@case("a service account's kubeconfig is that account's")
def _(rig):
    path = rig.kubeconfig_for(serviceaccount="default/default")
    done = subprocess.run([f"{rig.programs}/kubectl", f"--kubeconfig={path}", "auth", "whoami"], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    assert "system:serviceaccount:default:default" in done.stdout, done.stdout + done.stderr


@case("a refusal is raised with its status")
def _(rig):
    try:
        rig.get("/api/v1/namespaces/not-there")
    except Refused as no:
        same(no.status, 404)
    else:
        raise AssertionError("it was found")


@case("pretended nodes are Ready and have their GPUs, and a pod runs there")
def _(rig):
    names = rig.kwok_nodes(20, gpus=8, labels={"rack": "r1"})
    same(names[-1], "n19")
    one = rig.get("/api/v1/nodes/n7")
    same((one["status"]["capacity"][GPU], one["status"]["allocatable"][GPU], one["metadata"]["labels"]["rack"]),
         ("8", "8", "r1"))
    make_pod(rig, "pretended", "n7", "true")
    wait_phase(rig, "pretended", "Running")


@case("a pod runs on a real node: its output, a command in it and its exit code come through the API server")
def _(rig):
    machine(rig, "a", gpus=4)
    same(rig.get("/api/v1/nodes/a")["status"]["allocatable"][GPU], "4")
    make_pod(rig, "talks", "a", "sh", "-c", "echo hello from $(hostname); until [ -e /tmp/end ]; do sleep 0.1; done; exit 7")
    wait_phase(rig, "talks", "Running")
    rig.wait(lambda: rig.get(f"{PODS}/talks/log") == "hello from talks\n", "its output is there")
    same(rig.kubectl("exec", "talks", "--", "sh", "-c", "cat; touch /tmp/end"), "")
    same(exit_code(wait_phase(rig, "talks", "Failed")), 7)


@case("the GPUs of a real node stay when the kubelet starts anew")
def _(rig):
    machine(rig, "a", gpus=4)
    rig.stop("a/kubelet")
    rig.start("a/kubelet")
    same(rig.get("/api/v1/nodes/a")["status"]["allocatable"][GPU], "4")


@case("pods on two real nodes talk to each other, and this machine to both")
def _(rig):
    machine(rig, "a", gpus=4)
    machine(rig, "b")
    make_pod(rig, "listens", "b", "nc", "-ll", "-p", "7000", "-e", "echo", "from the other side")
    wait_phase(rig, "listens", "Running")
    there = rig.get(f"{PODS}/listens")["status"]["podIP"]
    make_pod(rig, "calls", "a", "sh", "-c", f"until nc {there} 7000 </dev/null; do sleep 0.1; done")
    same(exit_code(wait_phase(rig, "calls", "Succeeded")), 0)
    same(rig.get(f"{PODS}/calls/log"), "from the other side\n")
    with socket.create_connection((there, 7000), timeout=PATIENCE_S) as s:
        same(s.recv(100), b"from the other side\n")


@case("a program in Python runs in a pod")
def _(rig):
    machine(rig, "a", gpus=4).import_image(images.python(rig.folder))
    make_pod(rig, "python", "a", "python3", "-c", "import json, ssl, socket; print(json.dumps(6 * 7))", image=images.PYTHON)
    wait_phase(rig, "python", "Succeeded")
    same(rig.get(f"{PODS}/python/log"), "42\n")


@case("the API server is killed and comes back with all it knew")
def _(rig):
    before = {one["metadata"]["name"] for one in rig.get("/api/v1/nodes")["items"]}
    rig.stop("apiserver")
    try:
        rig.get("/readyz")
        raise AssertionError("a dead server answered")
    except OSError:
        pass
    rig.start("apiserver")
    same({one["metadata"]["name"] for one in rig.get("/api/v1/nodes")["items"]}, before)


@case("etcd is paused and goes on")
def _(rig):
    rig.pause("etcd")
    try:
        rig.ask("GET", "/api/v1/namespaces/default", timeout=1)
        raise AssertionError("an answer came without etcd")
    except OSError:
        pass
    finally:
        rig.resume("etcd")
    rig.wait(lambda: rig.get("/api/v1/namespaces/default"), "it answers again")


@case("a real node loses its power and comes back")
def _(rig):
    machine(rig, "b")
    rig.stop("b")
    rig.start("b")
    make_pod(rig, "again", "b", "true")
    wait_phase(rig, "again", "Succeeded")


@case("a real node is off the network until it is plugged in again")
def _(rig):
    one = machine(rig, "b")
    one.unplug()
    assert not reached(one.address, 10250)
    one.plug()
    rig.wait(lambda: reached(one.address, 10250), "it is reached again")


def reached(address, port):
    try:
        with socket.create_connection((address, port), timeout=5):
            return True
    except OSError:
        return False


def left_behind(number):
    """What of a rig is on this machine, as sentences."""
    links = [name for name in os.listdir("/sys/class/net") if name.split("-")[0] == f"nsrig{number}"]
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = [line for line in f if f"{BASE}/{number}/" in line]
    found = {"processes": parts.pids_of(f"{BASE}/{number}"), "links": links, "mounts": mounts,
             "cgroups": node.cgroups(number), "folder": [one for one in [f"{BASE}/{number}"] if os.path.exists(one)]}
    return {what: which for what, which in found.items() if which}


def check_gone(number):
    """Unless somebody else's rig has that number by now, which has looked itself."""
    lock = Slot.taken(number)
    if lock:
        with lock:
            same(left_behind(number), {})


ABANDONED = """
import sys, time
sys.path.insert(0, {kube!r})
from rig import Rig
with Rig(real=True) as rig:
    one = rig.real_node("lost")
    rig.post("/api/v1/namespaces/default/pods", {{"metadata": {{"name": "lost"}}, "spec": {{"nodeName": "lost",
        "containers": [{{"name": "main", "image": "rig.test/busybox:1", "command": ["sleep", "3600"]}}]}}}})
    rig.wait(lambda: rig.get("/api/v1/namespaces/default/pods/lost")["status"].get("phase") == "Running", "it runs")
    print(rig.slot.number, one.pid, flush=True)
    time.sleep(600)
"""


@case("a test that is killed takes its processes along, and the next rig removes the rest")
def _(rig):
    with subprocess.Popen([sys.executable, "-c", ABANDONED.format(kube=KUBE)], stdout=subprocess.PIPE,
                          text=True) as test:
        number, pid = map(int, test.stdout.readline().split())
        assert number != rig.slot.number and left_behind(number)["cgroups"]
        test.send_signal(signal.SIGKILL)
    rig.wait(lambda: not os.path.exists(f"/proc/{pid}") and not parts.pids_of(f"{BASE}/{number}"), "its processes end")
    with Rig(controllers=False):
        pass
    check_gone(number)


class Watched(Rig):
    """Looks after the end whether everything is gone."""

    def close(self):
        number = self.slot.number if self.slot else None
        super().close()
        if number is not None:
            check_gone(number)


if __name__ == "__main__":
    sys.exit(case.on(lambda: Watched(kwok=True, real=True), lambda: why_not(real=True)))
