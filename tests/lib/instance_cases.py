"""instance_cases - several of us on one machine, with the names and addresses that each has by default.

In a network namespace of its own (t0315-instances.sh): what is listed here is ours.
"""
import glob
import os
import select
import signal
import socket
import subprocess
import sys

import cluster as cl
from cases import Cases, Skip
from claims import port
from cluster import wait_for
from registry import Registry, digest_of, layer

SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
SMALL = {"cpus": 0.2, "mem": "64Mi"}
SERVER = """
import socket
s = socket.socket()
s.bind(("", 8000))
s.listen()
print("at", socket.gethostbyname(socket.gethostname()), flush=True)
while True:
    s.accept()[0].sendall(b"hello")
"""
CLIENT = """
import socket, sys
s = socket.socket()
s.settimeout(60)
try:
    s.connect((sys.argv[1], 8000))
    print("got", s.recv(9).decode())
except OSError as why:
    print("no", why.strerror)
"""
case = Cases()


class Default(cl.Cluster):
    """As somebody starts it who says nothing of names and addresses."""

    def __init__(self, *options):
        super().__init__([*options])
        for name in ("--cgroup", "--net-prefix", "--net-table", "--net-range"):
            at = self.options.index(name)
            del self.options[at:at + 2]

    def up(self):
        self.start()
        self.wait_ready()
        with open(f"{self.state}/instance", encoding="utf-8") as f:
            self.id = f.read().split()[0]
        self.cgroup, self.bridge, self.table = f"nightshift-{self.id}", f"nsi{self.id}", f"nightshift_{self.id}"

    def close(self, keep=False):
        super().close(keep)
        for name in tables():
            if getattr(self, "table", None) == name:
                subprocess.run(["nft", "delete", "table", "inet", name], check=False, stderr=subprocess.DEVNULL)

    def serve(self):
        """A job that listens; its number and its address."""
        number = self.submit(["python3", "-c", SERVER], resources=SMALL, workdir="/")
        wait_for("its address", lambda: self.text_of(number).startswith("at "))
        return number, self.text_of(number).split()[1]

    def reach(self, address):
        number = self.submit(["python3", "-c", CLIENT, address], resources=SMALL, workdir="/")
        assert self.wait_end(number)["state"] == "succeeded", self.log_tail()
        return self.text_of(number).strip()


def tables():
    done = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True)
    return sorted(line.split()[-1] for line in done.stdout.splitlines() if "nightshift" in line)


def bridges():
    return sorted(name for name in os.listdir("/sys/class/net") if name.startswith("ns"))


def as_root(address):
    with socket.create_connection((address, 8000), timeout=cl.PATIENCE_S) as s:
        return s.recv(9)


@case("two on one machine keep to their own: one is stopped, and the other's jobs and walls stay")
def _(_c):
    one, two = Default("--on-stop", "end"), Default()
    try:
        one.up()
        two.up()
        first, at_first = one.serve()
        second, at_second = two.serve()
        assert at_first.rsplit(".", 1)[0] != at_second.rsplit(".", 1)[0], (at_first, at_second)
        assert one.reach(at_first) == "got hello" and two.reach(at_second) == "got hello"
        assert one.reach(at_second) == "no No route to host" and two.reach(at_first) == "no No route to host"
        assert tables() == sorted([one.table, two.table]), tables()
        one.daemon.send_signal(signal.SIGTERM)
        one.daemon.wait()
        wait_for("its keeper to go", lambda: not one.keeper_pid())
        assert tables() == [two.table], tables()
        assert [name for name in bridges() if name.startswith(one.bridge)] == []
        assert one.cgroups() == [] and one.mounts() == [], (one.cgroups(), one.mounts())
        assert not glob.glob(f"/sys/fs/cgroup/*/{one.cgroup}"), "its group is still there"
        assert two.job(second)["state"] == "running" and as_root(at_second) == b"hello"
        assert two.reach(at_second) == "got hello"
        rules = subprocess.run(["nft", "list", "table", "inet", two.table], capture_output=True, text=True, check=True)
        assert "reject" in rules.stdout, rules.stdout
        one.up()  # and is back, as itself
        assert one.job(first)["state"] == "cancelled", one.job(first)
        assert one.reach(at_second) == "no No route to host"
    finally:
        one.close()
        two.close()


