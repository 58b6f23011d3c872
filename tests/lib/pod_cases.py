"""The cases of t0205-pod-init: the real nightshift-init as it runs in a pod, plain and as process 1."""
import fcntl
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

from init_cases import Skip, mark, run_case, same, words
from task import (ATTACH, INIT, PATIENCE_S, PID_NAMESPACE, SIGNAL, WATCH, Client, Task, exec_frame, frame, resize_frame,
                  running, wait_for)

NOBODY = 65534
CASES = []
BLOCK = b"".join(b"%06d " % i * 100 + b"\n" for i in range(1430))  # about a megabyte
SPIN = "while :; do sleep 0.01; done"
TERM_FIRST = ("import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); "
              "os.kill(os.getpid(), signal.SIGTERM); os.execv(sys.argv[1], sys.argv[1:])")
NO_PROC = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "-"]


def case(sentence):
    def add(fn):
        CASES.append((sentence, fn))
        return fn
    return add


class Pipes:
    """A bridge's stdin and stdout, as a socket."""

    def __init__(self, argv, **how):
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     bufsize=0, **how)

    def sendall(self, data):
        while data:
            data = data[self.proc.stdin.write(data):]

    def recv(self, size):
        assert select.select([self.proc.stdout], [], [], PATIENCE_S)[0], "waited too long for a bridge"
        return self.proc.stdout.read(size)

    def end(self):
        """No more from us; its exit code and what it said on stderr."""
        self.proc.stdin.close()
        text = self.proc.stderr.read().decode()
        return self.proc.wait(PATIENCE_S), text

    def close(self):
        self.end()
        self.proc.stdout.close()


class Pod(Task):
    """One container: `out` and `err` are what `kubectl logs` would show."""

    def __init__(self, argv, options=(), wrap=(), place=None, init=INIT, **how):
        self.dir = self.log_dir = place or os.path.join(tempfile.mkdtemp(dir="."), "task")
        self.sock = os.path.join(self.dir, "ctl.sock")
        self.init, self.how, self.wrapped, self.code = init, how, bool(wrap), None
        self.out = self.err = b""
        self.proc = subprocess.Popen([*wrap, init, "--pod", self.dir, *options, "--", *argv], stdin=subprocess.DEVNULL,
                                     **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})
        self.pid = self.proc.pid
        Task.alive.append(self)

    def wait(self):
        if self.code is None:
            self.out, self.err = self.proc.communicate(timeout=PATIENCE_S)
            code = self.proc.returncode
            self.code = code if code >= 0 else 128 - code
        return self.code

    def end(self):
        try:
            self.connect(frame(SIGNAL, bytes([signal.SIGKILL]))).close()
        except OSError:
            self.proc.kill()
        self.wait()

    def up(self, text=b"up\n"):
        """Waits until the job has said so, in its log."""
        def said():
            try:
                return text in self.log("stdout")
            except FileNotFoundError:
                return False  # not yet
        wait_for("the job's first word", said)
        return self

    def bridge(self, first, enter=()):
        who = {k: v for k, v in self.how.items() if k in ("user", "group", "extra_groups")}
        return Client(Pipes([*enter, self.init, "--bridge", self.dir], **who), first)


def sh(script, *options, **how):
    return lambda wrap: Pod(["sh", "-c", script], options, wrap, **how)


def need_root(what):
    if os.geteuid() != 0:
        raise Skip(f"{what} needs root")


# --- what it makes ---

@case("output comes out on stdout and stderr, and is in the log")
def _(wrap):
    pod = sh("echo one; echo two >&2; printf three")(wrap)
    same((pod.wait(), pod.out, pod.err), (0, b"one\nthree", b"two\n"))
    same((pod.log("stdout"), pod.log("stderr")), (b"one\nthree", b"two\n"))
    same(words(pod), ["started", "exit"])


@case("exit codes and signals come out as a shell says them, and stand in the status file")
def _(wrap):
    for script, code, line in (("exit 0", 0, ["exit", "0"]), ("exit 3", 3, ["exit", "3"]), ("exit 85", 85, ["exit", "85"]),
                               ("kill -9 $$", 137, ["signal", "9"]), ("kill -TERM $$", 143, ["signal", "15"])):
        pod = sh(script)(wrap)
        same((pod.wait(), pod.status()[-1][:2]), (code, line))
    pod = Pod(["/no/such/program"], (), wrap)
    same((pod.wait(), words(pod)), (127, ["started", "failed", "exit"]))
    same(pod.err, b"nightshift-init: cannot run '/no/such/program': No such file or directory\n")
    same(Pod(["/etc/passwd"], (), wrap).wait(), 126)


