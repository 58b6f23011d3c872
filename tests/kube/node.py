"""node - a machine of the rig: the kubelet, containerd and runc in namespaces of their own.

The first process of the pid namespace is the machine's power: when it is killed, every process of
the machine is gone, and with them its mounts and its network.  It is killed when the test dies.
Only the bridge and the cgroups are outside; clear() removes those of a rig that is no more.

Rig S has the bridge nsrigS with 10.213.S.1, where the API server listens.  Its node I is
10.213.S.(10+I) and has the pods 10.(214+S).I.0/24, which every node and this machine have a route to.
"""
import calendar
import contextlib
import glob
import json
import os
import signal
import subprocess
import time

import images as images_of
from parts import PATIENCE_S, Failed, Part, wait

NEEDS = ["containerd", "ctr", "runc", "busybox", "iptables", "ip", "unshare", "nsenter", "gcc"]
CNI = "/usr/lib/cni"
CGROUPS = "/sys/fs/cgroup"
# What the kubelet insists on and sets; it gets files of its own, for the machine is not ours to change.
TUNABLES = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
            "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}

POWER_ON = """#!/bin/sh
# {name}: the mounts of this machine, then its first process.
set -eu
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/lock
mount -t overlay overlay -o lowerdir=/var,upperdir={folder}/var,workdir={folder}/work /var
echo {name} >/proc/sys/kernel/hostname
cd {folder}/sysctl
find . -type f | while read -r f; do
    [ ! -e "/proc/sys/$f" ] || mount --bind "$f" "/proc/sys/$f"
done
cd /
: >{folder}/up
exec {pause}
"""

CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise Failed(f"ip {' '.join(args)}: {done.stderr.strip()}")


def make_bridge(slot):
    """The address that the nodes will know this machine by."""
    clear(slot)  # somebody may have removed the folder of a killed test by hand
    address = f"10.213.{slot}.1"
    ip("link", "add", f"nsrig{slot}", "type", "bridge")
    ip("addr", "add", f"{address}/24", "dev", f"nsrig{slot}")
    ip("link", "set", f"nsrig{slot}", "up")
    return address


def clear(slot):
    """Remove what is outside of the namespaces; no process of the rig lives any more."""
    for path in glob.glob(f"/sys/class/net/nsrig{slot}-*") + glob.glob(f"/sys/class/net/nsrig{slot}"):
        with contextlib.suppress(Failed):  # a link goes by itself when its other end does
            ip("link", "del", os.path.basename(path))
    for path in cgroups(slot):
        remove_cgroup(path)


def cgroups(slot, name="*"):
    """The folders of a node's cgroups, or of all nodes of a rig."""
    return glob.glob(f"{CGROUPS}/nsrig{slot}-{name}") + glob.glob(f"{CGROUPS}/*/nsrig{slot}-{name}")


def remove_cgroup(top):
    def gone():
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                kill_in(folder)
        return not os.path.exists(top)
    wait(gone, f"{top} is empty and removed")


def kill_in(cgroup):
    with contextlib.suppress(OSError), open(f"{cgroup}/cgroup.procs", encoding="ascii") as f:
        for pid in f.read().split():
            os.kill(int(pid), signal.SIGKILL)


