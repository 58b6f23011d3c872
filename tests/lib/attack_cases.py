"""attack_cases - jobs made up at random by two tenants, and a watcher of all that is not theirs.

Two people of two tenants submit jobs whose volumes, links, places and names are made up from a seed, while each of
them swaps folders of their own for links (renameat2) all the time.  A job tries to change whatever it was
given and is not its user's, and looks for what it must not see.  After every hundred jobs the watcher compares what
must not change: folders of root's that a site allows on purpose, other homes, the state, sockets, /etc, mounts,
networks, control groups, processes.  The last cases take protections away (src/sys/weak.h): then the same jobs must
be noticed.

attack_cases.py [COUNT]; NIGHTSHIFT_SEED repeats a run.
"""
import collections
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import seeds  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402
from cluster import acting_as, wait_for  # noqa: E402

case = Cases()
SEED = seeds.seed()
# Many where seeds are new.  Each protection that is taken away is noticed within so many of the fixed seed.
JOBS = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 2000 if os.environ.get("NIGHTSHIFT_NEW_SEEDS") else 150
BATCH, WEAK_BATCH, WEAK_JOBS = 100, 50, 1000
USERS = {72001: "red", 72002: "blue"}
VICTIM, BYSTANDER = 72003, 72004  # one works all the time, one has been here
UID_BASE = 720000000 + os.getpid() % 100000 * 1000  # its processes are told apart from those of another such run
MARK = f"nsattack{os.getpid()}"  # in all names that are made up, so that they are found wherever they come to be
SECRET = f"qz{os.urandom(8).hex()}"
OPEN = f"/opt/{MARK}"  # anybody may write there, and the site does not give it to jobs
SMALL = {"cpus": 0.5, "mem": "64Mi"}

BEATS = """
import os, time
home, beats = os.environ["HOME"], 0
with open(home + "/secret", "w") as f:
    f.write(os.environ["SECRET"])
while True:
    beats += 1
    with open(home + "/beat.new", "w") as f:
        f.write(str(beats))
    os.rename(home + "/beat.new", home + "/beat")
    time.sleep(0.02)
"""

# Lines that begin with "bad:" are what no job may ever find.
ATTACK = """
import json, os, socket, stat, sys
mark, needle, places, read_only = json.loads(sys.argv[1])
needle, me = needle[::-1].encode(), os.getuid()
def attempt(call, *args, **more):
    try:
        return call(*args, **more)
    except (OSError, ValueError):
        return None
def write(path, flags=0):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | flags, 0o644)
    os.write(fd, mark.encode())
    os.close(fd)
def listen(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
def look(path, st):
    if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        if not path.startswith(("/dev/", "/proc/")) and attempt(os.open, path, os.O_RDONLY | os.O_NONBLOCK) is not None:
            print("bad: a device that works:", path)
    if stat.S_ISREG(st.st_mode) and st.st_size < 1 << 20:
        fd = attempt(os.open, path, os.O_RDONLY | os.O_NONBLOCK)
        if fd is not None and needle in (attempt(os.read, fd, 65536) or b""):
            print("bad: what is another's:", path)
        fd is None or os.close(fd)
def change(path):
    attempt(write, path)
    attempt(os.truncate, path, 0)
    attempt(os.chmod, path, 0o777)
    attempt(os.chown, path, me, -1)
    attempt(os.utime, path, (1, 1))
    attempt(os.setxattr, path, "user." + mark, b"x")
def harm(place):
    st = attempt(os.stat, place)
    if not st:
        return
    look(place, st)
    own = st.st_uid == me
    if not own:
        change(place)
    if not stat.S_ISDIR(st.st_mode):
        return
    for name in (attempt(os.listdir, place) or [])[:24]:
        path = place + "/" + name
        inner = attempt(os.lstat, path)
        if not inner:
            continue
        look(path, inner)
        if inner.st_uid != me and not stat.S_ISLNK(inner.st_mode):
            change(path)
            attempt(os.link, path, place + "/" + mark + "-linked")
            attempt(os.rename, path, place + "/" + mark + "-moved")
            attempt(os.unlink, path)
            attempt(os.rmdir, path)
    new = place + "/" + mark + "-new-"
    attempt(write, new + "file", os.O_CREAT)
    attempt(os.mkdir, new + "dir")
    attempt(os.symlink, "/", new + "link")
    attempt(os.mkfifo, new + "fifo")
    attempt(listen, new + "sock")
    attempt(os.mknod, new + "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    if attempt(os.lstat, new + "null"):
        print("bad: a device was made:", new)
    for kind in ("file", "link", "fifo", "sock", "null") if own else ():
        attempt(os.unlink, new + kind)
    own and attempt(os.rmdir, new + "dir")
with open("/proc/self/status") as f:
    status = dict(line.rstrip().split(":", 1) for line in f)
if int(status["CapEff"], 16) or int(status["CapPrm"], 16) or status["NoNewPrivs"].strip() != "1" or me < 1000:
    print("bad: rights:", me, status["CapEff"], status["NoNewPrivs"])
with open("/proc/self/mountinfo") as f:
    for line in f:
        at, options = line.split()[4:6]
        own = at == "/" or any(at == lead or at.startswith(lead + "/") for lead in ("/proc", "/sys", "/dev", "/.nightshift"))
        if not own and not {"nosuid", "nodev"} <= set(options.split(",")):
            print("bad: a mount:", line.strip())
for place in read_only:
    if not os.statvfs(place).f_flag & os.ST_RDONLY:
        print("bad: not read-only:", place)
for place in [*places, os.getcwd()]:
    harm(place)
print("done")
"""