@case("one whose addresses another has taken meanwhile moves its tenant to others")
def _(_c):
    one, two = Default("--on-stop", "end"), Default()
    try:
        one.up()
        number, at_first = one.serve()
        one.ask("POST", f"/v1/jobs/{number}/cancel")
        one.wait_end(number)
        one.daemon.send_signal(signal.SIGTERM)
        one.daemon.wait()
        wait_for("its keeper to go", lambda: not one.keeper_pid())
        two.up()
        _, at_second = two.serve()
        assert at_first.rsplit(".", 1)[0] == at_second.rsplit(".", 1)[0], (at_first, at_second)
        one.up()
        _, again = one.serve()
        assert again.rsplit(".", 1)[0] != at_second.rsplit(".", 1)[0], (again, at_second)
        assert one.reach(again) == "got hello" and two.reach(again) == "no No route to host"
    finally:
        one.close()
        two.close()


OLD_NAMES = ["--cgroup", "nightshift", "--net-prefix", "nsb", "--net-table", "nightshift"]


@case("what a version without instances left is gone on with while it lives, and cleared when it has ended")
def _(_c):
    if glob.glob("/sys/fs/cgroup/*/nightshift/*/"):
        raise Skip("somebody here has tasks under the old names")
    one = Default(*OLD_NAMES)
    try:
        one.start()
        one.wait_ready()
        one.cgroup = "nightshift"
        number = one.submit(["python3", "-c", SERVER], resources=SMALL, workdir="/")
        wait_for("its address", lambda: one.text_of(number).startswith("at "))
        address = one.text_of(number).split()[1]
        one.kill_daemon()
        one.kill_keeper()
        os.unlink(f"{one.state}/instance")  # as that version left it
        del one.options[-len(OLD_NAMES):]
        one.start()
        one.wait_ready()
        assert one.job(number)["state"] == "running" and as_root(address) == b"hello"
        assert tables() == ["nightshift"] and "nsb0" in bridges(), (tables(), bridges())
        one.ask("POST", f"/v1/jobs/{number}/cancel")
        one.wait_end(number)
        wait_for("nothing of it to be left", lambda: not one.task_files())
        one.kill_daemon()
        one.kill_keeper()
        one.up()
        wait_for("old bridges to be gone", lambda: not [name for name in bridges() if name.startswith("nsb")])
        assert tables() == [one.table], tables()
        assert one.reach(address).startswith("no ")
    finally:
        one.close()
        subprocess.run(["nft", "delete", "table", "inet", "nightshift"], check=False, stderr=subprocess.DEVNULL)


@case("a registry on this machine is asked where it is listed, and only there")
def _(_c):
    if not cl.shutil.which("skopeo") or not cl.shutil.which("umoci"):
        raise Skip("skopeo or umoci is not installed")
    with socket.socket() as s:
        s.bind(("", 0))
        s.listen()
        at = s.getsockname()[1]
        one = Default("--registries", f"lab.example,127.0.0.1:{at}")
        try:
            one.up()
            _, job = one.serve()
            number = one.submit(["true"], image=f"docker://127.0.0.1:{at}/x:1", resources=SMALL)
            wait_for("the registry to be asked", lambda: select.select([s], [], [], 0)[0])
            s.accept()[0].close()
            one.ask("POST", f"/v1/jobs/{number}/cancel", {})
            other = one.submit(["true"], image=f"docker://{job}:8000/x:1", resources=SMALL)
            wait_for("a try", lambda: f"task.failed task={other}.1.0 " in one.log_tail(1000))
            assert "there is no way to the registry" in one.log_tail(1000), one.log_tail()
        finally:
            one.close()


@case("images of a registry share what they have in common, which is fetched once; each is unpacked from its own parts")
def _(c):
    if not cl.shutil.which("skopeo") or not cl.shutil.which("umoci"):
        raise Skip("skopeo or umoci is not installed")
    registry = Registry(c.folder)
    one = Default("--registries", registry.at)
    one.env["SSL_CERT_FILE"] = registry.ca
    one.bring_plain_init()
    base = layer({"base": "of both"})
    names = [registry.put("team/x", tag, [base, layer({tag: "of one"})]) for tag in ("one", "two")]
    try:
        one.up()
        for name in names:
            number = one.submit(["/none"], image=name, resources=SMALL)
            end = one.wait_end(number)
            assert end["exit_code"] == 127, end  # it has no program, so it was there
        assert registry.asked[digest_of(base)] == 1, registry.asked
        found = sorted(tuple(sorted(set(os.listdir(path)) & {"base", "one", "two"}))
                       for path in glob.glob(f"{one.state}/images/rootfs/{'[0-9a-f]' * 64}/root"))
        assert found == [("base", "one"), ("base", "two")], found
        wait_for("nothing to be left of the fetches", lambda: not os.listdir(f"{one.state}/images/layout"))
        missing = one.submit(["/none"], image=f"docker://{registry.at}/team/x:three", resources=SMALL)
        assert "there is no image" in one.wait_end(missing)["message"], one.job(missing)
    finally:
        one.close()
        registry.close()


