"""hostile_cases - a tenant who tries everything, on a real daemon with its keeper.

Each case is an attack.  On the product it must be refused, and the attacker must be told so in the words of
the case.  Then the protections that the case names are taken away (src/sys/weak.h), and the attack must
succeed: a case that cannot fail proves nothing.  Where a case names several, they back each other up: without
all of them it succeeds, without only one it is still refused, and both are tried.

Cases without a protection to name are attacks on what the kernel and the design keep: they are tried on the
product only.
"""
import contextlib
import ctypes
import glob
import gzip
import hashlib
import io
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cluster import acting_as, wait_for  # noqa: E402
from hostile_table import NAMES, OF_THE_STORE  # noqa: E402
from task import ERROR, STDOUT, exec_frame  # noqa: E402

SOURCE = os.environ.get("NIGHTSHIFT_SOURCE", os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..")))
VICTIM, ATTACKER, NEIGHBOUR = 70001, 70002, 70003  # the neighbour is of the victim's tenant
MARK = f"ns-hostile-{os.getpid()}"
KEY = 0x4E530000 + os.getpid() % 0x10000
SMALL = {"cpus": 0.5, "mem": "64Mi", "scratch": "16Mi"}
OPEN_FOLDER = f"/opt/{MARK}"  # in a mount namespace of ours
SERVICE = f"/run/{MARK}"
UID_BASE = 710000000
OPTIONS = ["--pids-max", "64", "--log-limit", "1Mi", "--connections", "64", "--body-limit", "1Mi", "--uid-base", str(UID_BASE)]
# Decided when a program starts, or of the victim's own job.
EARLY = {"tenant_firewall", "host_firewall", "cloud_firewall", "task_firewall", "rules_watch", "account_firewall", "folder_modes", "file_modes", "socket_modes", "store_mode", "ipc", "network",
         "private_tmp"}
CASES = []


class Skip(Exception):
    pass


class Refused(Exception):
    """The attack failed; the text is what the attacker is told."""


def case(sentence, told, *protections):
    """The attack's function returns what it got, or raises Refused."""
    def add(fn):
        CASES.append((sentence, told, protections, fn))
        return fn
    return add


# ---- the victim, and the world around ----

VICTIM_CODE = """
import ctypes, os, signal, socket, threading
mark, key = os.environ["MARK"], int(os.environ["KEY"])
signal.signal(signal.SIGCONT, signal.SIG_IGN)
home = os.environ["HOME"]
os.makedirs(home + "/open", exist_ok=True)
for path in (home + "/secret", home + "/open/secret", "/tmp/" + mark):
    with open(path, "w") as f:
        f.write(os.environ["SECRET"])
os.chmod(home + "/secret", 0o600)
ctypes.CDLL(None).shmget(key, 4096, 0o1666)
def serve(s):
    while True:
        with s.accept()[0] as c:
            c.sendall(os.environ["SECRET"].encode())
for address in ("\\0" + mark, ("", 0)):
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    s.bind(address)
    s.listen()
    threading.Thread(target=serve, args=(s,), daemon=True).start()
print("secret", os.environ["SECRET"], "at", socket.gethostbyname(socket.gethostname()), s.getsockname()[1], flush=True)
beats = 0
while True:
    beats += 1
    with open(home + "/beat.new", "w") as f:
        f.write(str(beats))
    os.rename(home + "/beat.new", home + "/beat")
    threading.Event().wait(0.02)
"""

ATTACK_CODE = """
import ctypes, errno, glob, os, signal, socket, stat, subprocess, sys
def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.syscall(number, *arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
def connect(address):
    with socket.socket(socket.AF_UNIX if isinstance(address, (str, bytes)) else socket.AF_INET) as s:
        s.settimeout(60)
        s.connect(address)
        return s.recv(99).decode()
def words(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:  # it has just ended
        return b""
def attack():
%s
try:
    got = attack()
    print("got", got) if got else print("no", "nothing there")
except OSError as why:
    print("no", why.strerror or why)
"""
X86 = os.uname().machine == "x86_64"
CALLS = {"add_key": 248 if X86 else 217, "unshare": 272 if X86 else 97, "mount": 165 if X86 else 40,
         "ptrace": 101 if X86 else 117, "pidfd_open": 434, "pidfd_getfd": 438, "shmget": 29 if X86 else 194,
         "socket": 41 if X86 else 198}


class World:
    """A cluster with a victim at work."""

    def __init__(self, weak=None):
        self.c = cl.Cluster(OPTIONS, weak=weak)
        self.c.bring_plain_init()
        settings = f"{self.c.folder}/settings.yaml"
        with open(settings, "w", encoding="utf-8") as f:
            f.write(f"tenants:\n  blue: {{ members: [uid-{VICTIM}, uid-{NEIGHBOUR}] }}\n"
                    f"  red: {{ members: [uid-{ATTACKER}] }}\n")
        # All of it, to see that what is ours is not given away even so.
        self.c.options += ["--config", settings, "--volumes-allow", f"{self.c.folder},/proc"]
        self.given = f"{self.c.folder}/given"  # root's; everybody may look
        os.mkdir(self.given)
        self.make_gpus()
        self.images, self.umoci = 0, shutil.which("umoci")
        os.mkdir(f"{self.c.folder}/tools")
        self.set_unpacker(b"")
        self.c.env["PATH"] = f"{self.c.folder}/tools:{os.environ['PATH']}"
        self.secret = f"{MARK}-{os.urandom(8).hex()}"
        self.victim = None

    def set_unpacker(self, program):
        """What stands in for umoci from now on."""
        path = f"{self.c.folder}/tools/umoci"
        with open(path + ".new", "wb") as f:
            f.write(program)
        os.chmod(path + ".new", 0o755)
        os.rename(path + ".new", path)

    def make_gpus(self):
        """Two, with a driver and device files that are fakes."""
        dev, driver = f"{self.c.folder}/dev", f"{self.c.folder}/driver"
        os.mkdir(dev)
        with open(driver, "w", encoding="utf-8") as f:
            f.write("driver 550.54.15\n")
            for minor in range(2):
                f.write(f"gpu NVIDIA A100-SXM4-80GB\nuuid GPU-{minor}\nminor {minor}\nmemory 81920 0\n")
                with open(f"{dev}/nvidia{minor}", "w", encoding="utf-8") as node:
                    node.write(f"GPU {minor}")
                os.chmod(f"{dev}/nvidia{minor}", 0o666)
        self.c.options.remove("--simulate-gpus")
        self.c.options.remove("4")
        self.c.options += ["--dev", dev, "--nvml", os.path.abspath(f"{cl.BUILD}/tests/fakes/libnvidia-ml.so.1")]
        self.c.env |= {"NIGHTSHIFT_FAKE_NVML": driver, "NIGHTSHIFT_FAKE_DEV": dev}

    def start(self):
        self.c.start()
        self.c.wait_ready()
        self.victim = self.c.submit(["python3", "-c", VICTIM_CODE, self.secret], uid=VICTIM, name="victim",
                                    resources={"cpus": 1, "mem": "128Mi", "gpus": 1},
                                    env={"SECRET": self.secret, "MARK": MARK, "KEY": str(KEY)})
        self.c.wait_state(self.victim, "running")
        wait_for("the victim to be at work", lambda: os.path.exists(self.home(VICTIM) + "/beat") and
                 self.secret in self.c.text_of(self.victim))

    def close(self):
        self.c.close()
        subprocess.run(["ipcrm", "-M", hex(KEY)], check=False, stderr=subprocess.DEVNULL)
        for path in (f"/tmp/{MARK}", f"{OPEN_FOLDER}/written"):
            if os.path.exists(path):
                os.unlink(path)

    def home(self, uid):
        return f"{self.c.state}/homes/uid-{uid}"

    def task(self, number):
        return f"{self.c.state}/tasks/{number}.1.0"

    def beats(self):
        with open(self.home(VICTIM) + "/beat", encoding="utf-8") as f:
            return int(f.read())

    def address(self):
        """Of the victim's service."""
        words = self.c.text_of(self.victim).split()
        return words[3], int(words[4])

    def attacker_home(self):
        """It is made with the first job."""
        home = self.home(ATTACKER)
        if not os.path.exists(home):
            self.c.wait_end(self.c.submit(["true"], uid=ATTACKER, resources=SMALL))
        return home

    def job(self, command, **spec):
        return self.at_end(self.c.submit(command, uid=ATTACKER, resources={**SMALL, **spec.pop("resources", {})}, **spec))

    def at_end(self, number):
        job = self.c.wait_end(number)
        if job["end"] == "start_failed":
            raise Refused(job["message"])
        return job, self.c.text_of(number)

    def submit_attack(self, body, **spec):
        """A body of Python in a job of the attacker."""
        lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
        return self.c.submit(["python3", "-c", ATTACK_CODE % lines], uid=ATTACKER, resources=SMALL, **spec)

    def attack(self, body, **spec):
        """What the body returns was got."""
        return self.verdict(self.submit_attack(body, **spec))

    def verdict(self, number):
        job, text = self.at_end(number)
        if job["end"] != "exited" or not text.startswith(("got ", "no ")):
            raise AssertionError(f"the attack went wrong: {job['message']}: {text[-600:]}")
        verdict, _, said = text.strip().partition(" ")
        if verdict == "no":
            raise Refused(said)
        return said

    def call(self, method, path, body=None, uid=ATTACKER, token=None):
        status, answer = self.c.call(method, path, body, uid=uid, token=token)
        if status >= 400:
            raise Refused(answer["detail"])
        return answer


def read_as(uid, path):
    """What a user of the machine can read, without any container."""
    try:
        with acting_as(uid), open(path, "rb") as f:
            return f.read(1000).decode(errors="replace")
    except OSError as why:
        raise Refused(why.strerror) from why


def connect_as(uid, path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            with acting_as(uid):
                s.connect(path)
            return "connected"
        except OSError as why:
            raise Refused(why.strerror) from why


# ---- another's files ----

@case("a folder inside another's closed home is not given as a volume",
      "cannot give '.*open' to the job: Permission denied", "binds_as_user", "instance")
def _(w):
    return w.attack("return open('/mnt/x/secret').read()",
                    volumes=[{"from": w.home(VICTIM) + "/open", "to": "/mnt/x"}])


@case("nor through a link of one's own", "cannot give '.*' to the job: Permission denied", "binds_as_user", "instance")
def _(w):
    link = w.attacker_home() + "/harmless"
    if not os.path.islink(link):
        os.symlink(w.home(VICTIM) + "/open", link)
    return w.attack("return open('/mnt/x/secret').read()", volumes=[{"from": link, "to": "/mnt/x"}])


@case("another's home cannot be worked in", "No such file or directory|is not there inside the job")
def _(w):
    return w.attack("return open('secret').read()", workdir=w.home(VICTIM))


@case("nor through a link", "the working folder '.*' is not there inside the job")
def _(w):
    link = w.attacker_home() + "/work"
    if not os.path.islink(link):
        os.symlink(w.home(VICTIM), link)
    return w.attack("return open('secret').read()", workdir=link)


@case("another's /tmp is not there", "nothing there", "private_tmp")
def _(w):
    return w.attack(f"return [open(p).read() for p in glob.glob('/tmp/{MARK}')]")


@case("another's log on disk is closed to users of the machine", "Permission denied", "folder_modes", "file_modes")
def _(w):
    text = read_as(ATTACKER, w.task(w.victim) + "/log.0")
    assert w.secret in text, text
    return text


@case("another's job file, with its environment, too", "Permission denied", "folder_modes", "file_modes")
def _(w):
    text = read_as(ATTACKER, w.task(w.victim) + "/task.json")
    return text


@case("the database is closed to users of the machine", "Permission denied", "store_mode")
def _(w):
    return read_as(ATTACKER, w.c.state + "/nightshift.db")


@case("and to jobs that ask for its folder as a volume", "Nightshift has its own there", "store_mode", "instance")
def _(w):
    return w.attack("return open('/mnt/x/nightshift.db', 'rb').read(100)",
                    volumes=[{"from": w.c.state, "to": "/mnt/x"}])


@case("and to jobs that ask for the file itself as a volume", "Nightshift has its own there", "store_mode", "instance")
def _(w):
    return w.attack("return open('/mnt/x', 'rb').read(100)",
                    volumes=[{"from": w.c.state + "/nightshift.db", "to": "/mnt/x"}])


@case("a job is not given the folder of the daemon's socket", "Nightshift has its own there", "instance")
def _(w):
    return w.attack("""
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/mnt/x/api.sock")
return "connected\"""", volumes=[{"from": w.c.run, "to": "/mnt/x"}])


@case("nor a folder above it, by whatever name", "Nightshift has its own there", "instance")
def _(w):
    link = w.attacker_home() + "/above"
    if not os.path.islink(link):
        os.symlink(w.c.folder, link)
    return w.attack("return os.listdir('/mnt/x/r')", volumes=[{"from": link, "to": "/mnt/x"}])


@case("a folder that the site does not give to jobs is not given", "is in no folder that jobs may be given", "volumes_allow")
def _(w):
    return w.attack("open('/mnt/x/written', 'w').close()\nreturn 'written'", volumes=[{"from": OPEN_FOLDER, "to": "/mnt/x"}])


@case("nor where a link in one's own home leads there", "which is '/opt/.*' is in no folder that jobs may be given",
      "volumes_allow")
def _(w):
    link = w.attacker_home() + "/elsewhere"
    if not os.path.islink(link):
        os.symlink(OPEN_FOLDER, link)
    return w.attack("open('/mnt/x/written', 'w').close()\nreturn 'written'", volumes=[{"from": link, "to": "/mnt/x"}])


def made_in_given(w, **spec):
    """What appeared in a folder of root's that the job was given, to look at; Refused with what its user was told."""
    number = w.c.submit(["true"], uid=ATTACKER, resources=SMALL, **spec)
    job = w.c.wait_end(number)
    made = os.listdir(w.given)
    for name in made:
        path = f"{w.given}/{name}"
        (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
    if made:
        return made
    raise Refused(job["message"])


def own_file(w, name, text=""):
    path = f"{w.attacker_home()}/{name}"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


@case("a volume inside another makes nothing there that its user could not make",
      "no place for a volume can be made at '/mnt/h/nologin': Permission denied", "places_as_user")
def _(w):
    return made_in_given(w, volumes=[{"from": w.given, "to": "/mnt/h"},
                                     {"from": own_file(w, "empty"), "to": "/mnt/h/nologin"}])


@case("nor in the other order, nor for a folder", "no place for a volume can be made", "places_as_user")
def _(w):
    return made_in_given(w, volumes=[{"from": w.attacker_home(), "to": "/mnt/h/deep/er"}, {"from": w.given, "to": "/mnt/h"}])


@case("nor is a working folder made", "the working folder '/mnt/h/new' is not there inside the job")
def _(w):
    return made_in_given(w, volumes=[{"from": w.given, "to": "/mnt/h"}], workdir="/mnt/h/new")


@case("nor by a link that is put in the way meanwhile", "nothing was made")
def _(w):
    home = w.attacker_home()
    uid = os.stat(home).st_uid
    outer, empty = f"{home}/outer", own_file(w, "empty")
    os.makedirs(f"{outer}/a", exist_ok=True)
    for path in (outer, f"{outer}/a"):
        os.chown(path, uid, uid)
    if not os.path.islink(f"{outer}/b"):
        os.symlink("/mnt/h", f"{outer}/b")
    swapper = subprocess.Popen(["python3", "-c", SWAPPER, outer], user=uid, group=uid, extra_groups=[])
    try:
        for _ in range(12):
            try:
                return made_in_given(w, volumes=[{"from": w.given, "to": "/mnt/h"}, {"from": outer, "to": "/mnt/o"},
                                                 {"from": empty, "to": "/mnt/o/a/made"}])
            except Refused:
                pass
    finally:
        swapper.kill()
        swapper.wait()
    raise Refused("nothing was made")


SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = (f"{sys.argv[1]}/{name}".encode() for name in "ab")
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


@case("nothing of the state can be linked into one's own folder", "Permission denied|Operation not permitted")
def _(w):
    home = w.attacker_home()
    try:
        with acting_as(os.stat(home).st_uid):
            os.link(w.task(w.victim) + "/log.0", home + "/linked")
    except OSError as why:
        raise Refused(why.strerror) from why
    return "a second name of the log"


@case("what is root's in /etc cannot be read", "Permission denied", "account")
def _(w):
    return w.attack("return open('/etc/shadow').read(4)", workdir="/")


@case("the system is read-only, also where an administrator left a folder open", "Read-only file system",
      "readonly_system")
def _(w):
    return w.attack(f"with open('{OPEN_FOLDER}/written', 'w') as f:\n    f.write('x')\nreturn 'written'")


@case("sockets of the machine's services are not there", "No such file or directory", "view")
def _(w):
    return w.attack(f"return connect('{SERVICE}/sock')")


# ---- another's processes ----

@case("another's processes are not seen", "nothing there", "pid")
def _(w):
    return w.attack(f"""
secret = {w.secret[::-1]!r}[::-1].encode()  # else the attack would find its own words
return [p for p in glob.glob("/proc/[0-9]*/cmdline") if secret in words(p)]""")


@case("the machine's /proc is not given as a volume, whatever link leads there",
      "cannot give '.*' to the job: Operation not permitted", "machinery")
def _(w):
    link = w.attacker_home() + "/processes"
    if not os.path.islink(link):
        os.symlink("/proc", link)
    return w.attack(f"""
secret = {w.secret[::-1]!r}[::-1].encode()
return [p for p in glob.glob("/mnt/x/[0-9]*/cmdline") if secret in words(p)]""",
                    volumes=[{"from": link, "to": "/mnt/x"}])


@case("nor by its own name", "'/proc' cannot be given to a job", "reserved", "machinery")
def _(w):
    return w.attack("return glob.glob('/mnt/x/[0-9]*')", volumes=[{"from": "/proc", "to": "/mnt/x"}])


@case("shared memory of others is not there", "No such file or directory", "ipc")
def _(w):
    return w.attack(f"return 1 + call({CALLS['shmget']}, {KEY}, 4096, 0)")


@case("the supervisor's descriptors cannot be taken", "Operation not permitted|Permission denied")
def _(w):
    return w.attack(f"return call({CALLS['pidfd_getfd']}, call({CALLS['pidfd_open']}, 1, 0), 4, 0)")


@case("the supervisor cannot be traced", "Operation not permitted")
def _(w):
    return w.attack(f"call({CALLS['ptrace']}, 16, 1, 0, 0)\nreturn 'traced'")


@case("the supervisor's files in /proc are closed", "nothing there")
def _(w):
    return w.attack("""
found = []
for name in ("environ", "mem", "root", "cwd", "exe", "fd/4", "map_files", "maps"):
    try:
        found.append(os.listdir("/proc/1/" + name) if name in ("root", "cwd") else open("/proc/1/" + name, "rb+"))
    except OSError:
        pass
return found""")


@case("the supervisor cannot be killed from inside", "still here")
def _(w):
    try:
        return w.attack("os.kill(1, signal.SIGKILL)\nos.kill(1, signal.SIGSTOP)\nraise OSError('still here')")
    except AssertionError as why:
        return str(why)


def replaced_supervisor(w, volume):
    """Did a program of the attacker's become the first process?"""
    number = w.c.submit(["true"], uid=ATTACKER, resources=SMALL, volumes=[volume])
    replaced = w.attacker_home() + "/replaced"
    wait_for("an end, or a false supervisor", lambda: os.path.exists(replaced) or w.c.job(number)["ended_ms"])
    if not os.path.exists(replaced):
        raise Refused(w.c.job(number)["message"])
    os.unlink(replaced)
    w.c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    return "replaced"


FALSE_INIT = "#!/bin/sh\n:>$HOME/replaced\n"


@case("a link in one's home does not lead a volume to parts that are ours", "a link is on the way", "place_links",
      "sealed_init")
def _(w):
    link = w.attacker_home() + "/ns"
    if not os.path.islink(link):
        os.symlink("/.nightshift", link)
    return replaced_supervisor(w, {"from": own_file(w, "false-init", FALSE_INIT), "to": f"{link}/init"})


@case("a program of one's own cannot take the supervisor's place", "is not a place for a volume", "reserved",
      "sealed_init")
def _(w):
    folder = w.attacker_home() + "/fake"
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/init", "w", encoding="utf-8") as f:
        f.write(FALSE_INIT)
    os.chmod(folder + "/init", 0o755)
    return replaced_supervisor(w, {"from": folder, "to": "/.nightshift"})


@case("a job's own terminal socket is closed to users of the machine", "Permission denied", "folder_modes",
      "socket_modes")
def _(w):
    return connect_as(ATTACKER, f"{w.c.run}/tasks/{w.victim}.1.0/ctl.sock")


@case("the keeper's socket too", "Permission denied", "socket_modes")
def _(w):
    return connect_as(ATTACKER, f"{w.c.run}/keeper.sock")


# ---- the network ----

def service_port():
    with open(f"{SERVICE}/port", encoding="utf-8") as f:
        return int(f.read())


@case("a port of another tenant's job is not reached", "No route to host", "tenant_firewall", "task_firewall")
def _(w):
    return w.attack(f"return connect({w.address()!r})")


HOST_ATTACK = """
gateway = [line.split()[2] for line in open("/proc/net/route") if line.split()[1] == "00000000"][0]
return connect((socket.inet_ntoa(bytes.fromhex(gateway)[::-1]), %d))"""


@case("services of the machine are not reached over the bridge", "No route to host", "host_firewall", "task_firewall")
def _(w):
    return w.attack(HOST_ATTACK % service_port())


CLOUD = """
import socket, sys
s = socket.socket()
sys.stdin.readline()  # it has its address
s.bind(("0.0.0.0", 80))
s.listen()
print("ready", flush=True)
while True:
    with s.accept()[0] as c:
        c.sendall(b"the machine's keys")
"""


@contextlib.contextmanager
def in_a_cloud(w):
    """Beside this machine, with an address of those that are never elsewhere; what listens there."""
    ours, there = f"169.254.{w.c.range}.1", f"169.254.{w.c.range}.2"
    cable = f"nsc{w.c.range}"
    service = subprocess.Popen(["unshare", "--net", sys.executable, "-c", CLOUD], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        own = os.stat("/proc/self/ns/net").st_ino
        wait_for("a network of its own", lambda: cl.inode(f"/proc/{service.pid}/ns/net") not in (None, own))
        for command in (f"ip link add {cable} type veth peer name cloud netns {service.pid}",
                        f"ip address add {ours}/30 dev {cable}", f"ip link set {cable} up",
                        f"nsenter -t {service.pid} -n ip address add {there}/30 dev cloud",
                        f"nsenter -t {service.pid} -n ip link set cloud up"):
            subprocess.run(command.split(), check=True)
        service.stdin.write("\n")
        service.stdin.flush()
        assert service.stdout.readline() == "ready\n"
        with socket.create_connection((there, 80), cl.PATIENCE_S) as s:  # the machine itself gets them
            assert s.recv(99)
        yield there, 80
    finally:
        service.kill()
        service.wait()
        service.stdin.close()
        service.stdout.close()
        subprocess.run(["ip", "link", "delete", cable], check=False, stderr=subprocess.DEVNULL)


@case("a cloud does not give a job the machine's keys", "No route to host", "cloud_firewall", "task_firewall")
def _(w):
    with in_a_cloud(w) as to:
        return w.attack(f"return connect({to!r})")


def without_rules(w):
    """An administrator, or another firewall, is careless."""
    subprocess.run(["nft", "delete", "table", "inet", w.c.bridge], check=False, stderr=subprocess.DEVNULL)


@case("with the machine's rules taken away another tenant's job is not reached either", "No route to host", "rules_watch",
      "task_firewall")
def _(w):
    without_rules(w)
    return w.attack(f"return connect({w.address()!r})")


@case("nor is the machine", "No route to host", "rules_watch", "task_firewall")
def _(w):
    without_rules(w)
    return w.attack(HOST_ATTACK % service_port())


@case("a job that runs when they are taken away, with a keeper that is stopped, reaches neither", "No route to host",
      "task_firewall")
def _(w):
    go = w.attacker_home() + "/go"
    ready = w.attacker_home() + "/ready"
    for path in (go, ready):
        if os.path.exists(path):
            os.unlink(path)
    number = w.submit_attack(f"""
import time
open({ready!r}, "w").close()
for _ in range({cl.PATIENCE_S} * 100):
    if os.path.exists({go!r}):
        break
    time.sleep(0.01)
return connect({w.address()!r})""")
    wait_for("the attacker to be at work", lambda: os.path.exists(ready))
    keeper = wait_for("the keeper", w.c.keeper_pid)
    os.kill(keeper, signal.SIGSTOP)
    try:
        without_rules(w)
        with open(go, "w", encoding="utf-8"):
            pass
        wait_for("its verdict", lambda: w.c.text_of(number).startswith(("got ", "no ")))
    finally:
        os.kill(keeper, signal.SIGCONT)
    return w.verdict(number)


@case("accounts of the machine do not reach a job's port", "No route to host", "account_firewall")
def _(w):
    to = w.address()
    with socket.socket() as s:
        s.settimeout(cl.PATIENCE_S)
        s.connect(to)  # root does
    try:
        with acting_as(ATTACKER), socket.socket() as s:
            s.settimeout(cl.PATIENCE_S)
            s.connect(to)
            return s.recv(99)
    except OSError as why:
        raise Refused(why.strerror) from why


@case("nor on its loopback", "Connection refused", "network")
def _(w):
    return w.attack(f"return connect(('127.0.0.1', {service_port()}))")


@case("sockets without a file are not another's", "Connection refused", "network")
def _(w):
    return w.attack(f"return connect(b'\\0{MARK}')")


def dialled_by_image(w, to):
    """Somebody listens on all addresses of the machine; did it hear of the image?"""
    with socket.socket() as s:
        s.bind(("", 0))
        s.listen()
        number = w.c.submit(["true"], uid=ATTACKER, resources=SMALL, image=f"docker://{to}:{s.getsockname()[1]}/x:1")

        def told():
            """It is tried again later; what the user sees of the first try is in the log too."""
            if select.select([s], [], [], 0)[0]:
                return "dialled"
            with open(w.c.log_path, encoding="utf-8") as f:
                return next((line for line in f if f"task.failed task={number}.1.0 " in line), None)
        what = wait_for("a try", told)
        w.c.ask("POST", f"/v1/jobs/{number}/cancel", {})
        if what == "dialled" or select.select([s], [], [], 0)[0]:
            s.accept()[0].close()
            return "dialled"
    raise Refused(what)


@case("an image's name does not make the machine dial itself", "there is no way to the registry", "image_account")
def _(w):
    return dialled_by_image(w, "127.0.0.1")


@case("nor by another address of its own", "there is no way to the registry", "image_account")
def _(w):
    gateway = w.address()[0].rsplit(".", 1)[0] + ".1"
    return dialled_by_image(w, gateway)


# ---- an image that has got hold of what unpacks it ----

def unpack(w, *attacks):
    """A tool that does what the attacker wants unpacks an image of theirs; what came of each of the attacks."""
    with open(f"{cl.BUILD}/tests/fakes/hostile-unpacker", "rb") as f:
        program = f.read()
    w.images += 1
    mark = f"read /mark-{w.images}"
    w.set_unpacker(program + "\n".join(["", "attack", mark, *attacks, ""]).encode())
    image = f"{w.c.folder}/image{w.images}"
    for command in (["init", "--layout", image], ["new", "--image", f"{image}:v1"],
                    ["config", "--image", f"{image}:v1", "--config.env", f"N={w.images}"]):
        subprocess.run([w.umoci, *command], check=True, capture_output=True)
    subprocess.run(["chmod", "-R", "a+rX", image], check=True)
    number = w.c.submit(["true"], uid=ATTACKER, resources=SMALL, image=f"oci:{image}:v1")

    def told():
        for path in glob.glob(f"{w.c.state}/images/rootfs/{'[0-9a-f]' * 64}/root/result"):
            with open(path, encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
            if lines and lines[0].startswith(mark + ":"):
                return lines[1:]
        return None
    answers = wait_for("the image to be unpacked", told)
    w.c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    assert len(answers) == len(attacks), answers
    return dict(zip(attacks, (line[len(attack) + 2:] for line, attack in zip(answers, attacks))))


def got_of(answers):
    """All of it or nothing: where a part succeeds the case fails on the product and without the protection."""
    won = {attack: said for attack, said in answers.items() if said.startswith("got")}
    if not won:
        raise Refused("; ".join(sorted({said.partition(", ")[2] for said in answers.values()})))
    return won


@case("what unpacks an image writes to no other place", "^No such file or directory$", "image_unpack")
def _(w):
    other = f"{w.c.state}/images/rootfs/other"
    os.makedirs(other, exist_ok=True)
    places = [f"/etc/{MARK}", f"{other}/taken", f"{w.c.state}/taken", f"{w.c.run}/taken", f"{w.c.libexec}/nightshift-init"]
    inits = [os.stat(places[-1]).st_mtime_ns]
    kept = shutil.copy2(places[-1], f"{w.c.folder}/kept-init")
    try:
        answers = unpack(w, *(f"write {path}" for path in places))
        written = [path for path in places[:-1] if os.path.exists(path)]
        inits.append(os.stat(places[-1]).st_mtime_ns)
    finally:
        for path in places[:-1]:
            if os.path.exists(path):
                os.unlink(path)
        os.rename(kept, places[-1])  # the cases after this one need it
    won = got_of(answers) if not written else written
    assert len(won) == len(places) - 1 and inits[0] != inits[1], (answers, written)
    return written


@case("nor reads what is root's, or another's image", "^No such file or directory$", "image_unpack")
def _(w):
    own = f"{w.c.state}/images/blobs/sha256/{'0' * 64}"
    for path in (own, f"{w.c.folder}/secret"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(w.secret)
        os.chmod(path, 0o600)
    answers = unpack(w, f"read {own}", f"read {w.c.folder}/secret", f"read /layout/blobs/sha256/{'0' * 64}", "read /proc/1/root/etc/shadow",
                     "read /etc/shadow")
    won = got_of(answers)
    return [attack for attack, said in won.items() if w.secret in said]


@case("nor reaches services of the machine", "^Function not implemented$", "image_unpack", "image_calls")
def _(w):
    return got_of(unpack(w, f"connect {service_port()}"))


@case("nor signals or traces processes of the machine", "^Function not implemented$", "image_unpack", "image_calls")
def _(w):
    with subprocess.Popen(["sleep", "infinity"]) as p:
        try:
            won = got_of(unpack(w, f"trace {p.pid}", f"kill {p.pid}"))
            assert p.wait(cl.PATIENCE_S) == -signal.SIGKILL
            return won
        finally:
            p.kill()


@case("nor mounts anything", "^Function not implemented$", "image_unpack", "image_calls")
def _(w):
    return got_of(unpack(w, "mount"))


@case("nor uses a device file that it makes", "^Permission denied$", "image_unpack")
def _(w):
    return got_of(unpack(w, "device 1 3"))


@case("nor makes processes, whose bytes nobody would count", "^Operation not permitted$", "image_calls")
def _(w):
    return got_of(unpack(w, "fork"))


def put_image(folder, uid, layer, whole):
    """An image of one layer as a folder; without `whole` it names the layer and does not have it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/blobs/sha256")

    def part(kind, data, there=True):
        digest = hashlib.sha256(data).hexdigest()
        if there:
            with open(f"{folder}/blobs/sha256/{digest}", "wb") as f:
                f.write(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + digest, "size": len(data)}
    config = part("config.v1+json", json.dumps(
        {"architecture": "amd64", "os": "linux", "author": str(uid), "rootfs": {"type": "layers", "diff_ids": [
            "sha256:" + hashlib.sha256(gzip.decompress(layer)).hexdigest()]}}).encode())
    manifest = part("manifest.v1+json", json.dumps(
        {"schemaVersion": 2, "config": config, "layers": [part("layer.v1.tar+gzip", layer, whole)]}).encode())
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "x"}
    for name, text in (("index.json", {"schemaVersion": 2, "manifests": [manifest]}),
                       ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            json.dump(text, f)
    for root, _, names in os.walk(folder):
        for path in [root, *(f"{root}/{name}" for name in names)]:
            os.chown(path, uid, uid)


def secret_layer(secret):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as t:
        for name in ("proc", "sys", "dev", "etc", "tmp", ".nightshift"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            t.addfile(info)
        info = tarfile.TarInfo("secret")
        info.size = len(secret)
        t.addfile(info, io.BytesIO(secret.encode()))
    return gzip.compress(data.getvalue(), mtime=0)


def run_image(w, uid):
    """Its job's first try; the image has no program, so what is told is whether there is an image."""
    number = w.c.submit(["/none"], uid=uid, resources=SMALL, image=f"oci:{w.home(uid)}/image:x")

    def told():
        with open(w.c.log_path, encoding="utf-8") as f:
            failed = next((line for line in f if f"task.failed task={number}.1.0 " in line), None)
        return failed or (w.c.job(number)["message"] if w.c.job(number)["state"] in cl.ENDED else None)
    said = wait_for("a try", told)
    w.c.call("POST", f"/v1/jobs/{number}/cancel", {})
    return said


@case("a layer of another's image is not given to whoever knows its digest", "cannot fetch image .* no such file", "image_layers")
def _(w):
    if not all(shutil.which(name) for name in ("skopeo", "umoci")):
        raise Skip("skopeo and umoci are not installed")
    w.attacker_home()
    layer = secret_layer(w.secret)
    for uid, whole in ((VICTIM, True), (ATTACKER, False)):
        put_image(w.home(uid) + "/image", os.stat(w.home(uid)).st_uid, layer, whole)
    told = run_image(w, VICTIM)
    assert "exit code 127" in told, told
    told = run_image(w, ATTACKER)
    if "exit code 127" not in told:
        raise Refused(told)
    return told


# ---- whoever copies from a job ----

def copy_out(w, *members):
    """An administrator copies from a job in which a false tar answers: with these."""
    folder = w.attacker_home() + "/bin"
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/tar", "w", encoding="utf-8") as f:
        f.write(FALSE_TAR % "\n    ".join(members))
    os.chmod(folder + "/tar", 0o755)
    number = w.c.submit(["sleep", "600"], uid=ATTACKER, resources=SMALL, env={"PATH": folder + ":/usr/bin:/bin"})
    w.c.wait_state(number, "running")
    here = f"{w.c.folder}/here"
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(here + "/in", 0o700)
    done = subprocess.run([f"{cl.BUILD}/nightshift", "cp", f"{number}:/tmp/x", "."], cwd=here + "/in",
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{w.c.run}/api.sock"},
                          capture_output=True, text=True, timeout=cl.PATIENCE_S, check=False)
    w.c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    bad = []
    for path in glob.glob(here + "/**", recursive=True):
        mode = os.lstat(path).st_mode
        if mode & 0o7000 or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)) or "out" in path:
            bad.append((path, oct(mode)))
    if bad:
        return bad
    raise Refused(done.stderr.strip() if done.returncode else "plain files")


FALSE_TAR = """#!/usr/bin/python3
import io, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as t:
    def put(name, kind=tarfile.REGTYPE, **more):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.size = kind, 0o4755, 1 if kind == tarfile.REGTYPE else 0
        for key, value in more.items():
            setattr(info, key, value)
        t.addfile(info, io.BytesIO(b"x"))
    put("x", tarfile.DIRTYPE)
    %s
"""


@case("a setuid file that an administrator copies out of a job is one no more", "plain files")
def _(w):
    return copy_out(w, "put('x/setuid')")


@case("a device file is not copied out", "the job sent 'device', which is neither a file nor a folder")
def _(w):
    return copy_out(w, "put('x/device', tarfile.CHRTYPE, devmajor=1, devminor=3)")


@case("nor a file beside the folder it is copied to", "tar failed on this machine")
def _(w):
    return copy_out(w, "put('x/link', tarfile.SYMTYPE, linkname='../..')", "put('x/link/out1')", "put('../../out2')")


# ---- power ----

@case("a job has no capability", "Operation not permitted", "capabilities")
def _(w):
    return w.attack("os.mknod('/tmp/x', 0o600 | stat.S_IFCHR, os.makedev(1, 3))\nreturn 'a device file'")


@case("a setuid program gives nothing", "it ran as 71000000\\d", "no_new_privs", "nosuid")
def _(w):
    path = w.attacker_home() + "/rootid"
    if os.statvfs(w.attacker_home()).f_flag & os.ST_NOSUID:
        raise Skip("this folder is mounted nosuid anyway")
    shutil.copy("/usr/bin/id", path)
    os.chmod(path, 0o4755)
    _, text = w.job([path, "-u"])
    if text.strip() != "0":
        raise Refused(f"it ran as {text.strip()}")
    return text


@case("a device file that is found cannot be opened", "Permission denied|Operation not permitted", "nodev", "devices")
def _(w):
    with open("/proc/misc", encoding="utf-8") as f:
        there = {line.split()[1]: int(line.split()[0]) for line in f}
    minor = next((there[name] for name in ("tun", "fuse", "hw_random") if name in there), None)
    if minor is None or os.statvfs(w.attacker_home()).f_flag & cl_nodev():
        raise Skip("no harmless device to try it with")
    path = w.attacker_home() + "/device"
    if not os.path.exists(path):
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(10, minor))
        os.chmod(path, 0o666)
    return w.attack(f"return os.open('{path}', os.O_RDWR)")


def cl_nodev():
    return getattr(os, "ST_NODEV", 4)


@case("another's GPU has no device file", "nothing there", "gpu_nodes")
def _(w):
    return w.attack("return [open(p).read() for p in glob.glob('/dev/nvidia[0-9]*')]")


@case("memory, kernel messages and disks have no device file", "nothing there")
def _(w):
    return w.attack("return [n for n in ('mem', 'kmem', 'port', 'kmsg', 'kvm', 'fuse', 'loop0', 'sda', 'vda') "
                    "if os.path.exists('/dev/' + n)]")


@case("kernel keys are refused", "Operation not permitted", "seccomp")
def _(w):
    return w.attack(f"return call({CALLS['add_key']}, b'user', b'ns-hostile', b'x', 1, -4)")


@case("a system call that nobody has listed is not there", "Function not implemented", "seccomp")
def _(w):
    if not X86 or ctypes.CDLL(None).syscall(139, 3) <= 0:
        raise Skip("written for sysfs(2) of x86-64")
    return w.attack("return call(139, 3)")


SOCKETCALL = """
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
low = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x62, -1, ctypes.c_long(0))  # MAP_32BIT: as a program of 32 bits has it
stub = bytes.fromhex("5389f889f389d1cd805bc3")  # int 0x80 with its three arguments
ctypes.memmove(low, stub + bytes(64 - len(stub)) + b"".join(n.to_bytes(4, "little") for n in (%d, 1, 0)), 76)
got = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)(low)(102, 1, low + 64)
if got < 0:
    raise OSError(-got, os.strerror(-got))
return 'a socket'"""


def rare_family():
    """One that this kernel has and jobs must not: to the hypervisor, or the kernel's ciphers."""
    for family in (40, 38):
        for kind in (1, 5):
            try:
                socket.socket(family, kind).close()
                return family
            except OSError:
                pass
    raise Skip("this kernel has neither")


def rare_stream():
    """The same of those that have streams."""
    try:
        socket.socket(40, 1).close()
    except OSError as why:
        raise Skip("this kernel has no vsock") from why
    return 40


@case("a socket of a family that jobs need not have is refused", "Operation not permitted", "seccomp")
def _(w):
    return w.attack(f"return call({CALLS['socket']}, {rare_family()}, 5 if {rare_family()} == 38 else 1, 0)")


@case("nor is it made by a number that only the kernel cuts short", "Operation not permitted", "seccomp")
def _(w):
    return w.attack(f"return call({CALLS['socket']}, ctypes.c_long({1 << 32 | rare_stream()}), 1, 0)")


@case("nor by the call that programs of 32 bits have for it", "Operation not permitted", "seccomp")
def _(w):
    family = rare_stream()
    code = "import ctypes, os\ndef f():\n" + "".join(f"    {line}\n" for line in (SOCKETCALL % family).strip().split("\n")) + "f()"
    if not X86 or subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("this kernel has no calls of 32 bits")
    return w.attack(SOCKETCALL % family)


def set_attributes(w, get, put, size):
    """Of the job's own home, as they are."""
    import fcntl
    fd = os.open(w.attacker_home(), os.O_RDONLY)
    try:
        fcntl.ioctl(fd, get, bytearray(size))
    except OSError as why:
        raise Skip("this file system does not have it") from why
    finally:
        os.close(fd)
    return w.attack(f"""
import fcntl
fd = os.open(os.environ["HOME"], os.O_RDONLY)
mine = bytearray({size})
fcntl.ioctl(fd, {get}, mine)
fcntl.ioctl(fd, {put}, mine)
return 'set'""")


@case("a job does not say which project its files count for, and so leave the bound of its scratch", "Operation not permitted",
      "seccomp")
def _(w):
    return set_attributes(w, 0x801c581f, 0x401c5820, 28)


@case("nor that what is made in a folder counts for none", "Operation not permitted", "seccomp")
def _(w):
    return set_attributes(w, 0x80086601, 0x40086602, 8)


@case("a user namespace is refused", "Operation not permitted", "seccomp")
def _(w):
    with open("/proc/sys/user/max_user_namespaces", encoding="utf-8") as f:
        if f.read().strip() == "0":
            raise Skip("this machine has none")
    return w.attack(f"call({CALLS['unshare']}, 0x10000000)\nreturn 'a user namespace'")


@case("a job cannot lift its own limits", "Operation not permitted", "capabilities", "seccomp")
def _(w):
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        raise Skip("written for cgroup v1")
    return w.attack(f"""
os.mkdir("/tmp/cg")
call({CALLS['mount']}, b"none", b"/tmp/cg", b"cgroup", 0, b"pids")
with open("/tmp/cg/pids.max", "w") as f:
    f.write("max")
return open("/tmp/cg/pids.max").read()""")


@case("a job does not see where in the control groups it is", "nothing there", "cgroup")
def _(w):
    return w.attack("return [line for line in open('/proc/self/cgroup') if '.1.0' in line]")


@case("settings of the kernel cannot be changed", "Read-only file system|Permission denied", "readonly_paths", "account")
def _(w):
    return w.attack("""
path = "/proc/sys/kernel/core_pattern"
with open(path) as f:
    old = f.read()
with open(path, "w") as f:
    f.write(old)
return old""", workdir="/")


@case("what the machine's processes do with keys is covered", "nothing there", "masked_paths")
def _(w):
    return w.attack("return open('/proc/key-users').read()")


@case("nor do counts of interrupts tell when the machine's owner types", "nothing there", "masked_paths")
def _(w):
    return w.attack("return open('/proc/interrupts').read()")


# ---- the API ----

@case("another tenant's job is not there", "no job", "tenant_scope")
def _(w):
    return w.call("GET", f"/v1/jobs/{w.victim}")


@case("nor why it waits", "no job", "tenant_scope")
def _(w):
    return w.call("GET", f"/v1/jobs/{w.victim}/why")


@case("nor in the list", "nothing there", "tenant_scope")
def _(w):
    if not w.call("GET", f"/v1/jobs?user=uid-{VICTIM}&state=all")["jobs"]:
        raise Refused("nothing there")
    return "listed"


@case("nor among the events", "nothing there", "tenant_scope")
def _(w):
    number = w.c.submit(["true"], uid=ATTACKER, resources=SMALL)
    w.c.wait_end(number)
    conn = cl.UnixConnection(f"{w.c.run}/api.sock", cl.PATIENCE_S, ATTACKER)
    conn.request("GET", "/v1/events?after=0")
    answer = conn.getresponse()
    try:
        for line in iter(answer.readline, b""):
            event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
            if event.get("job") == w.victim:
                return event
            if event.get("job") == number and event["state"] == "succeeded":
                raise Refused("nothing there")
    finally:
        conn.close()
    raise AssertionError("the events ended")


@case("its log is not told either", "no job", "tenant_scope", "owner")
def _(w):
    return w.call("GET", f"/v1/jobs/{w.victim}/log")


@case("a colleague's log is its owner's", "job \\d+ belongs to 'uid-70001'", "owner")
def _(w):
    return w.call("GET", f"/v1/jobs/{w.victim}/log", uid=NEIGHBOUR)


@case("a colleague's job cannot be signalled", "job \\d+ belongs to 'uid-70001'", "owner")
def _(w):
    return w.call("POST", f"/v1/jobs/{w.victim}/signal", {"signal": "CONT"}, uid=NEIGHBOUR)


@case("nor ended", "job \\d+ belongs to 'uid-70001'", "owner")
def _(w):
    mine = w.c.submit(["true"], uid=VICTIM, resources=SMALL, held=True)
    return w.call("POST", f"/v1/jobs/{mine}/cancel", {}, uid=NEIGHBOUR)


@case("nor entered", "HTTP/1.1 403", "owner")
def _(w):
    path, key = f"/v1/jobs/{w.victim}/stream", "0123456789abcdef"
    conn = cl.UnixConnection(f"{w.c.run}/api.sock", cl.PATIENCE_S, NEIGHBOUR)
    conn.request("GET", f"{path}?key={key}")
    down = conn.getresponse()
    if down.status != 200:
        raise Refused(f"HTTP/1.1 {down.status}")
    w.c.call("POST", f"{path}/{key}?n=1", exec_frame(["cat", w.home(VICTIM) + "/secret"]), uid=NEIGHBOUR,
             kind="application/octet-stream")
    while len(head := down.read(4)) == 4:
        body = down.read(int.from_bytes(head[1:], "big"))
        if head[0] in (STDOUT, ERROR):
            return body.decode()
    return None


@case("a colleague's command and environment are left out", "no spec", "spec_owner")
def _(w):
    job = w.call("GET", f"/v1/jobs/{w.victim}", uid=NEIGHBOUR)
    if "spec" not in job:
        raise Refused("no spec")
    return job["spec"]["env"]["SECRET"]


@case("jobs are not submitted for another tenant", "'uid-70002' is not a member of 'blue'", "tenant_member")
def _(w):
    return w.call("POST", "/v1/jobs", {"command": ["true"], "tenant": "blue", "held": True})


@case("a lead who adds somebody does not get their next jobs", "say for which it is, '(red|default)' or '(red|default)'",
      "lead_captures")
def _(w):
    newcomer, job = ATTACKER + 10, {"command": ["true"], "held": True}
    first = w.call("POST", "/v1/jobs", job, uid=newcomer)["id"]
    assert w.c.job(first)["tenant"] == "default"
    w.c.ask("PUT", f"/v1/tenants/red/members/uid-{ATTACKER}", {"role": "lead"})
    w.call("PUT", f"/v1/tenants/red/members/uid-{newcomer}", {})
    try:
        captured = w.call("POST", "/v1/jobs", job, uid=newcomer)["id"]
        return w.call("GET", f"/v1/jobs/{captured}")["tenant"]
    finally:
        w.call("DELETE", f"/v1/tenants/red/members/uid-{newcomer}")
        w.c.ask("DELETE", f"/v1/tenants/red/members/uid-{ATTACKER}")


@case("a job that reaches the socket is its user", "the same person", "job_uids")
def _(w):
    uid = os.stat(w.attacker_home()).st_uid
    assert uid >= UID_BASE
    me = w.call("GET", "/v1/whoami", uid=uid)
    if me["user"] == f"uid-{ATTACKER}":
        raise Refused("the same person")
    return me["tenants"]


@case("and a uid of jobs that nobody has is nobody", "uid 710999999 is nobody's", "job_uids")
def _(w):
    return w.call("GET", "/v1/whoami", uid=UID_BASE + 999999)["tenants"]


@case("draining machines is for operators and owners", "needs the role 'owner', 'operator' or 'admin'", "role")
def _(w):
    name = w.c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    w.call("POST", f"/v1/nodes/{name}/drain", {})
    return w.c.ask("POST", f"/v1/nodes/{name}/resume", {})["state"]


@case("the doctor too", "needs the role 'operator' or 'admin'", "role")
def _(w):
    return w.call("GET", "/v1/doctor")


@case("nobody makes a token for another", "only administrators make tokens for others", "token_owner")
def _(w):
    return w.call("POST", "/v1/tokens", {"name": "stolen", "user": f"uid-{VICTIM}"})


@case("nobody sees another's tokens", "nothing there", "token_owner")
def _(w):
    w.c.call("POST", "/v1/tokens", {"name": "seen"}, uid=VICTIM)
    found = [t for t in w.call("GET", "/v1/tokens")["tokens"] if t["user"] != f"uid-{ATTACKER}"]
    if not found:
        raise Refused("nothing there")
    return found


@case("nobody deletes another's token", "has no token 'kept' that you could delete", "token_owner")
def _(w):
    w.c.call("POST", "/v1/tokens", {"name": "kept"}, uid=VICTIM)
    w.call("DELETE", f"/v1/tokens/kept?user=uid-{VICTIM}", "")
    return "deleted"


@case("a token makes no token that may do more", "it would have more than the token 'narrow'", "token_scope")
def _(w):
    narrow = w.call("POST", "/v1/tokens", {"name": "narrow", "scopes": ["manage"]})["token"]
    return w.call("POST", "/v1/tokens", {"name": "wide", "scopes": ["jobs"]}, token=narrow)


@case("who of another tenant has a machine is not told", "nothing there", "holders")
def _(w):
    text = json.dumps(w.call("GET", "/v1/nodes"))
    assert "(another tenant)" in text or "victim" in text, text
    if "victim" not in text and "blue" not in text:
        raise Refused("nothing there")
    return text


@case("one caller cannot take all connections", "you have \\d+ connections open", "caller_share")
def _(w):
    held = []
    try:
        with acting_as(ATTACKER):
            for _ in range(64):
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].connect(f"{w.c.run}/api.sock")
        try:  # the last is one too many, if any is; it is answered either way
            held[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        except OSError:
            pass
        words = held[-1].recv(4096).decode()
        if "you have" in words:
            raise Refused(words)
        try:
            status = w.c.call("GET", "/v1/whoami", uid=VICTIM)[0]
        except cl.Away:
            status = 503  # cut off before it could ask
    finally:
        for s in held:
            s.close()
    wait_for("room again", w.c.is_ready)
    assert status == 503, status
    return "the victim is not served"


@case("one caller cannot fill the daemon's memory with what it sends", "you are sending more than 8Mi at once", "body_share")
def _(w):
    size, most = 1 << 20, 900000
    socks = [socket.socket(socket.AF_UNIX) for _ in range(12)]
    try:
        for s in socks:
            s.settimeout(cl.PATIENCE_S)
            with acting_as(ATTACKER):
                s.connect(f"{w.c.run}/api.sock")
            send_or_hear(s, f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {size}\r\n\r\n".encode() + b" " * most)
        for s in socks:  # all were held at once; now they are ended
            send_or_hear(s, b" " * (size - most))
            assert b" 400 " in s.recv(4096)
    finally:
        for s in socks:
            s.close()
    return "all of it at once"


def send_or_hear(s, data):
    try:
        s.sendall(data)
    except OSError as why:
        raise Refused(s.recv(4096).decode()) from why


# ---- bombs ----

def bomb(w, command, ends, **spec):
    """Runs it beside the victim, whose heart must beat on; Refused with the reason that its user is told."""
    before = w.beats()
    job, text = w.job(command, **spec)
    wait_for("the victim to go on", lambda: w.beats() > before + 5)
    victim = w.c.job(w.victim)
    assert (victim["state"], victim["run"]) == ("running", 1), victim
    if job["end"] == ends:
        raise Refused(job["message"])
    assert job["state"] == "succeeded", (job["end"], job["message"], text[-500:])
    return text or "it went on"


@case("a memory bomb is ended, and told why", "it used more memory than it asked for", "memory")
def _(w):
    return bomb(w, ["python3", "-c", "x = bytearray(200 << 20); print(len(x))"], "out_of_memory")


@case("a fork bomb is ended, and told why", "it reached its limit of 64 processes", "pids")
def _(w):
    code = """
import os, signal, sys
children = []
try:
    for _ in range(150):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
finally:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
print(len(children))
"""
    return bomb(w, ["python3", "-c", code], "out_of_processes", resources={"mem": "512Mi"})


@case("a fork bomb of the well-known kind harms nobody", "its time was over")
def _(w):
    return bomb(w, ["bash", "-c", ":(){ :|:& };: 2>/dev/null; sleep 60"], "time_limit", max_time="1s",
                freeze={"grace": "1s"})


@case("a job that fills its disk space is told so", "its scratch space was full", "scratch_size")
def _(w):
    return bomb(w, ["dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=32"], "out_of_disk", resources={"mem": "128Mi"})


@case("so is one that makes files without end", "its scratch space was full", "scratch_files")
def _(w):
    code = "for i in range(4000): open('/tmp/%d' % i, 'w').close()\nprint('4000 files')"
    return bomb(w, ["python3", "-c", code], "out_of_disk", resources={"scratch": "1Mi"})


@case("a job cannot take all terminals of the machine", "no more than 128 terminals: No space left on device", "terminals")
def _(w):
    return w.attack("""
held = []
try:
    for _ in range(200):
        held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as why:
    raise OSError(f"no more than {len(held)} terminals: {why.strerror}")
return len(held)""")


@case("output without end stays bounded on disk, and its end is kept", "its log has at most 2 MiB", "log_bound",
      "log_watch")
def _(w):
    before = w.beats()
    job, text = w.job(["sh", "-c", "head -c 6000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo the end"])
    size = sum(os.stat(path).st_blocks * 512 for path in glob.glob(w.task(job["id"]) + "/log.*"))
    wait_for("the victim to go on", lambda: w.beats() > before + 5)
    whole = job["state"] == "succeeded" and text.endswith("\nthe end\n")
    if size <= 2 << 20:
        raise Refused("its log has at most 2 MiB" if whole else f"{job['message']}: {text[-99:]}")
    assert whole, (job["message"], text[-99:])
    return f"{size} bytes of log"


@case("a job does not get more CPU time than it asked for", "a twentieth of each period", "cpu")
def _(w):
    group = glob.glob(f"/sys/fs/cgroup/cpu/{w.c.cgroup}")
    if not group:
        raise Skip("written for cgroup v1")
    number = w.c.submit(["sh", "-c", "while :; do :; done"], uid=ATTACKER, resources={**SMALL, "cpus": 0.05})
    w.c.wait_state(number, "running")
    limits = []
    for name in ("quota", "period"):
        with open(f"{group[0]}/{number}.1.0/cpu.cfs_{name}_us", encoding="utf-8") as f:
            limits.append(int(f.read()))
    # Whether it comes to be throttled is the machine's to say: where others compute it may get less by itself.
    w.c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    w.c.wait_end(number)
    if limits[0] * 20 == limits[1]:
        raise Refused("a twentieth of each period")
    return f"{limits[0]} of {limits[1]} us"


# ---- the seam itself ----

def seam_names():
    """{name: files} of the sources' literal seams."""
    found = {}
    for path in glob.glob(f"{SOURCE}/src/**/*.c", recursive=True):
        with open(path, encoding="utf-8") as f:
            for name in re.findall(r'weak_(?:here|or)\(\s*"(\w+)"', f.read()):
                found.setdefault(name, set()).add(path)
    return found


def check_table():
    """Every seam has a row and a case; every file with one is built into the test programs."""
    attacked = {name for _, _, protections, _ in CASES for name in protections}
    from_tables = {"pid", "ipc", "cgroup", "memory", "pids", "cpu"}  # rows of bundle.c and cgroup.c
    seams = seam_names()
    assert set(NAMES) == attacked, f"no case for, or no row of: {set(NAMES) ^ attacked}"
    known, built = set(NAMES) | set(OF_THE_STORE), set(seams) | from_tables
    assert known == built, f"no seam for, or no row of: {known ^ built}"
    with open(f"{SOURCE}/meson.build", encoding="utf-8") as f:
        listed = re.search(r"weak_modules = \{(.*?)\n\}", f.read(), re.S).group(1)
    for path in set().union(*seams.values()):
        module = os.path.relpath(path, f"{SOURCE}/src")[:-2]
        assert f"'{module}'" in listed, f"{module} is not among meson.build's weak_modules"


def check_product():
    """What is installed cannot be weakened: the seam is not in it."""
    programs = [path for path in glob.glob(f"{cl.BUILD}/nightshift*") if os.path.isfile(path)]
    assert {"nightshiftd", "nightshift-keeper", "nightshift-init", "nightshift"} <= {os.path.basename(p) for p in programs}
    for path in programs:
        with open(path, "rb") as f:
            has = b"NIGHTSHIFT_WEAK" in f.read()
        assert has == path.endswith("-weak"), f"{path}: {'has' if has else 'lacks'} the seam"


# ---- running ----

class Report:
    def __init__(self):
        self.count, self.good = 0, True

    def run(self, sentence, fn, log_tail=lambda: ""):
        self.count += 1
        try:
            fn()
            print(f"ok {self.count} - {sentence}", flush=True)
        except Skip as why:
            print(f"ok {self.count} - {sentence} # SKIP {why}", flush=True)
        except Exception:
            self.good = False
            print(f"not ok {self.count} - {sentence}")
            print("\n".join("#   " + line for line in traceback.format_exc().splitlines()[-12:]))
            print("\n".join("#   | " + line for line in log_tail().splitlines()), flush=True)


def refused(w, told, fn):
    try:
        got = fn(w)
    except Refused as why:
        assert re.search(told, str(why)), f"the attacker is told: {why}"
        return
    raise AssertionError(f"the attack succeeded: {got}")


def succeeds(w, fn):
    try:
        assert fn(w), "it got nothing"
    except Refused as why:
        raise AssertionError(f"the attack is refused all the same: {why}") from why


def on_product(report, cases):
    w = World()
    try:
        w.start()
        for sentence, told, _, fn in cases:
            report.run(sentence, lambda t=told, f=fn: refused(w, t, f), lambda: w.c.log_tail(8))
        report.run("after all of it the victim's job runs on", lambda: still_well(w))
    finally:
        w.close()


def still_well(w):
    before = w.beats()
    wait_for("the victim's heart to beat", lambda: w.beats() > before)
    assert w.c.job(w.victim)["run"] == 1
    number = w.c.submit(["true"], uid=VICTIM, resources=SMALL)
    assert w.c.wait_end(number)["state"] == "succeeded"


def without(report, w, taken, cases):
    """Those that need exactly these gone succeed; those that have another left are refused."""
    name = " and ".join(sorted(taken))
    for sentence, _, protections, fn in cases:
        if taken == set(protections):
            report.run(f"without {name}: {sentence}: not so", lambda f=fn: succeeds(w, f), lambda: w.c.log_tail(8))
        elif taken < set(protections):
            report.run(f"without {name} alone: {sentence}", lambda f=fn: refused(w, "", f), lambda: w.c.log_tail(8))


def on_weakened(report, cases):
    """One world for all that is asked at each call or start of a job, one each for the rest."""
    sets = {frozenset(c[2]) for c in cases if c[2]}
    sets |= {frozenset([name]) for one in sets for name in one}
    ordered = sorted(sets, key=sorted)
    together = [taken for taken in ordered if not taken & EARLY]
    for group in [together] * bool(together) + [[taken] for taken in ordered if taken & EARLY]:
        w = World(weak=sorted(group[0]) if group[0] & EARLY else [])
        try:
            w.start()
            for taken in group:
                w.c.weaken(taken)
                without(report, w, taken, cases)
        finally:
            w.close()


def service():
    """What an administrator might have on the machine: a service on all addresses, and one on a socket."""
    def serve(s):
        while True:
            with s.accept()[0] as c:
                c.sendall(b"the machine's own")
    os.makedirs(SERVICE, 0o755)
    for address in (f"{SERVICE}/sock", ("", 0)):
        s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        s.bind(address)
        s.listen()
        threading.Thread(target=serve, args=(s,), daemon=True).start()
    with open(f"{SERVICE}/port", "w", encoding="utf-8") as f:
        f.write(str(s.getsockname()[1]))
    os.chmod(f"{SERVICE}/sock", 0o666)


def run_all(report, wanted):
    cases = [c for c in CASES if wanted in c[0] or wanted in c[2]]
    report.run("every seam has a row, a case and a place in the test programs", check_table)
    report.run("what is installed does not have the seam", check_product)
    on_product(report, cases)
    on_weakened(report, cases)


def main():
    why = cl.why_not()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A folder that only this process and its children see: nothing is left on the machine.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/opt"], check=True)
    os.mkdir(OPEN_FOLDER)
    os.chmod(OPEN_FOLDER, 0o777)
    report = Report()
    try:
        service()
        run_all(report, sys.argv[1] if len(sys.argv) > 1 else "")
    finally:
        shutil.rmtree(SERVICE, ignore_errors=True)
    print(f"1..{report.count}")
    return not report.good


if __name__ == "__main__":
    sys.exit(main())