SHELL_ATTACK = """
for place in "$@" .; do
    echo x >>"$place"
    for path in "$place"/*; do
        [ -f "$path" ] && cat "$path"
        [ -O "$path" ] || { chmod 777 "$path"; ln "$path" "$place/MARK-linked"; mv -f "$path" "$place/MARK-moved"; rm -f "$path"; }
    done
    for name in MARK-new-file; do echo x >"$place/$name"; done
    mkdir "$place/MARK-new-dir"; ln -s / "$place/MARK-new-link"; mknod "$place/MARK-new-null" c 1 3
    [ -O "$place" ] && rm -rf "$place/MARK-new-file" "$place/MARK-new-dir" "$place/MARK-new-link"
done 2>/dev/null </dev/null
echo done
"""

# Exchanges each pair of names again and again, and leaves time to others; ends with who started it.
SWAPPER = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
libc.prctl(1, signal.SIGKILL)
pairs = [(a.encode(), b.encode()) for a, b in zip(sys.argv[2::2], sys.argv[3::2])]
while os.getppid() == int(sys.argv[1]):
    for a, b in pairs:
        libc.renameat2(-100, a, -100, b, 2)
    time.sleep(0.001)
"""


# ---- the world ----

class World:
    """A cluster, what people have planted there, and where their names lead to."""

    def __init__(self, weak=None):
        self.c = cl.Cluster(["--uid-base", str(UID_BASE), "--pids-max", "64", "--log-limit", "1Mi"],
                            size=("--simulate-gpus", "1", "--cpus", "8"), weak=weak, name="attack" if weak is None else "weak")
        self.c.bring_plain_init()
        c, self.random, self.swappers = self.c, random.Random(SEED if weak is None else seeds.FIXED), []
        self.answers, self.ends, self.bad = collections.Counter(), collections.Counter(), []
        self.given, self.uid = f"{c.folder}/given", {}
        os.chown(c.work, 0, 0)
        os.chmod(c.work, 0o1777)
        self.make_given()
        with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
            f.write("tenants:\n  red: { members: [uid-72001] }\n  blue: { members: [uid-72002] }\n"
                    "  green: { members: [uid-72003, uid-72004] }\n")
        # More than a site would give, so that there is something to bite on.
        c.options += ["--volumes-allow", f"{c.folder},/proc,/etc"]
        self.images = self.make_images() if weak is None else []

    def make_given(self):
        """Folders of root's, allowed on purpose."""
        for folder, mode in (("", 0o755), ("/sub", 0o755), ("/sub/deep", 0o755), ("/closed", 0o700)):
            os.mkdir(self.given + folder)
            for name in ("file", "tool"):
                with open(f"{self.given}{folder}/{name}", "w", encoding="utf-8") as f:
                    f.write(f"{name} of root's" + (SECRET if folder == "/closed" else ""))
            os.chmod(self.given + folder, mode)
            os.chmod(f"{self.given}{folder}/tool", 0o755)
        os.symlink("sub", f"{self.given}/link")

    def make_images(self):
        """Small ones, with folders that are links where the second must be refused."""
        if not shutil.which("umoci") or not shutil.which("skopeo"):
            return []
        made = []
        for name, links in (("good", {"data": f"/mnt/{MARK}", "srv": "/proc/self", "home": "/etc", "up": "../../../../etc"}),
                            ("bad", {"tmp": "/etc", "etc": "/.nightshift"})):
            root, image = f"{self.c.folder}/image-{name}", f"{self.c.folder}/oci-{name}:v1"
            for program in ("sh", "cat", "mkdir", "ln", "mv", "rm", "chmod", "mknod"):
                copy_program(root, f"/bin/{program}")
            for link, to in links.items():
                os.symlink(to, f"{root}/{link}")
            for command in (["init", "--layout", image[:-3]], ["new", "--image", image], ["insert", "--image", image, root, "/"]):
                subprocess.run(["umoci", *command], check=True, capture_output=True)
            subprocess.run(["chmod", "-R", "a+rX", image[:-3]], check=True)
            made.append(f"oci:{image}")
        return made

    def start(self):
        c = self.c
        c.start()
        c.wait_ready()
        for user in (*USERS, BYSTANDER):
            c.wait_end(c.submit(["true"], uid=user, resources=SMALL))
            self.uid[user] = os.stat(self.home(user)).st_uid
        with acting_as(self.uid[BYSTANDER]):
            os.mkdir(self.home(BYSTANDER) + "/open")
            for path in ("/secret", "/open/secret"):
                with open(self.home(BYSTANDER) + path, "w", encoding="utf-8") as f:
                    f.write(SECRET)
        self.victim = c.submit(["/usr/bin/python3", "-c", BEATS], uid=VICTIM, resources=SMALL, env={"SECRET": SECRET})
        c.wait_state(self.victim, "running")
        wait_for("the victim to be at work", lambda: os.path.exists(self.home(VICTIM) + "/beat"))
        for user in USERS:
            self.plant(user)
            self.swappers.append(self.swapper(user))
        self.pids = c.daemon.pid, c.keeper_pid()
        self.watch = Watch(self)

    def close(self):
        for p in self.swappers:
            p.kill()
            p.wait()
        self.c.close()

    def home(self, user):
        return f"{self.c.state}/homes/uid-{user}"

    def other(self, user):
        return next(u for u in USERS if u != user)

    def plant(self, user):
        """Folders, files, and links to all that is not theirs."""
        home, uid = self.home(user), self.uid[user]
        links = {**{name: to for name, to in self.foreign(user).items()}, "dangling": f"/no/{MARK}", "loop": "loop2", "loop2": "loop",
                 "rel": "d", "up": "../../../..", "inside": f"/mnt/{MARK}", "tool": "/.nightshift/init", "self": "/proc/self/fd"}
        with acting_as(uid):
            for folder in ("d", "d/e", "d/e/f", "closed", "swap", f"{self.c.work}/{user}"):
                os.mkdir(os.path.join(home, folder))
            for name in ("file", "d/file", "d/e/file"):
                with open(f"{home}/{name}", "w", encoding="utf-8") as f:
                    f.write("own")
            os.chmod(f"{home}/d/file", 0o4755)
            os.mkfifo(f"{home}/fifo")
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(f"{home}/sock")
            for name, to in links.items():
                os.symlink(to, f"{home}/l-{name}")
            self.pairs = []
            for at in (f"{home}/swap", f"{self.c.work}/{user}"):
                for n, to in enumerate((self.given, f"/mnt/{MARK}", "/etc", "/", self.c.state, self.home(BYSTANDER) + "/open", "/.nightshift")):
                    os.makedirs(f"{at}/{n}a/x/y")
                    os.symlink(to, f"{at}/{n}b")
                    self.pairs += [f"{at}/{n}a", f"{at}/{n}b"]
                with open(f"{at}/file", "w", encoding="utf-8") as f:
                    f.write("own")
                os.symlink("/etc/passwd", f"{at}/link")
                self.pairs += [f"{at}/file", f"{at}/link"]
                # A folder that goes up and down in the tree while it is walked.
                os.makedirs(f"{at}/deep/er/x")
                os.makedirs(f"{at}/high")
                self.pairs += [f"{at}/deep/er", f"{at}/high"]
        with contextlib.suppress(PermissionError):  # left there by somebody, on a machine where root may make some
            os.mknod(f"{home}/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            os.chown(f"{home}/null", uid, uid)

    def swapper(self, user):
        return subprocess.Popen(["/usr/bin/python3", "-I", "-S", "-c", SWAPPER, str(os.getpid()), *self.pairs], user=self.uid[user],
                                group=self.uid[user], extra_groups=[], stdin=subprocess.DEVNULL)

    def foreign(self, user):
        """What is not a user's own, by the name that links to it."""
        c = self.c
        return {"root": "/", "etc": "/etc", "passwd": "/etc/passwd", "proc": "/proc", "proc1": "/proc/1/root", "sys": "/sys",
                "state": c.state, "db": f"{c.state}/nightshift.db", "homes": f"{c.state}/homes", "tasks": f"{c.state}/tasks",
                "run": c.run, "api": f"{c.run}/api.sock", "all": c.folder, "libexec": c.libexec, "given": self.given,
                "given-sub": f"{self.given}/sub", "given-file": f"{self.given}/file", "given-closed": f"{self.given}/closed",
                "open": OPEN, "work": c.work, "other": self.home(self.other(user)), "other-d": self.home(self.other(user)) + "/d",
                "victim": self.home(VICTIM), "by": self.home(BYSTANDER), "by-open": self.home(BYSTANDER) + "/open",
                "dev": "/dev", "shm": "/dev/shm", "tmp": "/tmp", "usr": "/usr", "home": "/home", "etc-ssl": "/etc/ssl"}


def copy_program(root, path):
    files = [path]
    for line in subprocess.check_output(["ldd", path], text=True).splitlines():
        files += [word for word in line.split() if word.startswith("/")]
    for one in files:
        os.makedirs(root + os.path.dirname(one), exist_ok=True)
        shutil.copy(one, root + one)


# ---- jobs that are made up ----

ODD_NAMES = [f"{MARK}-ü", f"{MARK} ", f" {MARK}", f"{MARK}-日本", f"{MARK}'", f"{MARK}\"$(id)", f"{MARK}\\", f"-{MARK}", f"{MARK}:ro", f"{MARK},x",
             f"{MARK}-\u202e", (MARK + "x" * 255)[:255], (MARK + "x" * 256)[:256], f"...{MARK}", f"{MARK}%2e%2e", f"{MARK}/" * 60]
REFUSED_NAMES = ["..", ".", f"{MARK}\n", f"{MARK}\x7f", f"{MARK}\0", f"../{MARK}", "\ud800", MARK + "x" * 5000]


class Generator:
    """Names are drawn from lists of one order, so that a seed says the same in every run."""

    def __init__(self, world, user):
        self.w, self.r, self.user, self.home = world, world.random, user, world.home(user)
        self.foreign, self.tame = world.foreign(user), False
        self.swaps = [f"{at}/{n}{ab}" for at in (f"{self.home}/swap", f"{world.c.work}/{user}", f"{world.c.work}/{world.other(user)}")
                      for n in range(7) for ab in "ab"]

    def name(self):
        r = self.r
        if r.random() < 0.02:
            return r.choice(REFUSED_NAMES)
        return r.choice(ODD_NAMES) if r.random() < 0.1 else f"{MARK}-{r.randrange(6)}"

    def source(self):
        r = self.r
        if self.tame:
            return r.choice([self.home, f"{self.home}/d", f"{self.home}/d/e", f"{self.home}/file", f"{self.home}/l-rel", self.w.c.work,
                             self.w.given, f"{self.w.given}/sub", f"{self.w.given}/file", f"{self.w.given}/link", "/etc", r.choice(self.swaps)])
        kind = r.choices(("own", "link", "swap", "odd", "foreign", "given"), (40, 10, 20, 5, 5, 20))[0]
        if kind == "own":
            path = r.choice([self.home, f"{self.home}/d", f"{self.home}/d/e", f"{self.home}/file", f"{self.home}/d/file"])
        elif kind == "link":
            names = [*self.foreign, "dangling", "loop", "rel", "up", "inside", "tool", "self"]
            path = f"{self.home}/l-{r.choice(names)}" + r.choice(["", "", "", "/sub", "/d", f"/{self.name()}"])
        elif kind == "swap":
            path = r.choice(self.swaps) + r.choice(["", "", "/x", "/x/y", "/sub"])
        elif kind == "odd":
            path = f"{self.home}/" + r.choice(["fifo", "sock", "null", "missing", self.name(), "swap/file", "swap/link", "swap/deep/er/x"])
        elif kind == "foreign":
            path = r.choice(list(self.foreign.values()))
        else:
            path = r.choice([self.w.given, self.w.given, f"{self.w.given}/sub", f"{self.w.given}/file", self.w.c.work, "/etc"])
        return self.bent(path)

    def bent(self, path):
        r = self.r
        if self.tame or r.random() < 0.93:
            return path
        return r.choice([path + "/", path.replace("/", "//"), "/" + path, path + "//", path + "/.", path + "/..", path[1:]])

    def place(self, places):
        r = self.r
        kind = r.choices(("new", "below", "above", "home", "system", "ours", "same"),
                         (60, 25, 0, 15, 0, 0, 0) if self.tame else (40, 32, 4, 14, 7, 2, 1))[0]
        if kind in ("below", "above", "same") and places:
            of = r.choice(places)
            if kind == "below":
                inner = r.choice(["sub", "sub/deep", "file", "tool", "d", "d/e", "swap/0a/x", "swap/1b", "swap/deep/er", "l-etc", "l-inside",
                                  "l-rel", "link", "0a/x", "er", "passwd", "x", "x/y", self.name(), self.name(), self.name()])
                return self.bent(f"{of}/{inner}" + r.choice(["", "", f"/{self.name()}"]))
            return os.path.dirname(of.rstrip("/")) or "/" if kind == "above" else of
        if kind == "home":
            swap = r.choice(self.swaps[:14])
            return self.bent(r.choice([self.home, f"{self.home}/d", f"{self.home}/{self.name()}", f"{swap}/x", f"{swap}/{self.name()}",
                                       f"{self.home}/l-etc/{self.name()}", f"{self.home}/l-inside", f"{self.home}/l-given/sub"]))
        if kind == "system":
            return self.bent(r.choice(["/etc", f"/etc/{self.name()}", "/etc/passwd", "/etc/ssl", "/usr", "/usr/lib", f"/usr/local/{self.name()}",
                                       "/bin", "/lib", "/tmp", f"/tmp/{self.name()}", f"/var/tmp/{self.name()}", "/run", f"/run/{self.name()}",
                                       f"/var/{self.name()}", "/var", f"/srv/{self.name()}", "/data", f"/up/{self.name()}", "/home"]))
        if kind == "ours":
            return self.bent(r.choice(["/", "/proc", "/proc/self", "/sys", "/sys/fs/cgroup", "/dev", "/dev/shm", f"/dev/{self.name()}",
                                       "/dev/shm/x", "/.nightshift", "/.nightshift/init", f"/.nightshift/{self.name()}", "/.nightshift2"]))
        return self.bent(f"/mnt/{self.name()}" if r.random() < 0.7 else f"/mnt/{MARK}")

    def volumes(self):
        r, volumes, places, how = self.r, [], [], self.r.random()
        if how < 0.35:  # something of root's or one's own with a place inside that is not there
            places = [f"/mnt/{MARK}"]
            volumes = [(r.choice([self.w.given, self.w.given, "/etc", self.home, self.w.c.work, f"{self.w.given}/sub"]), places[0]),
                       (r.choice([f"{self.home}/file", self.home, f"{self.home}/d"]), f"/mnt/{MARK}/{self.name()}")]
        elif how < 0.55:  # a look at what is another's
            name = r.choice([*["by-open"] * 8, *["open"] * 4, *self.foreign])
            places = [f"/mnt/{MARK}-{r.randrange(6)}"]
            volumes = [(r.choice([self.foreign[name], f"{self.home}/l-{name}"]), places[0])]
        self.tame = r.random() < 0.6  # what a person might ask for, so that more of them run
        for _ in range(r.choice([0, 0, 0, 1, 1, 2]) if volumes else r.choice([0, 1, 1, 2, 3, 5, 8])):
            places.append(self.place(places))
            volumes.append((self.source(), places[-1]))
        r.shuffle(volumes)
        return [{"from": a, "to": b, "ro": r.random() < 0.25} if r.random() < 0.8 else f"{a}:{b}" + r.choice(["", ":ro"])
                for a, b in volumes[:8]]

    def spec(self):
        r, volumes = self.r, self.volumes()
        read = [(v["from"], v["to"], v["ro"]) if isinstance(v, dict) else (*v.split(":")[:2], v.endswith(":ro")) for v in volumes]
        places = [to for _, to, _ in read]
        spec = {"volumes": volumes, "resources": {**SMALL, "scratch": r.choice(["16Mi", "16Mi", "16Mi", "1Mi", "100Mi"])}}
        for key, chance in (("workdir", 0.1 if self.tame else 0.3), ("cwd", 0.15)):
            if r.random() < chance:
                spec[key] = r.choice([self.place(places), self.source(), *places, *places])
        for key, chance, values in (("name", 0.3, ODD_NAMES if self.tame else [*ODD_NAMES, *REFUSED_NAMES]), ("kind", 0.2, ["notebook", "shell"]), ("tty", 0.15, [True]),
                                    ("stdin", 0.1, [True]), ("network", 0.5, ["none"]), ("replicas", 0.04, [2]),
                                    ("env", 0.2, [{"HOME": "/etc"}, {"TMPDIR": self.w.given}, {"A": "\n"}, {"PATH": ""}, {"LD_PRELOAD": "/etc/passwd"},
                                                  {"LD_LIBRARY_PATH": self.home}, {"X" * 200: "ü" * 2000}, {"NIGHTSHIFT_JOB_ID": "1"}])):
            if r.random() < chance:
                spec[key] = r.choice(values)
        image = r.choice(self.w.images) if self.w.images and r.random() < 0.12 else None
        if image:
            spec["image"] = image
        elif r.random() < 0.02:
            spec["image"] = r.choice([f"oci:{self.w.c.state}:v1", "oci:/etc:v1", f"docker-archive:{self.w.c.state}/nightshift.db", "oci:../x"])
        # Two at one place, or one below another, and it is not known which is seen.
        plain = [os.path.normpath(p) for p in places]
        held = [to for (_, to, ro), at in zip(read, plain)
                if ro and at.startswith("/mnt/") and not any(o == at or at.startswith(o + "/") for o in plain if o is not at) and plain.count(at) == 1]
        if image:
            spec["command"] = ["/bin/sh", "-c", SHELL_ATTACK.replace("MARK", MARK), "sh", *[clean(p) for p in places]]
        else:
            spec["command"] = ["/usr/bin/python3", "-I", "-S", "-c", ATTACK, clean(json.dumps([MARK, SECRET[::-1], places, held]))]
        return spec


def clean(text):
    """Odd bytes are for volumes; a command with them would be refused for those."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


# ---- the watcher ----

def details(path, whole=True):
    """All of a name that a change would show in; without contents and times where things go on."""
    st = os.lstat(path)
    kind = [st.st_mode, st.st_uid, st.st_gid, st.st_rdev]
    if not whole:
        return tuple(kind)
    what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else ""
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            what = hashlib.sha1(f.read()).hexdigest()
    attributes = () if stat.S_ISLNK(st.st_mode) else tuple(os.listxattr(path))
    return (*kind, st.st_ino, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns, what, attributes)


def tree(root, leave_out=()):
    """{path: details} of it and all below."""
    found = {root: details(root)}
    for at, folders, files in os.walk(root):
        for name in folders + files:
            path = f"{at}/{name}"
            if path not in leave_out:
                found[path] = details(path)
    return found


def top(root):
    return {f"{root}/{name}": details(f"{root}/{name}", whole=False) for name in os.listdir(root)}


def walk(root):
    """All below, also of what goes meanwhile."""
    for at, folders, files in os.walk(root):
        for name in folders + files:
            try:
                yield f"{at}/{name}", os.lstat(f"{at}/{name}")
            except FileNotFoundError:
                continue


def different(was, now):
    return [f"{key}: {was.get(key)} -> {now.get(key)}" for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key)]


class Watch:
    def __init__(self, world):
        self.w = world
        self.frozen_was, self.live_was = self.frozen(), self.live()
        self.victim_was = self.victim_home()

    def frozen(self):
        """What nothing at all touches."""
        c, found = self.w.c, {}
        for root in (self.w.given, OPEN, self.w.home(BYSTANDER), "/etc", c.libexec):
            found |= tree(root)
        for root in ("/", "/usr", c.state, c.folder):
            found |= top(root)
        found |= {p: (*d, os.lstat(p).st_ino) for p, d in top(c.run).items()}
        return {p: d for p, d in found.items() if not re.match(rf"{c.state}/(nightshift\.db|weak)|{c.folder}/weak", p)}

    def live(self):
        """What comes and goes with jobs, and is as before once all have ended."""
        c = self.w.c
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
            places = {line.split(" ")[4] for line in f if f" {c.folder}/" not in line}
        # Others on this machine, tests too, mount and unmount in folders of theirs meanwhile.
        outside = sorted(p for p in places if not p.startswith(("/tmp/", "/run/", "/var/", "/dev/shm/")))
        return {"mounts": sorted(c.mounts()), "other mounts": outside, "cgroups": c.cgroups(), "tasks": c.task_files(),
                "bridges": sorted(n for n in os.listdir("/sys/class/net") if n.startswith(c.bridge) and os.path.isdir(f"/sys/class/net/{n}/brif")),
                "cables": c.surplus(), "table": self.table(), "processes": self.processes()}

    def table(self):
        said = subprocess.run(["nft", "list", "table", "inet", self.w.c.bridge], check=False, capture_output=True, text=True).stdout
        return sorted(re.sub(r"packets \d+ bytes \d+", "", said).split("\n"))

    def processes(self):
        uids = {self.w.uid[user] for user in USERS}
        own = {p.pid for p in self.w.swappers}
        found = []
        for pid in cl.all_pids():
            uid = re.search(rb"^Uid:\t(\d+)", cl.proc_file(pid, "status"), re.M)
            if uid and int(uid[1]) in uids and pid not in own and cl.process_birth(pid):
                found.append((pid, cl.proc_file(pid, "cmdline")[:80]))
        return found

    def victim_home(self):
        home = self.w.home(VICTIM)
        return {p: details(p) for p in (home + "/secret",)} | {"names": sorted(set(os.listdir(home)) - {"beat.new"})}

    def strangers(self):
        """Names of ours, or of their owners, where neither belongs; and what is another's in a home."""
        w, c, found = self.w, self.w.c, []
        uids = {w.uid[user] for user in USERS}
        for user in USERS:
            found += [f"{path} of {st.st_uid} in the home of {w.uid[user]}" for path, st in walk(w.home(user)) if st.st_uid != w.uid[user]]
        places = [f"{root}/{name}" for root in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/mnt", "/srv", "/home", "/var", "/usr/local", "/usr/lib")
                  for name in cl.folder_names(root)]
        places += [path for root in (f"{c.state}/tasks", f"{c.state}/images", c.run) for path, _ in walk(root)]
        for path in places:
            with contextlib.suppress(FileNotFoundError):
                if MARK in path or os.lstat(path).st_uid in uids:
                    found.append(f"{path} of {os.lstat(path).st_uid}")
        for path, st in walk(c.work):
            if st.st_uid not in uids:
                found.append(f"{path} of {st.st_uid} where both may write")
        return found

    def changes(self):
        """Everything that is not as it was, once all of their jobs have ended."""
        w = self.w
        for p in w.swappers:
            p.send_signal(signal.SIGSTOP)
            os.waitpid(p.pid, os.WUNTRACED)
        found = different(self.frozen_was, self.frozen()) + different(self.victim_was, self.victim_home()) + self.strangers()
        try:
            wait_for("", lambda: self.live() == self.live_was, patience_s=30 if found else cl.PATIENCE_S)
        except AssertionError:
            found += different(self.live_was, self.live())
        if (w.c.daemon.pid, w.c.keeper_pid()) != w.pids or w.c.daemon.poll() is not None:
            found.append(f"daemon and keeper were {w.pids}, are {w.c.daemon.pid}, {w.c.keeper_pid()}")
        for p in w.swappers:
            p.send_signal(signal.SIGCONT)
        return found


# ---- running ----

def plain(message):
    """How a job ended, without its names."""
    return re.sub(r"'[^']*'|\b\d+\b", "…", re.sub(r"'/.*'", "…", message.replace("\n", " ")))[:90]


def judge(w, number, user, spec):
    job = w.c.wait_end(number)
    w.ends[f"{job['end']}: {plain(job['message'])}" if job["end"] == "start_failed" else job["end"]] += 1
    if job["end"] == "start_failed":
        if not job["message"]:
            w.bad.append(f"job {number} failed without a word")
        return
    text = w.c.text_of(number)
    w.bad += [f"job {number} of {user}: {line}: {json.dumps(spec['volumes'])}" for line in text.split("\n") if line.startswith("bad:")]
    if SECRET in text:
        w.bad.append(f"job {number} of {user} has the secret: {json.dumps(spec['volumes'])}")


def attack(w, n_jobs, batch=BATCH):
    """What was changed or found; what was answered and how jobs ended is counted in the world."""
    makers = [Generator(w, user) for user in USERS]
    found = []
    for first in range(0, n_jobs, batch):
        sent = []
        for n in range(first, min(first + batch, n_jobs)):
            maker = makers[n % len(makers)]
            spec = maker.spec()
            status, answer = w.c.call("POST", "/v1/jobs", spec, uid=maker.user)
            w.answers[status] += 1
            if status < 300:
                sent.append((answer["id"], maker.user, spec))
            elif status >= 500 or not answer.get("detail"):
                w.bad.append(f"spec {n}: {status} {answer}: {json.dumps(spec)[:400]}")
        for number, user, spec in sent:
            judge(w, number, user, spec)
        found += w.bad + w.watch.changes()
        w.bad = []
        if found:
            return [f"within jobs {sent[0][0]} … {sent[-1][0]}, seed {SEED}:", *found]
    return found


def make_world(weak=None):
    w = World(weak)
    try:
        w.start()
    except BaseException:
        w.close()
        raise
    return w


@case(f"{JOBS} jobs made up at random by two tenants change nothing outside of their own places")
def _(w):
    found = attack(w, JOBS)
    print("# answers: " + ", ".join(f"{status} {n}x" for status, n in sorted(w.answers.items())))
    for end, n in w.ends.most_common(40):
        print(f"# {n:5} {end}")
    assert not found, "\n".join(f[:900] for f in found[:12])
    assert w.answers[201] > JOBS // 2 and w.ends["exited"] > JOBS // 10 and w.ends["exited"] < JOBS * 9 // 10, (w.answers, w.ends)


@case("the victim's job runs on, and everybody's next job does")
def _(w):
    def beats():
        with open(w.home(VICTIM) + "/beat", encoding="utf-8") as f:
            return int(f.read())
    before = beats()
    wait_for("the victim's heart to beat", lambda: beats() > before)
    same(w.c.job(w.victim)["run"], 1)
    for user in (VICTIM, *USERS):
        same(w.c.wait_end(w.c.submit(["true"], uid=user, resources=SMALL))["state"], "succeeded")


@case("the daemon and its keeper had no failure of their own, and took nobody's for one that may pass")
def _(w):
    with open(w.c.log_path, encoding="utf-8", errors="replace") as f:
        bad = [line for line in f if " error " in line or "internal" in line or " task.again " in line]
    assert not bad, "".join(line[:300] + "\n" for line in bad[:10])


# Taken away, and what the watcher or the jobs must say then.
WEAK = [({"places_as_user"}, r"/given/.*: None -> "),
        ({"volumes_allow"}, f"^{OPEN}"),
        ({"binds_as_user", "instance"}, "what is another's"),
        ({"nosuid"}, "bad: a mount"), ({"nodev"}, "bad: a mount")]


@case("without a protection the same jobs are noticed")
def _(_):
    if not os.access(f"{cl.BUILD}/nightshift-keeper-weak", os.X_OK):
        raise Skip("the weak programs are not built")
    for taken, told in WEAK:
        w = make_world(sorted(taken))
        try:
            found = attack(w, WEAK_JOBS, WEAK_BATCH)
        finally:
            w.close()
        assert any(re.search(told, line) for line in found), f"without {taken}: {found[:5]}, ends {w.ends}"
        print(f"# without {' and '.join(sorted(taken))}: noticed after {sum(w.answers.values())} jobs")


WORLDS = []


def prepare():
    """A /etc and an /opt that only this process and its children see: nothing is left on the machine, nor comes from it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/opt"], check=True)
    subprocess.run(["cp", "-a", "/etc", "/opt/etc"], check=True)
    subprocess.run(["mount", "--bind", "/opt/etc", "/etc"], check=True)
    os.mkdir(OPEN)
    os.chmod(OPEN, 0o777)


class Prepared:
    """What Cases asks of a cluster: the world's."""

    def __init__(self):
        prepare()
        self.world = World()
        self.log_path, self.log_tail = self.world.c.log_path, self.world.c.log_tail

    def start(self):
        self.world.start()

    def wait_ready(self):
        self.world.c.wait_ready()

    def close(self):
        self.world.close()


if __name__ == "__main__":
    sys.exit(case.together(make=Prepared, arguments=lambda p: (p.world,)))