@case("the folder and its files are for the owner alone, and locked while the job runs")
def _(wrap):
    pod = sh(f"echo up; {SPIN}")(wrap).up()
    same([stat.S_IMODE(os.stat(f"{pod.dir}/{name}").st_mode) for name in ("", "ctl.sock", "status", "log.0")],
         [0o700, 0o600, 0o600, 0o600])
    assert pod.locked()
    pod.kill()
    same(pod.wait(), 143)
    assert not pod.locked()


@case("what an earlier attempt left is cleared away")
def _(wrap):
    first = sh("echo old; exit 3")(wrap)
    same(first.wait(), 3)
    os.symlink("/nowhere/at/all", f"{first.dir}/other")
    os.remove(f"{first.dir}/log.1")
    os.symlink(os.path.abspath("victim"), f"{first.dir}/log.1")
    pod = sh(f"echo new; {SPIN}", place=first.dir)(wrap).up(b"new\n")
    same((pod.log("stdout"), words(pod)), (b"new\n", ["started"]))
    assert not os.path.exists("victim") and pod.attach().started
    pod.kill()
    same(pod.wait(), 143)


@case("the log is small unless it is asked for more")
def _(wrap):
    for options, low, high in (((), 600000, 1 << 20), (("--log-bytes", "262144"), 90000, 262144)):
        pod = Pod(["seq", "1", "100000"], options, wrap)
        same(pod.wait(), 0)
        assert low < sum(os.path.getsize(f"{pod.dir}/log.{i}") for i in range(4)) <= high
        assert pod.out.endswith(b"\n100000\n") and pod.out.count(b"\n") == 100000


@case("the job has three descriptors, and no signal blocked or ignored")
def _(wrap):
    stray = os.open("/dev/null", os.O_RDONLY)
    pod = sh("ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status", pass_fds=[stray])(wrap)
    same((pod.wait(), pod.out.decode().split()),
         (0, ["0", "1", "2", "3", "SigBlk:", "0000000000000000", "SigIgn:", "0000000000000000"]))
    os.close(stray)


# --- a folder that cannot be used ---

def runs_without(place, wrap, reason):
    pod = sh("echo out; echo err >&2; exit 85", place=place)(wrap)
    same((pod.wait(), pod.out), (85, b"out\n"))
    mine, theirs = pod.err.splitlines()
    assert mine.startswith(b"nightshift-init: nobody will be able to attach to this job: ") and reason in mine, pod.err
    same(theirs, b"err")


@case("without a folder to write to the job runs all the same, and that is said once")
def _(wrap):
    open("file", "w", encoding="ascii").close()
    runs_without("file/task", wrap, b"Not a directory")
    runs_without("/proc/no-such-folder", wrap, b"No such file or directory")
    need_root("mounting")
    for options, reason in (("ro", b"Read-only file system"), ("nr_inodes=4", b"No space left on device")):
        small = tempfile.mkdtemp(dir=".")
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", small], check=True)
        try:
            runs_without(f"{small}/task", wrap, reason)
        finally:
            subprocess.run(["umount", small], check=True)


@case("a folder with a long name works, from both sides")
def _(wrap):
    place = os.path.join(tempfile.mkdtemp(dir="."), "d" * 120, "e" * 120)
    os.makedirs(os.path.dirname(place))
    pod = Pod(["sh", "-c", "pwd; cat"], ["--stdin"], wrap, place=place).up(b"\n")
    client = pod.bridge(frame(ATTACH)).ready()
    client.type(b"far away\n")
    client.see(b"far away\n")
    client.type(b"")
    same(client.read_all().exit, (0, 0))
    same((pod.wait(), pod.out), (0, os.getcwd().encode() + b"\nfar away\n"))
    same(client.sock.end(), (0, ""))


@case("any account will do, also one that may not read the folder it is in")
def _(wrap):
    need_root("another account")
    if wrap:
        raise Skip("said by the plain case")
    base, closed = (tempfile.mkdtemp(dir=".") for _ in "ab")
    os.chmod(base, 0o777)
    program = os.path.abspath(f"{base}/nightshift-init")
    same(subprocess.run([INIT, "--install", program], check=False).returncode, 0)
    place = os.path.abspath(f"{base}/task")
    enter = [sys.executable, "-c", f"import os, sys; os.chdir({closed!r}); os.setgroups([]); os.setgid({NOBODY}); "
             f"os.setuid({NOBODY}); os.execv(sys.argv[1], sys.argv[1:])"]
    pod = Pod(["sh", "-c", "id -u; cat"], ["--stdin"], enter, place=place, init=program).up(b"\n")
    client = Client(Pipes([program, "--bridge", place], user=NOBODY, group=NOBODY), frame(ATTACH)).ready()
    same(os.stat(f"{place}/ctl.sock").st_uid, NOBODY)
    inside = Client(Pipes([program, "--bridge", place], user=NOBODY, group=NOBODY), exec_frame(["id", "-u"], cwd="/"))
    same(inside.read_all().out, b"%d\n" % NOBODY)
    client.type(b"")
    same(client.read_all().exit, (0, 0))
    same((pod.wait(), pod.out), (0, b"%d\n" % NOBODY))


