"""cluster - a real nightshiftd with its keeper, in a folder of its own, driven from the outside.

Shares no code with the daemon: HTTP by the standard library, the truth about processes from /proc.
Waiting is for a condition and has a bound, never for a time to pass.
"""
import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import claims
from patience import PATIENCE_S, wait_for

BUILD = os.environ["NIGHTSHIFT_BUILD"]
LIBEXEC = os.environ.get("NIGHTSHIFT_LIBEXEC", BUILD)
JOB_UID = 700000000  # root has no account that jobs may use, so it gets the first of ours
IDLE_NETWORKS = 32  # about as many as ran at once
ENDED = ("succeeded", "failed", "cancelled")

# The keeper is started by the daemon: this stands in its place, hands it a fail point once, and is
# the keeper from then on.
KEEPER_STARTER = """#!/bin/sh
unset NIGHTSHIFT_FAILPOINT
if [ -f "{folder}/failpoint" ]; then
    NIGHTSHIFT_FAILPOINT=$(cat "{folder}/failpoint")
    export NIGHTSHIFT_FAILPOINT
    rm "{folder}/failpoint"
fi
exec "{folder}/keeper" "$@"
"""


class Away(Exception):
    """No answer: it may have been done or not."""


def why_not():
    """Why a cluster cannot run here, or None."""
    if os.geteuid() != 0:
        return "containers need root here"
    for path in (f"{BUILD}/nightshiftd", f"{LIBEXEC}/nightshift-keeper", f"{LIBEXEC}/nightshift-init"):
        if not os.access(path, os.X_OK):
            return f"{path} is not built"
    if not shutil.which("crun"):
        return "crun is not installed"
    return None


def plain_init():
    """The supervisor for roots that have no libraries, as those of images: with sanitizers it wants some."""
    plain = f"{LIBEXEC}/nightshift-init-plain"
    return plain if os.path.exists(plain) else f"{LIBEXEC}/nightshift-init"


# ---- the machine, as /proc tells it ----

def read_file(path):
    """Empty when it is not there, or goes while it is read."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def proc_file(pid, name):
    return read_file(f"/proc/{pid}/{name}")


def folder_names(path):
    """None are in one that has just gone."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def inode(path):
    """None when it has just gone."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def kill(pid):
    """It may have ended by itself just now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def process_birth(pid):
    """Tells two processes with one pid apart; None when it is gone or a zombie."""
    words = proc_file(pid, "stat").rpartition(b")")[2].split()
    return None if not words or words[0] in (b"Z", b"X") else int(words[19])


def process_parent(pid):
    words = proc_file(pid, "stat").rpartition(b")")[2].split()
    return int(words[1]) if words else 0


def process_environ(pid):
    pairs = (word.partition(b"=") for word in proc_file(pid, "environ").split(b"\0") if b"=" in word)
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs}


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def pids_with(variable, value):
    """Processes that were started with VARIABLE=value in their environment."""
    want = f"{variable}={value}".encode()
    return [pid for pid in all_pids() if want in proc_file(pid, "environ").split(b"\0")]


def pids_naming(folder):
    """Processes with the folder in their command line."""
    return [pid for pid in all_pids()
            if folder.encode() in proc_file(pid, "cmdline") and pid != os.getpid()]


@contextlib.contextmanager
def acting_as(uid):
    """What is connected or opened meanwhile is that user's, as on any machine."""
    groups = os.getgroups()
    os.setgroups([])  # root may be in its own group, which is the keeper's
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout, uid=0):
        super().__init__("localhost", timeout=timeout)
        self.path = path
        self.uid = uid

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with acting_as(self.uid) if self.uid else contextlib.nullcontext():
            self.sock.connect(self.path)


