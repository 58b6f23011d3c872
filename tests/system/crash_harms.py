"""crash_harms - what crash.py does to a cluster besides killing it: the agent, processes that stand still, clocks, a
state folder that nobody may write to, bits that fall over, and descriptors that run out.

Each harm is a function of the crash and its round.  It undoes what it did, and returns whether the harm was really
there, as seen from outside; the checks of what must hold meanwhile are its own, those of the record are crash.py's.
"""
import contextlib
import os
import random
import resource
import signal
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import cluster as cl
from agent_cases import Machine, freezer

MINUTE_MS, HOUR_MS, DAY_MS = 60000, 3600000, 86400000
STEPS_MS = (5 * MINUTE_MS, 3 * HOUR_MS, 20 * HOUR_MS, 400 * DAY_MS)
FEW_FILES = (8, 16, 40, 64, 256, 300)
STORE_FILES = ("nightshift.db", "nightshift.db-wal")


def dice_of(r):
    """More of what was drawn for a round."""
    return random.Random(r.dice)


def answers(c):
    """(status, problem) of readiness, or None while nobody answers."""
    with contextlib.suppress(cl.Away):
        return c.call("GET", "/readyz", timeout=cl.PATIENCE_S)
    return None


# ---- processes that stand still ----

def stands_still(pid):
    return cl.proc_file(pid, "stat").rpartition(b")")[2].split()[:1] == [b"T"]


@contextlib.contextmanager
def stopped(pid):
    """SIGSTOP, and SIGCONT whatever happens meanwhile.  Whoever kills it meanwhile may."""
    birth = cl.process_birth(pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        cl.wait_for("it to stand still", lambda: stands_still(pid) or cl.process_birth(pid) is None)
        yield stands_still(pid)
    finally:
        if cl.process_birth(pid) == birth:
            os.kill(pid, signal.SIGCONT)


def stop_keeper(crash, r):
    pid = cl.wait_for("a keeper", crash.cluster.keeper_pid)
    with stopped(pid) as still:
        time.sleep(0.3 + 2 * r.wait)
        if r.dice < 0.25:
            crash.restart_daemon(r.down)  # finds the socket of one that does not answer
        elif r.dice < 0.5:
            cl.kill(pid)
    return still


def stop_daemon(crash, r):
    keeper = cl.wait_for("a keeper", crash.cluster.keeper_pid)  # nobody starts one meanwhile
    with stopped(crash.cluster.daemon.pid) as still:
        time.sleep(0.3 + 2 * r.wait)
        if r.dice < 0.3:
            cl.kill(keeper)
        elif r.dice < 0.5:
            crash.cluster.kill_daemon()
    if crash.cluster.daemon.poll() is not None:
        crash.cluster.start()
    return still


# ---- the agent ----

class Agent(Machine):
    """Beside the daemon all the time; whatever ends it, the next one is started, as systemd does."""

    def start(self):
        agent = self.start_agent("--simulate-gpus", "4")
        cl.wait_for("the agent to answer", self.answers)
        return agent

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(self.control)
            return True
        return False

    @property
    def pid(self):
        return self.agents[-1].pid

    def kill(self):
        agent = self.agents.pop()
        agent.kill()
        agent.wait()

    def commands(self):
        return self.c.ask("GET", f"/v1/nodes/{self.node}/commands")["commands"]

    def try_command(self, what, task):
        """Its number, or None: a machine that has not been heard of for a while gets none."""
        status, sent = self.c.call("POST", f"/v1/nodes/{self.node}/commands", {"what": what, "task": task})
        assert status in (202, 409), f"{what} {task}: {status} {sent}"
        return sent["id"] if status != 409 else None

    def outcome(self, number):
        """Once it has one: (state, what was said of it)."""
        def look():
            found = [x for x in self.commands() if x["id"] == number]
            assert found, f"command {number} was taken and is gone"
            return found[0] if found[0]["state"] != "sent" else None
        answer = cl.wait_for(f"an answer to command {number}", look)
        return answer["state"], answer["text"]


class Operator(threading.Thread):
    """Lets the machine work again that was drained, as documented, for its full disk."""

    def __init__(self, crash):
        super().__init__(daemon=True)
        self.crash, self.over = crash, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.3):
            with contextlib.suppress(cl.Away, AssertionError):  # whoever does not answer now is asked again
                node = self.crash.agent.state()
                if node["state"] == "drain":
                    self.crash.cluster.ask("POST", f"/v1/nodes/{node['name']}/resume", {})

    def stop(self):
        self.over.set()
        self.join()