@case("it works without /proc")
def _(wrap):
    need_root("a mount namespace")
    bare = [*(w for w in wrap if w != "--mount-proc"), *NO_PROC]
    if subprocess.run([*bare, INIT, "--version"], check=False, capture_output=True).returncode != 0:
        raise Skip("a sanitizer needs /proc")
    nap = mark()
    pod = sh(f"trap 'echo term; exit 85' TERM; sleep {nap} & echo up; {SPIN}")(bare).up()
    wait_for("its child", lambda: running(nap))
    same(pod.bridge(frame(SIGNAL, b"\x0f")).read_all().error, None)
    same((pod.wait(), pod.out), (85, b"up\nterm\n"))
    same(running(nap), [])


# --- signals ---

@case("the first SIGTERM is the freeze signal, what comes after it is itself")
def _(wrap):
    script = (f"for s in USR1 INT; do trap \"echo $s\" $s; done; trap 'echo TERM; exit 85' TERM; echo up; {SPIN}")
    pod = sh(script, "--freeze-signal", "10")(wrap).up()
    for signo, seen in ((signal.SIGINT, b"INT\n"), (signal.SIGTERM, b"USR1\n"), (signal.SIGUSR1, b"USR1\nUSR1\n"),
                        (signal.SIGTERM, b"TERM\n")):
        pod.kill(signo)
        wait_for(seen, lambda: seen in pod.log("stdout"))
    same((pod.wait(), pod.out), (85, b"up\nINT\nUSR1\nUSR1\nTERM\n"))
    pod = sh(script)(wrap).up()
    pod.kill()
    same((pod.wait(), pod.out), (85, b"up\nTERM\n"))


@case("the freeze signal reaches every process group of the job")
def _(wrap):
    other = f"trap \"echo other; exit\" USR1; echo up; {SPIN}"
    pod = sh(f"trap 'echo main; wait; exit 85' USR1; setsid sh -c '{other}' & echo up; {SPIN}", "--freeze-signal", "10")(wrap)
    pod.up(b"up\nup\n").kill()
    same((pod.wait(), sorted(pod.out.split())), (85, [b"main", b"other", b"up", b"up"]))


@case("a SIGTERM before the start ends it, and the program is not started")
def _(wrap):
    pod = Pod(["touch", "started"], ["--freeze-signal", "10"], [*wrap, sys.executable, "-c", TERM_FIRST])
    same((pod.wait(), words(pod), pod.status()[-1][:2]), (143, ["started", "failed", "signal"], ["signal", "15"]))
    same(pod.err, b"nightshift-init: 'touch' was not started: SIGTERM came first\n")
    assert not os.path.exists("started")


@case("what the job left behind is gone at its end")
def _(wrap):
    nap = mark()
    pod = sh(f"setsid sleep {nap} & (setsid setsid sleep {nap} &); while [ $(pgrep -fc 'sleep {nap}') -lt 2 ]; do :; done; "
             "exit 5")(wrap)
    same(pod.wait(), 5)
    same(running(nap), [])


# --- our own stdout ---

@case("a reader that stops holds the job up and nothing else; in the end it has all")
def _(wrap):
    with open("block", "wb") as f:
        f.write(BLOCK)
    pod = sh("(trap 'echo winch >seen' WINCH; echo >ready; while [ ! -e seen ]; do sleep 0.01; done) & "
             "for i in $(seq 50); do echo $i; cat block; done; wait; echo end")(wrap)
    wait_for("the trap", lambda: os.path.exists("ready"))

    def held_up():  # it has written, and it writes no more: both pipes are full
        places = [pod.attach().place for _ in "ab"]
        return places[0] == places[1] and places[0][1:] > (0, 200000)
    wait_for("the job to be held up", held_up)
    for _ in range(20):  # clients are served, children reaped
        inside = pod.bridge(exec_frame(["sh", "-c", "(true &); echo in; exit 7"])).read_all()
        same((inside.out, inside.exit), (b"in\n", (7, 0)))
        inside.close()
    pod.kill(signal.SIGWINCH)
    wait_for("the signal", lambda: os.path.exists("seen"))
    _, segment, byte = pod.attach().place
    assert segment * (1 << 18) + byte < 2 << 20, "it read on without bound"
    same(pod.wait(), 0)
    assert pod.out == b"".join(b"%d\n" % i + BLOCK for i in range(1, 51)) + b"end\n", len(pod.out)
    for name in ("seen", "ready"):
        os.remove(name)