class Cluster:
    def __init__(self, options=(), state_bytes=0, listen="none", size=("--simulate-gpus", "4", "--cpus", "64"),
                 weak=None, name="test"):
        """Names come from our pid and from ours when there is one more, addresses are claimed: none meet.

        weak: the test programs instead of the product's, with these protections taken away."""
        kind = "" if weak is None else "-weak"
        self.program = f"{BUILD}/nightshiftd{kind}"
        self.folder = tempfile.mkdtemp(prefix="ns.", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.state, self.run = f"{self.folder}/s", f"{self.folder}/r"
        self.libexec, self.work = f"{self.folder}/x", f"{self.folder}/w"
        self.log_path = f"{self.folder}/log"
        self.cgroup = f"ns-{name}-{os.getpid()}"
        self.range = claims.second_octet()
        self.bridge = f"nt{self.range}{name[0]}"  # three digits: none begins with another
        self.options = [*size, "--listen", listen, "--cgroup", self.cgroup,
                        "--net-prefix", self.bridge, "--net-table", self.bridge,
                        "--net-range", f"10.{self.range}.0.0/16", "--volumes-allow", self.work, *options]
        self.env = {}  # of the daemon and the keeper, besides ours
        if weak is not None:
            self.env["NIGHTSHIFT_WEAK"] = f"{self.folder}/weak"
            self.weaken(weak)
        self.daemon = None
        self.has_tmpfs = state_bytes > 0
        with open(f"{self.folder}/settings.yaml", "w", encoding="utf-8"):
            pass
        for folder in (self.state, self.libexec, self.work):
            os.mkdir(folder)
        if self.has_tmpfs:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={state_bytes},mode=711", "none", self.state],
                           check=True)
        os.makedirs(f"{self.state}/homes/root")
        for folder in (self.state, f"{self.state}/homes"):
            os.chmod(folder, 0o711)
        for folder in (f"{self.state}/homes/root", self.work):
            os.chown(folder, JOB_UID, JOB_UID)
        shutil.copy(f"{LIBEXEC}/nightshift-init", self.libexec)
        shutil.copy(f"{LIBEXEC}/nightshift-keeper{kind}", f"{self.libexec}/keeper")
        with open(f"{self.libexec}/nightshift-keeper", "w", encoding="utf-8") as f:
            f.write(KEEPER_STARTER.format(folder=self.libexec))
        os.chmod(f"{self.libexec}/nightshift-keeper", 0o755)

    def bring_plain_init(self):
        """Before it starts."""
        shutil.copy(plain_init(), f"{self.libexec}/nightshift-init")

    # ---- processes ----

    def argv(self):
        # Settings of its own, not those of a Nightshift that is installed here.
        config = [] if "--config" in self.options else ["--config", f"{self.folder}/settings.yaml"]
        return [self.program, *config, "--state", self.state, "--run", self.run, "--libexec", self.libexec,
                *self.options]

    def start(self, failpoint=None, before=None):
        """`before` is called in the new process before it becomes the daemon."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTSHIFT_")}
        env |= self.env
        if failpoint:
            env["NIGHTSHIFT_FAILPOINT"] = failpoint
        with open(self.log_path, "ab") as log:
            self.daemon = subprocess.Popen(self.argv(), env=env, stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=log, start_new_session=True, preexec_fn=before)

    def weaken(self, names):
        """From now on these protections are gone, and no others."""
        with open(f"{self.folder}/weak.new", "w", encoding="utf-8") as f:
            f.write(",".join(names))
        os.rename(f"{self.folder}/weak.new", f"{self.folder}/weak")

    def keeper_pid(self):
        """None while there is none.  Neither the shell that is about to become it counts, nor a child of
        it that has not become crun yet and looks just like it."""
        first = f"{self.libexec}/keeper\0".encode()
        found = [pid for pid in all_pids() if proc_file(pid, "cmdline").startswith(first) and process_birth(pid)]
        return next((pid for pid in found if process_parent(pid) not in found), None)

    def kill_keeper(self):
        pid = wait_for("a keeper to kill", self.keeper_pid)
        kill(pid)
        wait_for("the keeper's death", lambda: process_birth(pid) is None)

    def end_keeper(self):
        """Without a daemon nobody starts another: ends the one there is, if any, also one that is being
        started."""
        def none_is_left():
            pid = self.keeper_pid()
            if pid:
                kill(pid)
            return not any(process_birth(p) for name in ("keeper", "nightshift-keeper")
                           for p in pids_naming(f"{self.libexec}/{name}"))
        wait_for("the keeper's end", none_is_left)

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def keeper_failpoint(self, text):
        """For the next keeper that is started."""
        with open(f"{self.libexec}/failpoint.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f"{self.libexec}/failpoint.new", f"{self.libexec}/failpoint")

    def forget_failpoint(self):
        try:
            os.unlink(f"{self.libexec}/failpoint")
        except FileNotFoundError:
            pass

    def is_ready(self):
        try:
            return self.call("GET", "/readyz", timeout=PATIENCE_S)[0] == 200
        except Away:
            return False

    def wait_ready(self):
        def ready_or_dead():
            if self.daemon.poll() is not None:
                raise AssertionError(f"nightshiftd ended with {self.daemon.returncode}:\n{self.log_tail()}")
            return self.is_ready()
        wait_for("the cluster to be ready", ready_or_dead)

    def port(self):
        """Of the daemon that runs now, when it was told to choose one."""
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return int([line for line in f if " listening " in line][-1].split("port=")[1].split()[0])

    def log_tail(self, lines=25):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-lines:])

    # ---- the API ----

    def call(self, method, path, body=None, key=None, timeout=PATIENCE_S, uid=0, kind="application/json", token=None):
        """(status, what the answer says); Away when there was no whole answer."""
        conn = UnixConnection(f"{self.run}/api.sock", timeout, uid)
        headers = {"Content-Type": kind} if method in ("POST", "PUT") else {}
        if key:
            headers["Idempotency-Key"] = key
        if token:
            headers["Authorization"] = f"Bearer {token}"
        text = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        try:
            conn.request(method, path, text if text is not None or method in ("GET", "DELETE") else "{}", headers)
            answer = conn.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as why:
            raise Away(str(why)) from why
        finally:
            conn.close()
        is_json = answer.headers.get("Content-Type", "").split(";")[0].endswith(("/json", "+json"))
        return answer.status, json.loads(data) if is_json else data.decode(errors="replace")

    def ask(self, method, path, body=None, **more):
        """The answer of a call that must succeed."""
        status, answer = self.call(method, path, body, **more)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def submit(self, command, key=None, uid=0, **spec):
        return self.ask("POST", "/v1/jobs", {"command": command, **spec}, key=key, uid=uid)["id"]

    def job(self, number):
        return self.ask("GET", f"/v1/jobs/{number}")

    def wait_state(self, number, *states):
        """The job, once it is in one of the states; ends early when it cannot come there any more."""
        def look():
            job = self.job(number)
            if job["state"] not in states and job["state"] in ENDED:
                raise AssertionError(f"job {number} is {job['state']}, not {states}: {job['message']}")
            return job if job["state"] in states else None
        return wait_for(f"job {number} to be {' or '.join(states)}", look)

    def signal(self, number, name):
        """To a job that runs: it may write before its start is on the disk, and takes no signal until then."""
        self.wait_state(number, "running")
        self.ask("POST", f"/v1/jobs/{number}/signal", {"signal": name})

    def wait_end(self, number):
        return self.wait_state(number, *ENDED)

    def text_of(self, number, query=""):
        return self.ask("GET", f"/v1/jobs/{number}/log{query}")

    def job_pids(self, number):
        """Its processes, as the machine knows them: another cluster may have a job of the same number."""
        return [pid for pid in pids_with("NIGHTSHIFT_JOB_ID", str(number))
                if f"/{self.cgroup}/".encode() in proc_file(pid, "cgroup")]

    # ---- what is left ----

    def cgroups(self):
        """Those of tasks: our own folder may stay, empty."""
        return sorted(path for root in glob.glob(f"/sys/fs/cgroup/*/{self.cgroup}") +
                      glob.glob(f"/sys/fs/cgroup/{self.cgroup}") for path in glob.glob(f"{root}/*/"))

    def mounts(self):
        """Those below our folder, but for the state's own, and networks and scratches that wait for the next job."""
        with open("/proc/self/mounts", encoding="utf-8") as f:
            places = [line.split()[1] for line in f]
        idle = [p for p in places if p.startswith(f"{self.state}/scratch/") and not folder_names(p)]
        return [p for p in places if p.startswith(f"{self.folder}/") and p != self.state and p not in idle and
                not p.startswith(f"{self.run}/netns/")]

    def networks(self):
        return glob.glob(f"{self.run}/netns/*")

    def links(self):
        """The machine's ends of the networks' cables."""
        return glob.glob(f"/sys/class/net/{self.bridge}*/brif/*")

    def surplus(self):
        """Networks wait for the next jobs, but not without bound, and each has one cable."""
        names, links = self.networks(), self.links()
        return [*names, *links] if len(names) > IDLE_NETWORKS or len(names) != len(links) else []

    def task_files(self):
        """Of tasks that are over everything but the log is to be forgotten."""
        return sorted(glob.glob(f"{self.run}/tasks/*") + glob.glob(f"{self.run}/crun/*") +
                      glob.glob(f"{self.state}/tasks/*/task.json") + self.scratches_in_use())

    def scratches_in_use(self):
        """Places with a task's folders in them; empty ones wait for the next."""
        return glob.glob(f"{self.state}/scratch/*/tmp")

    def network_users(self):
        """Processes in one of our network namespaces."""
        ours = {inode(path) for path in self.networks()} - {None}
        return [pid for pid in all_pids() if inode(f"/proc/{pid}/ns/net") in ours]

    def close(self, keep=False):
        """Ends everything that is ours, by pid, and removes what it made."""
        if self.daemon and self.daemon.poll() is None:
            self.kill_daemon()
        self.forget_failpoint()
        self.end_keeper()
        self._end_tasks()
        with open("/proc/self/mounts", encoding="utf-8") as f:
            places = [line.split()[1] for line in f]
        for place in reversed([p for p in places if p.startswith(f"{self.folder}/")]):
            if not (keep and place == self.state):
                subprocess.run(["umount", "-l", place], check=False)
        for name in os.listdir("/sys/class/net"):
            if name.startswith(self.bridge):
                self._remove_bridge(name)
        if shutil.which("nft"):
            subprocess.run(["nft", "delete", "table", "inet", self.bridge], check=False, stderr=subprocess.DEVNULL)
        for path in sorted(glob.glob(f"/sys/fs/cgroup/*/{self.cgroup}/**/", recursive=True), reverse=True):
            try:
                os.rmdir(path)
            except OSError:
                pass
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        claims.release(f"net-{self.range}")

    def _end_tasks(self):
        def living():
            found = set(pids_naming(f"{self.folder}/"))
            for path in glob.glob(f"/sys/fs/cgroup/*/{self.cgroup}/**/cgroup.procs", recursive=True):
                found |= {int(pid) for pid in read_file(path).split()}
            return [pid for pid in found if process_birth(pid)]

        def none_lives():
            for path in glob.glob(f"/sys/fs/cgroup/freezer/{self.cgroup}/*/freezer.state"):
                with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as f:  # it may be gone by now
                    f.write("THAWED")
            for pid in living():
                kill(pid)
            return not living()
        wait_for("the end of all tasks", none_lives)

    @staticmethod
    def _remove_bridge(name):
        members = glob.glob(f"/sys/class/net/{name}/brif/*")
        for link in [os.path.basename(path) for path in members] + [name]:
            subprocess.run(["ip", "link", "delete", link], check=False, stderr=subprocess.DEVNULL)
