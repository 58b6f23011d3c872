"""Drives a real nightshift-keeper over its socket, for the system tests.

Everything lies in one temporary folder and one control group of its own, so that several can run at
once and nothing of the machine's own Nightshift is touched.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from patience import PATIENCE_S

BUILD = os.environ.get("NIGHTSHIFT_BUILD", "build")
USER = {"name": "ana", "uid": 4711, "gid": 4711, "groups": [4711, 44]}


class Timeout(Exception):
    pass


class Keeper:
    def __init__(self, *options, env=None, user=None):
        self.dir = tempfile.mkdtemp(prefix="nsk.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.state, self.run = self.dir + "/s", self.dir + "/r"
        self.home = self.dir + "/home"
        self.group = os.path.basename(self.dir)
        os.mkdir(self.home)
        self.user = dict(user or USER, home=self.home)
        for path in (self.home, self.dir):
            if os.geteuid() == 0:
                os.chown(path, self.user["uid"] if user or path == self.home else 0, -1)
        self.as_user = user
        self.programs = self.copy_programs() if user else os.path.abspath(BUILD)
        self.options = options
        self.process = self.socket = self.pending = None
        self.start(env=env)

    def copy_programs(self):
        """Another user may not be able to reach the build folder, as one below /root."""
        folder = self.dir + "/bin"
        os.mkdir(folder)
        for name in ("nightshift-keeper", "nightshift-init"):
            shutil.copy(f"{BUILD}/{name}", folder)
        return folder

    def start(self, env=None, connect=True):
        command = [
            self.programs + "/nightshift-keeper", "--state", self.state, "--run", self.run,
            "--cgroup", self.group, "--init", self.programs + "/nightshift-init",
            *self.options]
        if not any(o.startswith("--net-") for o in self.options):
            command.append("--no-network")
        if self.as_user:
            command = ["setpriv", f"--reuid={self.as_user['uid']}", f"--regid={self.as_user['gid']}",
                       "--clear-groups"] + command
        self.log = open(self.dir + "/keeper.log", "ab")
        self.process = subprocess.Popen(command, stderr=self.log, env={**os.environ, **(env or {})})
        if connect:
            self.connect()

    def connect(self):
        """A child of a killed keeper may hold the old socket for a moment: then once more."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(self.run + "/keeper.sock")
                self.lines = self.socket.makefile("r")
                self.hello = self.event("hello")
                self.node = self.event("node")
                return
            except (OSError, EOFError):
                self.socket.close()
                if self.process.poll() is not None:
                    raise EOFError("the keeper ended: " + self.messages()) from None
                if time.monotonic() > deadline:
                    raise Timeout("the keeper does not listen") from None
                time.sleep(0.01)

    def messages(self):
        with open(self.dir + "/keeper.log") as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()

    def wait_dead(self):
        status = self.process.wait(timeout=PATIENCE_S)
        self.socket.close()
        return status

    def send(self, verb, task=None, **fields):
        line = {"do": verb, **({"task": task} if task else {}), **fields}
        data = (json.dumps(line) + "\n").encode()
        if self.pending is None:
            self.socket.sendall(data)
        else:
            self.pending += data

    @contextlib.contextmanager
    def at_once(self):
        """What is sent meanwhile arrives together, however long we are kept from running in between."""
        self.pending = b""
        try:
            yield
            self.socket.sendall(self.pending)
        finally:
            self.pending = None

    def event(self, *kinds, task=None, timeout=PATIENCE_S):
        """The next event of these kinds (and task); others are passed over."""
        self.socket.settimeout(timeout)
        while True:
            try:
                line = self.lines.readline()
            except TimeoutError:
                raise Timeout(f"no event {kinds} for {task}: {self.messages()}") from None
            if not line:
                raise EOFError(self.messages())
            event = json.loads(line)
            if event["ev"] == "hello":  # also when what can be done here has changed
                self.hello = event
            if (not kinds or event["ev"] in kinds) and task in (None, event.get("task")):
                return event

    def sync(self):
        """All that is told until ready, by task."""
        self.send("sync")
        told = {}
        while True:
            event = self.event()
            if event["ev"] == "ready":
                return told
            if "task" in event:
                told.setdefault(event["task"], []).append(event["ev"])
                told[event["task"], event["ev"]] = event

    def ask(self, task, script, **fields):
        """Starts sh -c SCRIPT."""
        self.send("start", task, **{
            "tenant": "vision", "user": self.user, "argv": ["sh", "-c", script], "env": [],
            "network": "none", "cpu_milli": 2000, "mem_mib": 256, "pids_max": 200,
            "scratch_mib": 16, "grace_ms": 5000, "volumes_allow": [self.dir], **fields})

    def ran(self, task, script, **fields):
        """Starts it and waits for its end; gives the event and its output."""
        self.ask(task, script, **fields)
        event = self.event("ended", "failed", task=task)
        return event, self.output(task)

    def output(self, task, streams=("stdout", "stderr")):
        records = []
        for i in range(4):
            try:
                with open(f"{self.state}/tasks/{task}/log.{i}", errors="replace") as f:
                    records += [line.rstrip("\n").split(" ", 3) for line in f]
            except FileNotFoundError:
                pass
        return "".join(r[3] + ("\n" if r[2] == "F" else "") for r in records
                       if len(r) == 4 and r[1] in streams)

    def until(self, truth, what):
        deadline = time.monotonic() + PATIENCE_S
        while not truth():
            if time.monotonic() > deadline:
                raise Timeout(what + ": " + self.messages())
            time.sleep(0.005)

    def until_output(self, task, text):
        self.until(lambda: text in self.output(task), f"'{text}' in the output of {task}")

    def left(self):
        """What lies around: run folders, control groups, records of crun, mounts, processes."""
        found = []
        for folder in ("tasks", "crun"):
            path = f"{self.run}/{folder}"
            found += [f"{folder}/{n}" for n in (os.listdir(path) if os.path.isdir(path) else [])]
        for top, folders, _ in os.walk("/sys/fs/cgroup"):
            if top.endswith("/" + self.group):
                found += [f"{top}/{f}" for f in folders]
                folders.clear()
        with open("/proc/mounts") as f:
            found += [line.split()[1] for line in f if self.dir in line.split()[1]]
        return found

    def pids(self, task):
        for base in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
            found = self.members(f"{base}/{self.group}/{task}")
            if found:
                return found
        return []

    def standing(self, task):
        """Its processes, once the kernel says that they are frozen; None before."""
        v1 = f"/sys/fs/cgroup/freezer/{self.group}/{task}"
        try:
            if os.path.isdir(v1):
                with open(v1 + "/freezer.state") as f:
                    return self.members(v1) if f.read().strip() == "FROZEN" else None
            group = f"/sys/fs/cgroup/{self.group}/{task}"
            with open(group + "/cgroup.events") as f:
                return self.members(group) if "frozen 1" in f.read() else None
        except OSError:
            return None

    def refused_forks(self, task):
        """How often the kernel told it that it has enough processes."""
        for base in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
            with contextlib.suppress(OSError), open(f"{base}/{self.group}/{task}/pids.events") as f:
                return int(f.read().split("max ")[1].split()[0])
        return 0

    def close(self):
        if not os.path.isdir(self.dir):
            return
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        if self.socket:
            self.socket.close()
        self.log.close()
        self.sweep()
        shutil.rmtree(self.dir)

    def sweep(self):
        """After a failed test: nothing of it stays behind."""
        groups = [top for top, _, _ in os.walk("/sys/fs/cgroup") if f"/{self.group}" in top]
        for top in groups:
            for pid in self.members(top):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with open("/proc/mounts") as f:
            mounts = [line.split()[1] for line in f if self.dir + "/" in line]
        for mount in reversed(mounts):
            subprocess.run(["umount", "-l", mount], check=False)
        for top in reversed(groups):
            self.until(lambda: not self.members(top), top + " is empty")
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(top)

    @staticmethod
    def members(group):
        """Processes of a control group; none when it is not there, or goes while it is read."""
        try:
            with open(group + "/cgroup.procs") as f:
                return [int(line) for line in f]
        except OSError:
            return []