# ---- make run ----

class Demo:
    """`make run`, as somebody has it in a terminal: Ctrl-C goes to the whole group."""

    def __init__(self, state):
        self.state, self.port = state, port()
        self.out = open(f"{state}/out", "ab")
        env = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTSHIFT_")}
        self.p = subprocess.Popen([f"{SOURCE}/tools/run", cl.BUILD], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out,
                                  env={**env, "STATE": state, "PORT": str(self.port), "LSAN_OPTIONS": "detect_leaks=0"},
                                  start_new_session=True)

    def said(self):
        with open(f"{self.state}/out", encoding="utf-8") as f:
            return f.read()

    def log(self):
        """Of the daemon and its keeper, the last."""
        with open(f"{self.state}/nightshiftd.log", encoding="utf-8") as f:
            return f.readlines()[-60:]

    def wait_said(self, words):
        def look():
            assert self.p.poll() is None or words in self.said(), self.said()
            return words in self.said()
        wait_for(f"'{words}'", look)

    def nightshift(self, *words):
        env = {**os.environ, "NIGHTSHIFT_SERVER": f"unix:{self.state}/run/api.sock"}
        return subprocess.run([f"{cl.BUILD}/nightshift", *words], env=env, capture_output=True, text=True, check=True,
                              timeout=cl.PATIENCE_S).stdout

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        self.out.close()


def left_of(state):
    """What is still on the machine of a demonstration: everything that can be asked for."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = [line.split()[1] for line in f if state in line]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=False).stdout
    return {"processes": [(pid, cl.proc_file(pid, "cmdline")) for pid in cl.pids_naming(state) if cl.process_birth(pid)],
            "mounts": mounts, "bridges": bridges(), "tables": tables(),
            "loops": [line for line in loops.splitlines() if state in line],
            "namespaces": glob.glob(f"{state}/run/netns/*")}


@case("Ctrl-C of `make run` leaves nothing on the machine; what waited goes on with the next start")
def _(c):
    state = f"{c.folder}/demo"
    os.mkdir(state)
    demo = Demo(state)
    try:
        demo.wait_said("Try it in another terminal")
        stubborn = demo.nightshift("run", "-d", "--name", "stubborn", "-w", "/", "--", "sh", "-c",
                                   "trap '' TERM; while :; do sleep 1; done")
        wait_for("it to run", lambda: "stubborn" in demo.nightshift("ps", "--state", "running"))
        waiting = set(demo.nightshift("ps", "--state", "queued", "-o", "name").split())
        assert waiting, demo.nightshift("ps", "-a")
        again = subprocess.run([f"{SOURCE}/tools/run", cl.BUILD], env={**os.environ, "STATE": state}, capture_output=True,
                               text=True, check=False, timeout=cl.PATIENCE_S)
        assert again.returncode == 1 and "It runs already" in again.stdout, again
        with open(f"{state}/instance", encoding="utf-8") as f:
            group = f.read().split()[0]
        os.killpg(demo.p.pid, signal.SIGINT)
        assert demo.p.wait(timeout=cl.PATIENCE_S) == 0, demo.said()
        assert "Nothing of it runs any more" in demo.said(), demo.said()
        left = left_of(state)
        assert not any(left.values()), (left, stubborn, demo.log())
        assert not glob.glob(f"/sys/fs/cgroup/*/nightshift-{group}") and not os.path.exists(f"/sys/fs/cgroup/nightshift-{group}")
        demo.close()
        os.unlink(f"{state}/out")
        demo = Demo(state)
        demo.wait_said("Try it in another terminal")
        living = set(demo.nightshift("ps", "-o", "name").split())
        assert waiting <= living | set(demo.nightshift("ps", "-a", "--state", "succeeded", "-o", "name").split()), (waiting, living)
        stop = subprocess.run([f"{SOURCE}/tools/run", "--stop", cl.BUILD], env={**os.environ, "STATE": state},
                              capture_output=True, text=True, check=False, timeout=cl.PATIENCE_S)
        assert stop.returncode == 0 and "stopped." in stop.stdout, stop
        wait_for("the script's end", lambda: demo.p.poll() is not None)
        left = left_of(state)
        assert not any(left.values()), (left, demo.log())
    finally:
        subprocess.run([f"{SOURCE}/tools/run", "--stop", cl.BUILD], env={**os.environ, "STATE": state}, check=False,
                       stdout=subprocess.DEVNULL, timeout=cl.PATIENCE_S)
        demo.close()


if __name__ == "__main__":
    sys.exit(case.each())