@case("a reader that goes away does not end the job")
def _(wrap):
    pod = sh("cat block block block; echo end >&2; exit 3")(wrap)
    pod.proc.stdout.close()
    pod.proc.stdout = None
    same((pod.wait(), pod.err, pod.log("stderr")), (3, b"end\n", b"end\n"))


@case("whoever shares our stdout finds it as it was")
def _(wrap):
    ours, theirs = os.pipe()
    same(sh("echo out; echo err >&2", stdout=theirs, stderr=theirs)(wrap).wait(), 0)
    same(fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
    same(sorted(os.read(ours, 100).split()), [b"err", b"out"])
    os.close(ours)
    os.close(theirs)


# --- the bridge ---

@case("a bridge attaches: output, stdin, the end")
def _(wrap):
    pod = Pod(["sh", "-c", "cat; echo bye >&2; exit 2"], ["--stdin"], wrap)
    wait_for("the socket", lambda: os.path.exists(pod.sock))
    client, watcher = pod.bridge(frame(ATTACH)).ready(), pod.bridge(frame(WATCH)).ready()
    client.type(b"hello\n")
    client.see(b"hello\n")
    client.type(b"")
    client.read_all()
    same((client.out, client.err, client.exit, watcher.read_all().exit), (b"hello\n", b"bye\n", (2, 0), (2, 0)))
    same((pod.wait(), pod.out, pod.err), (2, b"hello\n", b"bye\n"))
    same((client.sock.end(), watcher.sock.end()), ((0, ""), (0, "")))


@case("a bridge carries commands: input, environment, much output, a terminal and its size")
def _(wrap):
    pod = sh(f"echo up; {SPIN}", env={**os.environ, "FROM": "job"})(wrap).up()
    client = pod.bridge(exec_frame(["sh", "-c", "pwd; echo $FROM $OWN; cat; exit 11"], env=["OWN=yes"], cwd="/usr")).ready()
    for i in range(0, len(BLOCK), 60000):
        client.type(BLOCK[i:i + 60000])
    client.type(b"")
    client.read_all()
    assert client.out == b"/usr\njob yes\n" + BLOCK and client.exit == (11, 0), client.exit
    client.close()
    client = pod.bridge(exec_frame(["sh", "-c", "stty -echo; stty size; read x; stty size"], tty=True, rows=50, cols=132))
    client.see(b"50 132\r\n")
    client.send(resize_frame(20, 40))
    client.type(b"\n")
    assert b"20 40\r\n" in client.read_all().out and client.exit == (0, 0)
    client.close()
    pod.kill()
    same(pod.wait(), 143)


@case("a job on a terminal: its output is on stdout, and a bridge changes its size")
def _(wrap):
    pod = Pod(["sh", "-c", "trap 'stty size' WINCH; tty >/dev/null && echo up; stty size; while ! read x; do :; done; exit 6"],
              ["--tty"], wrap).up(b"24 80\r\n")
    client = pod.bridge(frame(ATTACH)).ready()
    client.send(resize_frame(33, 111))
    client.see(b"33 111")
    client.type(b"\n")
    same(client.read_all().exit, (6, 0))
    same(pod.wait(), 6)
    assert pod.out.startswith(b"up\r\n24 80\r\n") and b"33 111\r\n" in pod.out and pod.err == b""


@case("a bridge whose stdin ends lets go of what it runs")
def _(wrap):
    nap = mark()
    pod = sh(f"echo up; {SPIN}")(wrap).up()
    client = pod.bridge(exec_frame(["sleep", nap])).ready()
    wait_for("the command", lambda: running(nap))
    same(client.sock.end(), (0, ""))
    wait_for("its end", lambda: not running(nap))
    client = pod.bridge(frame(ATTACH)).ready()
    client.sock.proc.stdout.close()  # and one that nobody reads any more
    wait_for("its end", lambda: client.sock.proc.poll() is not None)
    same(client.sock.end(), (1, "nightshift-init: nobody reads what the task says\n"))
    pod.kill()
    pod.wait()


@case("a bridge to a task that has ended says so")
def _(wrap):
    pod = sh("exit 0")(wrap)
    same(pod.wait(), 0)
    for place in (pod.dir, f"{pod.dir}/none"):
        done = subprocess.run([INIT, "--bridge", place], check=False, capture_output=True, input=b"")
        same((done.returncode, done.stdout), (1, b""))
        assert b"the task has no supervisor any more" in done.stderr
    pod = sh(f"echo up; {SPIN}")(wrap).up()
    watcher = pod.bridge(frame(WATCH)).ready()
    os.kill(pod.init_pid(), signal.SIGKILL)
    same((watcher.read_all().exit, watcher.error), (None, None))
    pod.wait()


@case("a bridge inside the namespace gets no signal of the job's, and hears the end")
def _(wrap):
    if not wrap:
        raise Skip("only as process 1")
    for _ in range(5):
        pod = sh(f"trap 'seq 1 9999; exit 85' USR1; echo up; {SPIN}", "--freeze-signal", "10")(wrap).up()
        enter = ["nsenter", "--target", str(pod.init_pid()), "--pid", "--mount", f"--wd={os.getcwd()}", "--"]
        clients = [pod.bridge(frame(kind), enter).ready() for kind in (ATTACH, WATCH)]
        pod.kill()
        same([c.read_all().exit for c in clients], [(85, 0), (85, 0)])
        assert clients[0].out.endswith(b"\n9999\n")
        same((pod.wait(), pod.out), (85, b"up\n" + clients[0].out))


# --- without a mode of its own ---

def check_install():
    place = tempfile.mkdtemp(dir=".")
    target = f"{place}/nightshift-init"
    with open(INIT, "rb") as f:
        program = f.read()
    for _ in ("new", "there already, and not to be written"):
        same(subprocess.run([INIT, "--install", target], check=False).returncode, 0)
        same((stat.S_IMODE(os.stat(target).st_mode), os.listdir(place)), (0o555, ["nightshift-init"]))
        with open(target, "rb") as f:
            assert f.read() == program
    pod = Pod(["echo", "from there"], init=os.path.abspath(target))
    same((pod.wait(), pod.out), (0, b"from there\n"))
    for bad, reason in (("no/such/folder/x", "No such file"), (place, "Is a directory")):
        done = subprocess.run([INIT, "--install", bad], check=False, capture_output=True, text=True)
        same(done.returncode, 1)
        assert reason in done.stderr, done.stderr
    same(os.listdir(place), ["nightshift-init"])
    assert not [name for name in os.listdir(".") if name.startswith(os.path.basename(place) + ".")]


def check_arguments():
    for args, sentence in ((["--pod"], "--pod needs a value: DIR"), (["--pod", "", "--", "x"], "empty"),
                           (["--pod", "d"], "no program"), (["--pod", "d", "--bridge", "d"], "exclude each other"),
                           (["--bridge", "d", "--", "x"], "run no program"), (["--install"], "needs a value: FILE"),
                           (["--freeze-signal", "10", "--", "x"], "goes with --pod"),
                           (["--pod", "d", "--freeze-signal", "0", "--", "x"], "'0' is not a number from 1 to 64"),
                           (["--pod", "d", "--freeze-signal", "USR1", "--", "x"], "'USR1' is not a number")):
        done = subprocess.run([INIT, *args], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        same(done.returncode, 2)
        assert sentence in done.stderr, done.stderr
    assert not os.path.exists("d")
    done = subprocess.run([INIT, "--help"], check=False, capture_output=True, text=True)
    assert all(f"nightshift-init {mode} " in done.stdout for mode in ("--pod", "--bridge", "--install"))


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    home = tempfile.mkdtemp(prefix="ns", dir="/tmp")
    os.chmod(home, 0o755)
    os.chdir(home)
    can_unshare = subprocess.run([*PID_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    number, good = 0, True
    todo = [("", "it installs itself, again too", check_install, ()), ("", "bad arguments are refused", check_arguments, ())]
    for mode, wrap in (("plain: ", []), ("pid 1: ", PID_NAMESPACE)):
        todo += [(mode, sentence, fn, (wrap,)) for sentence, fn in CASES]
    for mode, sentence, fn, args in todo:
        if wanted not in mode + sentence:
            continue
        number += 1
        if mode == "pid 1: " and not can_unshare:
            print(f"ok {number} - {mode}{sentence} # SKIP a pid namespace may not be made here")
            continue
        good = run_case(number, mode + sentence, fn, *args) and good
    print(f"1..{number}")
    os.chdir("/")
    shutil.rmtree(home, ignore_errors=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