def kill_agent(crash, r):
    """What the owner was answered counts, also when the agent is killed in that moment."""
    c, agent, reason = crash.cluster, crash.agent, f"round {r.number}"
    said = agent.say("hold", "--reason", reason)
    crash.expect("held by root" in said, f"{r}: hold said {said!r}")
    agent.kill()
    if r.dice < 0.4:
        crash.restart_daemon(r.down)
    if r.dice > 0.7:
        c.kill_keeper()
    time.sleep(r.down)
    agent.start()
    said = agent.say("show")
    crash.expect(reason in said, f"{r}: the owner's hold is forgotten by the agent: {said!r}")
    c.wait_ready()
    cl.wait_for("the hold to be told", lambda: (agent.state()["held"] or {}).get("reason") == reason)
    crash.expect(agent.state()["pool"] == "owner-held", f"{r}: it is held and lent: {agent.state()}")
    agent.say("release")
    agent.kill()
    agent.start()
    cl.wait_for("the release to be told", lambda: not agent.state()["held"])
    return True


def stop_agent(crash, r):
    """A command that was taken is carried out, once the agent can; what it paused it knows, whatever ends it."""
    c, agent = crash.cluster, crash.agent
    job = next(j for j in r.jobs if j.kind == "stays")
    cl.wait_for("its submit", lambda: job.ids)
    task = f"{job.ids[0]}.{c.wait_state(job.ids[0], 'running')['run']}.0"
    cl.wait_for("its processes", lambda: c.job_pids(job.ids[0]))

    def sent_to_one_that_stands():
        cl.wait_for("the machine's reports", lambda: agent.state()["reports"])
        with stopped(agent.pid) as still:
            number = agent.try_command("pause", task)
            if number is None or not still:
                return None
            if r.dice < 0.5:
                crash.restart_daemon(r.down)
                c.wait_ready()
            if r.dice < 0.25 or r.dice > 0.75:
                agent.kill()
        return number
    number = cl.wait_for("a command to be taken", sent_to_one_that_stands)
    if not agent.agents:
        agent.start()
    paused = agent.outcome(number)
    crash.expect(paused == ("done", "pause: done"), f"{r}: pause of {task}: {paused}")
    cl.wait_for("it to stand still", lambda: freezer(agent, task))
    agent.kill()
    agent.start()
    crash.expect(freezer(agent, task), f"{r}: {task} goes on, and nobody said so")
    resumed = agent.outcome(cl.wait_for("a command to be taken", lambda: agent.try_command("resume", task)))
    crash.expect(resumed == ("done", "resume: done"), f"{r}: resume of {task}: {resumed}")
    cl.wait_for("it to go on", lambda: not freezer(agent, task))
    os.unlink(f"{c.work}/stay.{job.key}")
    return True


# ---- the clock ----

class Wall:
    """The clock of the machine as daemon, keeper and agent see it: NIGHTSHIFT_TEST_WALL, a step and no time."""

    def __init__(self, cluster):
        self.cluster, self.path, self.ahead_ms = cluster, f"{cluster.folder}/wall", 0
        cluster.env["NIGHTSHIFT_TEST_WALL"] = self.path
        self.turn(0)

    def turn(self, by_ms):
        """So far from where it was when it was last kept()."""
        with open(f"{self.path}.new", "w", encoding="utf-8") as f:
            f.write(str(self.ahead_ms + by_ms))
        os.rename(f"{self.path}.new", self.path)

    def kept(self, by_ms):
        self.ahead_ms += by_ms

    def figure(self, name):
        text = self.cluster.ask("GET", "/metrics")
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"nightshift_{name} "))

    def differs_by(self, by_ms):
        """As the daemon sees it; what time passes between two looks at two clocks aside."""
        return abs(self.figure("clock_ahead_seconds") * 1000 - by_ms) < MINUTE_MS and self.figure("removing_held") == 1

    def agrees(self):
        return self.figure("removing_held") == 0