def make_cgroup(name):
    """In every hierarchy there is; with all processors and memory where that has to be said."""
    tops = [CGROUPS] if os.path.exists(f"{CGROUPS}/cgroup.controllers") else glob.glob(f"{CGROUPS}/*/")
    for top in tops:
        os.makedirs(f"{top}/{name}", exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            mine, whole = f"{top}/{name}/{setting}", f"{top}/{setting}"
            if os.path.exists(mine) and os.path.exists(whole):
                with open(whole, encoding="ascii") as f, open(mine, "w", encoding="ascii") as g:
                    g.write(f.read())


def seconds_of(text):
    """The time that Kubernetes writes as 2030-01-02T03:04:05Z."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


class Node:
    def __init__(self, rig, name, number, gpus=0, labels=None, images=()):
        self.rig, self.name, self.number = rig, name, number
        self.gpus, self.labels = gpus, {"type": "real", **(labels or {})}
        self.slot = rig.slot.number
        self.folder = f"{rig.folder}/{name}"
        self.address = f"10.213.{self.slot}.{10 + number}"
        self.pods = f"10.{214 + self.slot}.{number}.0/24"
        self.cgroup = f"nsrig{self.slot}-{name}"
        self.images = images
        self.power = self.pid = None
        self._prepare()
        self.parts = {
            "containerd": self._part("containerd", ["containerd", "-c", f"{self.folder}/containerd.toml"],
                                     lambda: self.run("ctr", "version", check=False).returncode == 0),
            "kubelet": self._part("kubelet", self._kubelet(), self._heard),
        }

    # ---- files ----

    def _prepare(self):
        for below in ("var", "work", "cni", "sysctl", "containerd", "kubelet"):
            os.makedirs(f"{self.folder}/{below}")
        for path, value in TUNABLES.items():
            os.makedirs(os.path.dirname(f"{self.folder}/sysctl/{path}"), exist_ok=True)
            self._write(f"sysctl/{path}", value + "\n")
        self._write("resolv.conf", "")
        self._write("power-on", POWER_ON.format(name=self.name, folder=self.folder,
                                                pause=images_of.pause_program(self.rig.folder)))
        self._write("containerd.toml", CONTAINERD.format(folder=self.folder, sandbox=images_of.PAUSE, cni=CNI))
        self._write("cni/10-rig.conflist", json.dumps({
            "cniVersion": "0.4.0", "name": "rig", "plugins": [{
                "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": self.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}))

    def _write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def _kubelet(self):
        pki = self.rig.pki
        certificate, key = pki.certificate(f"{self.name}-serving", f"system:node:{self.name}", ["system:nodes"],
                                           addresses=[self.address], names=[self.name])
        kubeconfig = self.rig.kubeconfig_for(f"system:node:{self.name}", ["system:nodes"])
        none_left = {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%",
                     "nodefs.inodesFree": "1%"}
        self._write("kubelet.json", json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": self.address, "tlsCertFile": certificate, "tlsPrivateKeyFile": key,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": pki.ca}},
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup}", "failSwapOn": False, "failCgroupV1": False,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "resolvConf": f"{self.folder}/resolv.conf", "volumePluginDir": f"{self.folder}/kubelet/plugins-exec",
            "evictionHard": none_left, "imageGCHighThresholdPercent": 100, "nodeStatusUpdateFrequency": "5s",
            "kubeAPIQPS": 200, "kubeAPIBurst": 400}))
        return [f"{self.rig.programs}/kubelet", f"--config={self.folder}/kubelet.json", f"--kubeconfig={kubeconfig}",
                f"--root-dir={self.folder}/kubelet", f"--cert-dir={self.folder}/kubelet/pki",
                f"--hostname-override={self.name}", f"--node-ip={self.address}"]

    # ---- power ----

    def start(self):
        """Returns once it is Ready; a machine that was stopped comes back as after a power cut."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{self.folder}/up")
        make_cgroup(self.cgroup)
        self.power = Part(f"{self.name}/power", ["unshare", "--mount-proc", "--mount", "--pid", "--net", "--uts",
                                                 "--kill-child", "sh", f"{self.folder}/power-on"],
                          lambda: os.path.exists(f"{self.folder}/up"), self.rig.folder)
        self.power.start()
        self.power.wait_ready()
        with open(f"/proc/{self.power.process.pid}/task/{self.power.process.pid}/children", encoding="ascii") as f:
            self.pid = int(f.read().split()[0])
        self._connect()
        first = not os.listdir(f"{self.folder}/containerd")
        self.parts["containerd"].start()
        self.parts["containerd"].wait_ready()
        if first:
            for path in [*self.rig.images(), *self.images]:
                self.import_image(path)
        self.parts["kubelet"].start()
        self.parts["kubelet"].wait_ready()
        if first:
            self.rig.patch(f"/api/v1/nodes/{self.name}", {"metadata": {"labels": self.labels}})

    def wait_ready(self):
        for part in self.parts.values():
            part.wait_ready()

    def _heard(self):
        """Whether the kubelet that runs now has reported the node Ready, not the one before it."""
        conditions = self.rig.get(f"/api/v1/nodes/{self.name}")["status"].get("conditions", [])
        ready = next((c for c in conditions if c["type"] == "Ready"), {"status": "Unknown"})
        return ready["status"] == "True" and seconds_of(ready["lastHeartbeatTime"]) > int(self.parts["kubelet"].started)

    def report_gpus(self):
        """As a device plugin would; a kubelet that starts without one forgets them."""
        if self.gpus:
            self.rig.set_gpus(self.name, self.gpus)

    def _connect(self):
        link = f"nsrig{self.slot}-{self.number}"
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
        ip("link", "set", link, "master", f"nsrig{self.slot}", "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        ip("route", "replace", self.pods, "via", self.address)
        for other in self.rig.nodes.values():
            if other is not self and other.pid:
                self.run("ip", "route", "replace", other.pods, "via", other.address)
                other.run("ip", "route", "replace", self.pods, "via", self.address)

    def stop(self, _=None):
        """Pulls the plug."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)  # its end is that of every process of the machine
        if self.power:
            self.power.stop(0)
        for part in self.parts.values():
            part.stop()
        with contextlib.suppress(Failed):  # it goes by itself, but later
            ip("link", "del", f"nsrig{self.slot}-{self.number}")
        for path in cgroups(self.slot, self.name):
            remove_cgroup(path)
        self.power = self.pid = None

    def send(self, number):
        """To the kubelet and containerd; its pods go on."""
        for part in self.parts.values():
            part.send(number)

    def pause(self):
        for part in self.parts.values():
            part.pause()

    def unplug(self):
        """Takes the machine off the network; its pods go on."""
        ip("link", "set", f"nsrig{self.slot}-{self.number}", "down")

    def plug(self):
        ip("link", "set", f"nsrig{self.slot}-{self.number}", "up")

    # ---- inside ----

    def _part(self, name, argv, ready):
        return Part(f"{self.name}/{name}", lambda: self.enter() + argv, ready, self.rig.folder)

    def run(self, *argv, check=True, timeout=PATIENCE_S):
        """Runs a command on the machine; returns what subprocess.run does."""
        done = subprocess.run(self.enter() + list(argv), capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode:
            raise Failed(f"on {self.name}: {' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
        return done

    def enter(self):
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--uts", "--"]

    def import_image(self, path):
        self.run("ctr", "-n", "k8s.io", "images", "import", path)