def clock_step(crash, r):
    """Documented: time goes on as before, nothing goes for its age, until the clock is back or the step confirmed."""
    c, wall, dice = crash.cluster, crash.wall, dice_of(r)
    by_ms = dice.choice(STEPS_MS) * dice.choice((-1, 1))
    # What is 400 days old may go once that is confirmed: then nothing would be here to look at.
    confirmed = by_ms < DAY_MS and dice.random() < 0.5
    wall.turn(by_ms)
    cl.wait_for("the step to be seen", lambda: wall.differs_by(by_ms))
    time.sleep(0.2 + r.wait)
    if dice.random() < 0.4:
        crash.restart_daemon(r.down)
    if dice.random() < 0.4:
        c.kill_keeper()
    c.wait_ready()
    crash.expect(wall.differs_by(by_ms), f"{r}: a restart believed a clock that jumped by {by_ms} ms")
    agent_is_heard(crash, r)
    told = next(x for x in c.ask("GET", "/v1/doctor")["checks"] if x["name"] == "jump")
    crash.expect(not told["ok"] and "--confirm-clock" in (told["fix"] or ""), f"{r}: doctor says {told}")
    if confirmed:
        done = subprocess.run([f"{cl.BUILD}/nightshift", "doctor", "--confirm-clock"], capture_output=True, text=True,
                              check=False, env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"})
        crash.expect("clock" in done.stdout, f"{r}: --confirm-clock said {done}")
        wall.kept(by_ms)
        cl.wait_for("the step to be taken", wall.agrees)
        if dice.random() < 0.7:
            crash.restart_daemon(r.down)
            c.wait_ready()
            crash.expect(wall.agrees(), f"{r}: a step of {by_ms} ms was confirmed, and a restart forgot it")
    else:
        wall.turn(0)
        cl.wait_for("the clock to be right again", wall.agrees)
    agent_is_heard(crash, r)
    return True


def agent_is_heard(crash, r):
    """The owner's word comes through, whatever time it is."""
    agent = crash.agent
    cl.wait_for("the machine's reports", lambda: agent.state()["reports"])
    agent.say("hold", "--reason", f"clock of round {r.number}")
    cl.wait_for("the hold to be told", lambda: agent.state()["held"])
    agent.say("release")
    cl.wait_for("the release to be told", lambda: not agent.state()["held"])


# ---- a state folder that nobody may write to ----

@contextlib.contextmanager
def read_only(c):
    """Whatever is opened from now on cannot be written to.  A kernel takes no right away from what is open: it refuses
    to remount a file system while somebody writes.  So the folder is mounted over itself, mounts below included."""
    def mount(*words):
        return subprocess.run(["mount", *words, c.state], check=False, stderr=subprocess.DEVNULL).returncode == 0

    def take_away():
        assert mount("--make-private")  # what the keeper mounted meanwhile stays where it is
        subprocess.run(["umount", "-l", c.state], check=True)

    def put_over():
        assert mount("--rbind", c.state)
        done = mount("-o", "remount,bind,ro")
        if not done:  # somebody has opened something there already
            take_away()
        return done
    cl.wait_for("the folder to be read-only", put_over)
    try:
        yield
    finally:
        assert mount("-o", "remount,bind,rw")
        take_away()


def may_write(pid, folder):
    path = f"/proc/{pid}/root{folder}/probe"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os.unlink(path)
        return True
    except OSError:
        return False


def read_only_state(crash, r):
    c = crash.cluster
    keeper = cl.wait_for("a keeper", c.keeper_pid)
    with read_only(c):
        there = not may_write(c.daemon.pid, c.state) and not may_write(keeper, c.state)
        time.sleep(0.4 + r.wait)
        if r.dice < 0.35:
            cl.kill(keeper)
        elif r.dice < 0.7:
            crash.restart_daemon(r.down)
            refused = ends_or_answers(crash)
            if refused is not None:
                crash.expect_refusal(r, refused, r"read-only|Read-only")
        time.sleep(r.wait)
    if c.daemon.poll() is not None:
        c.start()
    return there


def ends_or_answers(crash):
    """What it said when it ended, once it did; None when it answers instead."""
    c = crash.cluster
    cl.wait_for("it to start, or to refuse", lambda: c.daemon.poll() is not None or answers(c))
    return c.log_tail(6) if c.daemon.poll() is not None else None


# ---- bits that fall over ----

def flip(path, bits, dice):
    with open(path, "r+b") as f:
        size = os.fstat(f.fileno()).st_size
        for _ in range(bits if size else 0):
            at, bit = dice.randrange(size), dice.randrange(8)
            f.seek(at)
            was = f.read(1)[0]
            f.seek(at)
            f.write(bytes([was ^ (1 << bit)]))
    return size > 0


class Copy(cl.Cluster):
    """A daemon on a copy of another's store, without a keeper: what it says about it, and nothing more."""

    def __init__(self, of):  # pylint: disable=super-init-not-called
        self.folder = tempfile.mkdtemp(prefix="copy.", dir=of.folder)
        self.state, self.run, self.libexec = f"{self.folder}/s", f"{self.folder}/r", of.libexec
        self.log_path, self.program, self.env, self.daemon = f"{self.folder}/log", of.program, of.env, None
        self.options = [*of.options, "--config", f"{of.folder}/settings.yaml", "--keeper", "external"]
        os.mkdir(self.state)
        for name in STORE_FILES:
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{of.state}/{name}", self.state)
        shutil.copytree(f"{of.state}/jobs", f"{self.state}/jobs")

    def answers(self):
        try:
            return self.call("GET", "/healthz")[0] == 200
        except cl.Away:
            return False

    def verify(self):
        """What `nightshift verify` says about it; empty: all is as it was written."""
        done = subprocess.run([f"{cl.BUILD}/nightshift", "verify", "--state", self.state, "--config", self.options[-3]],
                              capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    def close(self, keep=False):
        if self.daemon and self.daemon.poll() is None:
            self.kill_daemon()
        shutil.rmtree(self.folder, ignore_errors=True)


def recorded(crash, copy):
    """What the copy says of all jobs, or why it cannot be read."""
    try:
        for number in (job["id"] for job in crash.listed(copy)):
            copy.ask("GET", f"/v1/jobs/{number}")
        return crash.ends(copy)
    except (AssertionError, ValueError, cl.Away) as why:
        return str(why)[:300]


def flipped_bits(crash, r, file=STORE_FILES[0]):
    """On a copy: it comes up with all there was, or refuses and says what to do.  What no start is made from (rows of
    jobs that are over) is looked at by `nightshift verify`, as documented: then that has to say so."""
    c, dice = crash.cluster, dice_of(r)
    c.wait_ready()
    before = crash.ends(c)
    if r.dice < 0.5 and file == STORE_FILES[0]:
        c.daemon.terminate()  # its log is in the store then
        c.daemon.wait(cl.PATIENCE_S)
    else:
        c.kill_daemon()
    copy = Copy(c)
    c.start()
    try:
        there = flip(f"{copy.state}/{file}", dice.randint(1, 6), dice)
        copy.start()
        cl.wait_for("it to start, or to refuse", lambda: copy.daemon.poll() is not None or copy.answers())
        if copy.daemon.poll() is not None:
            crash.expect_refusal(r, copy.log_tail(6), r"damaged|not a Nightshift store|newer|malformed|not as it was written", copy)
            crash.flips["refused"] += 1
            return there
        now = recorded(crash, copy)
        copy.kill_daemon()
        good = isinstance(now, dict) and all(now.get(number) == was for number, was in before.items())
        told = "" if good else copy.verify()
        differ = now if isinstance(now, str) else {n: (was, now.get(n)) for n, was in before.items() if now.get(n) != was}
        crash.expect(good or "restore" in told, f"{r}: nobody says that the record is not as it was: {differ}")
        crash.flips["nothing lost" if good else "told by verify alone" if told else "not told"] += 1
        return there
    finally:
        copy.close()


def flipped_log(crash, r):
    """A bit of the write-ahead log.  Not among those of each run: one in the last transaction cannot be told from a crash
    that tore it, and goes with it."""
    return flipped_bits(crash, r, STORE_FILES[1])


# ---- descriptors that run out ----

def descriptors(pid):
    return {int(name) for name in cl.folder_names(f"/proc/{pid}/fd")}


def said_since(c, begin, words):
    with open(c.log_path, "rb") as f:
        f.seek(begin)
        return words in f.read()


@contextlib.contextmanager
def few_files_of(pid, more):
    """So many more than it has now, or, when that is told to what it gives, none; and as many as before, whatever
    happens meanwhile."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def only(few):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
    only(len(descriptors(pid)) + more)
    try:
        yield only
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def few_files_daemon(crash, r):
    """Callers wait or are told to come again; those that run are not touched."""
    c = crash.cluster
    begin, pid, keeper = os.path.getsize(c.log_path), c.daemon.pid, cl.wait_for("a keeper", c.keeper_pid)
    with few_files_of(pid, int(r.dice * 6)), contextlib.ExitStack() as idle:
        def one_more():
            with contextlib.suppress(OSError):  # its queue is full: good enough
                s = idle.enter_context(socket.socket(socket.AF_UNIX))
                s.setblocking(False)
                s.connect(f"{c.run}/api.sock")
            return said_since(c, begin, b"Too many open files") or c.daemon.poll() is not None
        cl.wait_for("the daemon to have no descriptor left", one_more)
        time.sleep(0.3 + r.wait)
        if r.dice < 0.3:
            cl.kill(keeper)  # another may have to wait for a descriptor
            time.sleep(r.wait)
    return c.daemon.poll() is None


def few_files_keeper(crash, r):
    c = crash.cluster
    begin, pid = os.path.getsize(c.log_path), cl.wait_for("a keeper", c.keeper_pid)
    with few_files_of(pid, int(r.dice * 4)) as only:  # a start needs a dozen; tasks that end give back some
        time.sleep(r.wait)
        only(3)
        cl.wait_for("the keeper to have no descriptor left",
                    lambda: said_since(c, begin, b"Too many open files") or cl.process_birth(pid) is None)
        time.sleep(r.wait)
        if r.dice > 0.7:
            crash.restart_daemon(r.down)
            time.sleep(r.wait)
    return said_since(c, begin, b"Too many open files")


def few_files_start(crash, r):
    """Neither comes up far, or they do and cannot do much; what they were given stays theirs."""
    c, few = crash.cluster, dice_of(r).choice(FEW_FILES)
    crash.kill_both(r)
    c.start(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
    there = resource.prlimit(c.daemon.pid, resource.RLIMIT_NOFILE) == (few, few)
    until = time.monotonic() + 1 + r.wait
    while time.monotonic() < until and c.daemon.poll() is None:
        time.sleep(0.01)
    if c.daemon.poll() is not None:
        crash.expect_refusal(r, c.log_tail(6), r"open files are allowed")
    crash.kill_both(r)
    c.start()
    return there


# By name: what is done, and the kind of job that has to be there for it.
HARMS = {
    "kill agent": (kill_agent, None),
    "stop agent": (stop_agent, "stays"),
    "stop keeper": (stop_keeper, None),
    "stop daemon": (stop_daemon, None),
    "clock": (clock_step, None),
    "read-only state": (read_only_state, None),
    "flipped bits": (flipped_bits, None),
    "few files: daemon": (few_files_daemon, None),
    "few files: keeper": (few_files_keeper, "plain"),
    "few files: start": (few_files_start, None),
}
# And those that are only done when they are asked for (--only): what is not held to the last transaction.
NOT_HELD = {"flipped log": (flipped_log, None)}
