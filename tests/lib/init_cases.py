"""The cases of t0200-init: the real nightshift-init, plain and as process 1 of a pid namespace."""
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

from task import (ATTACH, EXIT, INIT, PID_NAMESPACE, RESIZE, SIGNAL, STDIN, STDOUT, WATCH, Task, frame,
                  resize_frame, running, wait_for)

CASES = []
MARKS = itertools.count(os.getpid() * 1000)


def case(sentence):
    def add(fn):
        CASES.append((sentence, fn))
        return fn
    return add


class Skip(Exception):
    pass


def same(got, want):
    assert got == want, f"got {got!r:.300}, want {want!r:.300}"


def mark():
    """A number of seconds that nobody else sleeps, to find a process by."""
    return str(next(MARKS) + 100000)


def words(task):
    return [line[0] for line in task.status()]


def sh(script, *options, **how):
    return lambda wrap: Task(["sh", "-c", script], options, wrap, **how)


# --- how it ends ---

@case("exit codes and signals come out as a shell says them, and stand in the status file")
def _(wrap):
    for script, code, line in (("exit 0", 0, ["exit", "0"]), ("exit 3", 3, ["exit", "3"]),
                               ("kill -9 $$", 137, ["signal", "9"]), ("kill -TERM $$", 143, ["signal", "15"])):
        task = sh(script)(wrap)
        same(task.wait(), code)
        status = task.status()
        same(status[-1][:2], line)
        same([s[0] for s in status], ["started", line[0]])
        assert int(status[0][1]) <= int(status[1][2]) and int(status[0][1]) > 1600000000000


@case("a program that cannot be run gives 127 or 126 and says why")
def _(wrap):
    task = Task(["/no/such/program"], (), wrap)
    same(task.wait(), 127)
    same(words(task), ["started", "failed", "exit"])
    same(task.status()[1][1], "2")
    assert b"cannot run '/no/such/program': No such file" in task.log("meta")
    task = Task(["/etc/passwd"], (), wrap)
    same(task.wait(), 126)
    same(task.status()[1][:2], ["failed", "13"])


@case("a watcher of a program that cannot be run is told why, and the code")
def _(wrap):
    # The connection is made before the supervisor is: it must be let in before it ends.
    for n, (argv, exit_) in enumerate(((["true"], (0, 0)), (["/no/such/program"], (127, 0)))):
        task = Task(argv, (), ["sh", "-c", f'until [ -e connected-{n} ]; do sleep 0.01; done; exec "$@"', "-", *wrap])
        watcher = task.connect(frame(WATCH))
        with open(f"connected-{n}", "w", encoding="ascii"):
            watcher.read_all()
        same((watcher.exit, "cannot run" in (watcher.error or "")), (exit_, n == 1))
        task.wait()
        os.remove(f"connected-{n}")


@case("a job that takes its supervisor's limits away is supervised as before, and its end is told")
def _(wrap):
    script = """
import os, resource
for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK):
    resource.prlimit(os.getppid(), limit, (0, 0))
print("x" * 200000)
os._exit(3)
"""
    task = Task(["python3", "-c", script], (), wrap)
    task.wait()  # its own exit status is nobody's, and a sanitizer wants descriptors then
    same(task.status()[-1][:2], ["exit", "3"])
    same(len(task.log("stdout")), 200001)


@case("the lock on the status file is held as long as the task lives")
def _(wrap):
    task = Task(["cat"], ["--stdin"], wrap)
    client = task.attach()
    assert task.locked()
    client.type(b"")
    same(task.wait(), 0)
    assert not task.locked()


@case("a watcher gets STARTED, EXIT and the end")
def _(wrap):
    task = Task(["sh", "-c", "read x; exit $x"], ["--stdin"], wrap)
    watcher = task.connect(frame(WATCH)).ready()
    same(watcher.started, int(task.status()[0][1]))
    task.attach().type(b"7\n")
    watcher.read_all()
    same(watcher.exit, (7, 0))
    same(watcher.out, b"")
    same(task.wait(), 7)


@case("what the job left behind is killed at its end, in whatever session it hides")
def _(wrap):
    nap = mark()
    task = sh(f"setsid sleep {nap} & (setsid setsid sleep {nap} &) ; "
              f"trap '' TERM HUP; sleep {nap} & while [ $(pgrep -fc 'sleep {nap}') -lt 3 ]; do :; done; exit 5")(wrap)
    same(task.wait(), 5)
    same(running(nap), [])


@case("processes that run from session to session are caught at the end")
def _(wrap):
    name = f"runaway-{mark()}"
    with open(name, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\n[ -e stop ] || setsid ./{name} x &\n")  # one at a time, not more and more
    os.chmod(name, 0o700)
    try:
        task = sh(f"for i in 1 2 3; do ./{name} x; done; sleep 0.2; exit 4")(wrap)
        same(task.wait(), 4)
        same(running(f"./{name}"), [])
    finally:
        open("stop", "w", encoding="ascii").close()  # should one escape
        wait_for("runaways to stop", lambda: not running(f"./{name}"))
        os.remove("stop")


@case("orphans that end are reaped while the job runs")
def _(wrap):
    task = Task(["sh", "-c", "for i in $(seq 50); do (/bin/true &) ; done; echo done; read x"], ["--stdin"], wrap)
    wait_for("its output", lambda: task.log("stdout") == b"done\n")
    pid = task.init_pid()

    def zombies():
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            kids = f.read().split()
        states = []
        for kid in kids:
            try:
                with open(f"/proc/{kid}/stat", encoding="ascii") as f:
                    states.append(f.read().rsplit(")", 1)[1].split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
        return "Z" in states or len(states) != 1
    wait_for("no zombies", lambda: not zombies())
    task.attach().type(b"\n")
    same(task.wait(), 0)


@case("killed from outside: no end is written, the lock is free, the job is gone")
def _(wrap):
    nap = mark()
    task = Task(["sleep", nap], (), wrap)
    watcher = task.connect(frame(WATCH)).ready()
    wait_for("the job", lambda: running(nap))
    task.kill(signal.SIGKILL)
    watcher.read_all()
    same(watcher.exit, None)
    task.wait()
    same(words(task), ["started"])
    wait_for("the lock to go", lambda: not task.locked())
    wait_for("the job to go", lambda: not running(nap))


# --- output ---

@case("ten megabytes come out complete and in order")
def _(wrap):
    task = Task(["seq", "1", "1400000"], (), wrap)
    same(task.wait(), 0)
    want = b"".join(b"%d\n" % i for i in range(1, 1400001))
    assert len(want) > 10 << 20 >> 1 and task.log("stdout") == want


@case("any bytes, both streams, and a last line without an end come back as written")
def _(wrap):
    data = bytes(range(256)) * 300 + b"\n\n\0\r" + b"x" * 50000 + b"\nlast"
    with open("bytes", "wb") as f:
        f.write(data)
    task = sh("cat bytes; cat bytes bytes >&2")(wrap)
    same(task.wait(), 0)
    assert task.log("stdout") == data and task.log("stderr") == data + data


@case("output of processes that outlive the job's own by a moment is kept")
def _(wrap):
    task = sh("(sleep 0.05; echo late) & echo early; wait")(wrap)
    same(task.wait(), 0)
    same(task.log("stdout"), b"early\nlate\n")


@case("the log stays within its bound and keeps the newest")
def _(wrap):
    task = Task(["seq", "1", "300000"], ["--log-bytes", "262144"], wrap)
    same(task.wait(), 0)
    sizes = [os.path.getsize(f"{task.dir}/log.{i}") for i in range(4)]
    assert max(sizes) <= 65536 and sum(sizes) > 150000, sizes
    numbers = [n for n, _ in task.segments()]
    same(numbers, list(range(numbers[0], numbers[0] + 4)))
    assert numbers[0] > 10
    lines = task.log("stdout").split()[1:]  # the first may have begun in what is gone
    same([int(x) for x in lines], list(range(300001 - len(lines), 300001)))


@case("a full disk loses log bytes, counts them, and never stops the job")
def _(wrap):
    if os.geteuid() != 0:
        raise Skip("mounting a small tmpfs needs root")
    small = tempfile.mkdtemp(dir=".")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", small], check=True)
    try:
        with open(f"{small}/filler", "wb") as f:
            f.write(bytes(64 << 10))
        task = Task(["sh", "-c", "seq 1 50000; echo full >&2; read x; echo; echo again; seq 1 10"],
                    ["--stdin", "--log-bytes", "1048576"], wrap, log_dir=small)
        client = task.attach()
        client.read_until("full", lambda c: b"full" in c.err)
        os.remove(f"{small}/filler")
        client.type(b"\n")
        same(task.wait(), 0)
        same(words(task), ["started", "lost", "exit"])
        lost = int(task.status()[1][1])
        kept = len(task.log("stdout")) + len(task.log("stderr"))
        total = sum(len(b"%d\n" % i) for i in range(1, 50001)) + len("full\n\nagain\n") + 21
        same(lost + kept, total)
        assert lost > 100000 and task.log("stdout").endswith(b"again\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
        assert b"bytes of output were lost: No space left on device" in task.log("meta")
    finally:
        subprocess.run(["umount", small], check=True)


# --- attach ---

@case("an attached client types into the job and sees what it says, to the end")
def _(wrap):
    task = Task(["sh", "-c", "cat; echo bye >&2; exit 2"], ["--stdin"], wrap)
    client = task.attach()
    client.type(b"hello\n")
    client.see(b"hello\n")
    client.type(b"x" * 60000 + b"\n")
    client.type(b"")
    client.read_all()
    same(client.out, b"hello\n" + b"x" * 60000 + b"\n")
    same((client.err, client.exit, client.error), (b"bye\n", (2, 0), None))
    same(task.wait(), 2)


@case("an attached client is told where in the log it begins")
def _(wrap):
    task = Task(["sh", "-c", "echo before; cat"], ["--stdin"], wrap)
    wait_for("its first line", lambda: task.log("stdout") == b"before\n")
    size = os.path.getsize(f"{task.dir}/log.0")
    client = task.attach().ready()
    same(client.place, (0, 0, size))
    client.type(b"after\n")
    client.see(b"after\n")
    same(client.out, b"after\n")
    same(task.attach().ready().place[2], os.path.getsize(f"{task.dir}/log.0"))
    client.type(b"")
    client.read_all()
    task.wait()


@case("without --stdin the job's stdin is empty")
def _(wrap):
    task = Task(["cat"], (), wrap)
    same(task.wait(), 0)
    same(task.log("stdout"), b"")


@case("two attached clients see the same; one that leaves does not disturb")
def _(wrap):
    task = Task(["cat"], ["--stdin"], wrap)
    one, two = task.attach(), task.attach()
    one.type(b"from one\n")
    two.see(b"from one\n")
    two.type(b"from two\n")
    one.see(b"from two\n")
    one.close()
    two.type(b"alone\n")
    two.see(b"alone\n")
    two.type(b"")
    same(two.read_all().exit, (0, 0))
    same(task.wait(), 0)
    same(task.log("stdout"), b"from one\nfrom two\nalone\n")


@case("a client that does not read is cut; the job does not wait for it")
def _(wrap):
    task = Task(["sh", "-c", "read x; seq 1 1000000; read x"], ["--stdin"], wrap)
    slow, quick = task.attach(), task.connect(frame(WATCH)).ready()
    slow.type(b"\n")
    wait_for("all of the output", lambda: task.log("stdout").endswith(b"\n1000000\n"))
    slow.read_all()
    assert "too slow" in slow.error and slow.exit is None
    assert slow.out == task.log("stdout")[:len(slow.out)], "what it got has no hole"
    task.attach().type(b"\n")
    same(quick.read_all().exit, (0, 0))
    same(task.wait(), 0)


@case("sixteen terminals are let in, the next is refused, a watcher still gets in")
def _(wrap):
    task = Task(["cat"], ["--stdin"], wrap)
    clients = [task.attach() for _ in range(16)]
    extra = task.connect(frame(ATTACH)).read_all()
    assert "16 terminals" in extra.error
    watcher = task.connect(frame(WATCH)).ready()
    clients[3].close()
    wait_for("a free place", lambda: task.connect(frame(ATTACH)).read_frame() and True)
    clients[0].type(b"")
    same(watcher.read_all().exit, (0, 0))
    for i in (0, 1, 15):
        same(clients[i].read_all().exit, (0, 0))
    same(task.wait(), 0)


@case("strangers and wrong frames are refused with a sentence")
def _(wrap):
    task = Task(["cat"], ["--stdin"], wrap)
    for first, sentence in ((b"GET / HTTP/1.1\r\n\r\n", "unknown type 71"),
                            (b"\5\xff\xff\xff", "stdout frame"),
                            (frame(STDIN, b"x"), "cannot begin with a stdin frame"),
                            (frame(WATCH) + frame(RESIZE, b"abcd"), "no place here"),
                            (frame(ATTACH) + frame(EXIT, b"\0\0"), "no place here"),
                            (frame(ATTACH) + frame(STDOUT, b"x"), "no place here"),
                            (frame(ATTACH) + frame(SIGNAL, b"\0"), "no signal 0"),
                            (frame(3, b"\0" * 12), "an exec frame")):
        stranger = task.connect(first).read_all()
        assert stranger.error and sentence in stranger.error, (first, stranger.error)
    half = task.connect(b"\2\0")
    half.close()
    client = task.attach()
    client.type(b"still here\n")
    client.see(b"still here\n")
    client.type(b"")
    same(task.wait(), 0)


# --- a terminal ---

@case("a job on a terminal has one, of the right size, and hears of changes")
def _(wrap):
    task = Task(["sh", "-c", "trap 'stty size' WINCH; tty >/dev/null && echo yes; stty size; "
                 "while ! read x; do :; done; exit 6"], ["--tty"], wrap)
    client = task.attach()
    wait_for("the first size", lambda: b"24 80\r\n" in task.log("stdout"))
    client.send(resize_frame(33, 111))
    client.see(b"33 111")
    client.type(b"\n")
    same(client.read_all().exit, (6, 0))
    same(task.wait(), 6)
    assert task.log("stdout").startswith(b"yes\r\n")


@case("a terminal's output is complete, in the log and at a client that reads")
def _(wrap):
    task = Task(["sh", "-c", "stty -echo; echo go; read x; seq 1 200000"], ["--tty"], wrap)
    client = task.attach()
    wait_for("go", lambda: b"go" in task.log("stdout"))
    client.type(b"\n")
    client.read_all()
    same(client.exit, (0, 0))
    want = b"".join(b"%d\r\n" % i for i in range(1, 200001))
    assert client.out.endswith(want) and task.log("stdout").endswith(b"go\r\n" + want)
    same(task.wait(), 0)


@case("control-C at the terminal interrupts the job")
def _(wrap):
    task = Task(["sh", "-c", "trap 'exit 9' INT; echo up; while :; do sleep 0.01; done"], ["--tty"], wrap)
    client = task.attach()
    wait_for("up", lambda: b"up" in task.log("stdout"))
    client.type(b"\3")
    same(client.read_all().exit, (9, 0))
    same(task.wait(), 9)


@case("a terminal client that takes nothing is cut after a while and the job goes on")
def _(wrap):
    task = Task(["sh", "-c", "stty -echo; echo go; read x; seq 1 300000"], ["--tty"], wrap)
    client = task.attach()
    wait_for("go", lambda: b"go" in task.log("stdout"))
    client.type(b"\n")
    same(task.wait(), 0)
    assert task.log("stdout").endswith(b"300000\r\n")
    same(client.read_all().exit, None)


# --- exec ---

@case("an exec has its own output, input, folder, environment and exit code")
def _(wrap):
    task = Task(["sleep", mark()], (), wrap, env={**os.environ, "FROM": "job", "KEPT": "yes"})
    client = task.exec(["sh", "-c", 'pwd; echo $FROM $KEPT; cat; echo oops >&2; exit 11'], env=["FROM=exec"],
                       cwd="/usr").ready()
    client.type(b"typed\n")
    client.type(b"")
    client.read_all()
    same((client.out, client.err, client.exit), (b"/usr\nexec yes\ntyped\n", b"oops\n", (11, 0)))
    killed = task.exec(["sh", "-c", "kill -9 $$"]).read_all()
    same(killed.exit, (0, 9))
    missing = task.exec(["no-such-program"]).read_all()
    assert "cannot run 'no-such-program'" in missing.error
    same(missing.exit, (127, 0))
    nowhere = task.exec(["true"], cwd="/no/such").read_all()
    assert "in '/no/such'" in nowhere.error
    task.kill()
    same(task.wait(), 143)
    same(task.log("stdout"), b"")


@case("an exec on a terminal has the size it asked for, and hears of changes")
def _(wrap):
    task = Task(["sleep", mark()], (), wrap)
    client = task.exec(["sh", "-c", "stty -echo; stty size; read x; stty size; ps -o tty= -p $$"], tty=True,
                       rows=50, cols=132)
    client.see(b"50 132\r\n")
    client.send(resize_frame(20, 40))
    client.type(b"\n")
    client.read_all()
    assert b"20 40\r\n" in client.out and b"pts/" in client.out and client.err == b""
    same(client.exit, (0, 0))
    task.kill()
    task.wait()


@case("an exec's output is complete however slowly it is read")
def _(wrap):
    task = Task(["sleep", mark()], (), wrap)
    for tty, end in ((False, b"\n"), (True, b"\r\n")):
        client = task.exec(["seq", "1", "500000"], tty=tty).read_all()
        assert client.out == b"".join(b"%d%s" % (i, end) for i in range(1, 500001))
        same(client.exit, (0, 0))
    task.kill()
    task.wait()


@case("an exec ends with its command, not with what that left in the background")
def _(wrap):
    nap = mark()
    task = Task(["sleep", mark()], (), wrap)
    client = task.exec(["sh", "-c", f"sleep {nap} & echo started"]).read_all()
    same((client.out, client.exit), (b"started\n", (0, 0)))
    wait_for("what it left", lambda: running(nap))
    task.kill()
    task.wait()
    same(running(nap), [])


@case("an exec whose client goes is hung up, and killed when it does not listen")
def _(wrap):
    task = Task(["sleep", mark()], (), wrap)
    polite, stubborn = [mark(), mark()], [mark(), mark()]
    clients = []
    for tty in (0, 1):
        script = f"trap 'echo x >{os.getcwd()}/heard-{tty}' HUP; sleep {stubborn[tty]} & wait; sleep {stubborn[tty]}"
        clients.append(task.exec(["sleep", polite[tty]], tty=tty).ready())
        clients.append(task.exec(["sh", "-c", script], tty=tty).ready())
    wait_for("all of them", lambda: all(running(nap) for nap in polite + stubborn))
    for client in clients:
        client.close()
    for tty in (0, 1):  # it was there still when it had been hung up
        wait_for("it to hear", lambda: os.path.exists(f"heard-{tty}"))
        os.remove(f"heard-{tty}")
    wait_for("all of them to go", lambda: not any(running(nap) for nap in polite + stubborn))
    task.kill()
    task.wait()


@case("execs get the end of the job as their own")
def _(wrap):
    nap = mark()
    task = Task(["sh", "-c", "read x"], ["--stdin"], wrap)
    client = task.exec(["sh", "-c", f"echo in; sleep {nap}"], tty=True)
    client.see(b"in")
    task.attach().type(b"\n")
    same(client.read_all().exit, (0, 9))
    same(task.wait(), 0)
    same(running(nap), [])


# --- signals ---

@case("TERM reaches the job and what it started in other groups, whoever sends it")
def _(wrap):
    script = ("trap 'echo main; wait; exit 8' TERM; "
              "setsid sh -c 'trap \"echo other; exit\" TERM; echo up; while :; do sleep 0.01; done' & "
              "echo up; while :; do sleep 0.01; done")
    for send in (lambda t: t.kill(), lambda t: t.connect(frame(SIGNAL, b"\x0f")).read_all(),
                 lambda t: t.attach().send(frame(SIGNAL, b"\x0f")),
                 lambda t: t.connect(frame(WATCH)).ready().send(frame(SIGNAL, b"\x0f"))):
        task = sh(script)(wrap)
        wait_for("both", lambda: task.log("stdout") == b"up\nup\n")
        send(task)
        same(task.wait(), 8)
        same(sorted(task.log("stdout").split()), [b"main", b"other", b"up", b"up"])


@case("TERM reaches all of a pid namespace that has no /proc of its own")
def _(wrap):
    if not wrap:
        raise Skip("only as process 1")
    task = sh("trap 'echo main; wait; exit 8' TERM; setsid sh -c "
              "'trap \"echo other; exit\" TERM; echo up; while :; do sleep 0.01; done' & "
              "echo up; while :; do sleep 0.01; done")([w for w in wrap if w != "--mount-proc"])
    wait_for("both", lambda: task.log("stdout") == b"up\nup\n")
    task.kill()
    same(task.wait(), 8)
    same(sorted(task.log("stdout").split()), [b"main", b"other", b"up", b"up"])


@case("a signal to the job leaves execs alone, and one to an exec leaves the job alone")
def _(wrap):
    task = sh("trap 'echo usr1' USR1; echo up; while :; do sleep 0.01; done")(wrap)
    wait_for("the job", lambda: task.log("stdout") == b"up\n")
    client = task.exec(["sh", "-c", "echo up; cat; echo end"])
    client.see(b"up")
    task.kill(signal.SIGUSR1)
    wait_for("the trap", lambda: b"usr1" in task.log("stdout"))
    client.type(b"")
    same(client.read_all().out, b"up\nend\n")
    other = task.exec(["sleep", mark()]).ready()
    other.send(frame(SIGNAL, bytes([signal.SIGUSR1])))
    same(other.read_all().exit, (0, int(signal.SIGUSR1)))
    same(task.log("stdout").count(b"usr1"), 1)
    task.kill()
    same(task.wait(), 143)


# --- what the job inherits ---

@case("the job has three descriptors and no signal blocked or ignored")
def _(wrap):
    task = sh("ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status")(wrap)
    same(task.wait(), 0)
    lines = task.log("stdout").decode().split()
    same(lines[:4], ["0", "1", "2", "3"])  # 3: ls reading the folder
    same(lines[4:], ["SigBlk:", "0000000000000000", "SigIgn:", "0000000000000000"])


@case("the supervisor cannot be read by the job's account")
def _(wrap):
    if os.geteuid() != 0:
        raise Skip("running as another account needs root")
    if wrap:
        raise Skip("said by the plain case")
    os.chmod(".", 0o777)
    task = Task(["sleep", mark()], (), wrap, uid=65534)
    task.connect(frame(WATCH)).ready()
    same(os.stat(f"/proc/{task.pid}/mem").st_uid, 0)
    task.kill()
    task.wait()


def check_arguments():
    none = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    for args, sentence in (([], "no program"), (["--", ], "no program"), (["--what", "--", "x"], "'--what'"),
                           (["--log-bytes", "12", "--", "x"], "'12' is not a number from 262144"),
                           (["--log-bytes", "9999999999999999999999", "--", "x"], "is not a number"),
                           (["--log-bytes", "64M", "--", "x"], "'64M'"), (["--log-bytes"], "needs a value"),
                           (["--", "true"], "descriptor 3 is not open")):
        done = subprocess.run([INIT, *args], **none)
        same(done.returncode, 2)
        assert sentence in done.stderr and done.stderr.startswith("nightshift-init: "), done.stderr
    done = subprocess.run([INIT, "--help"], **none)
    assert done.returncode == 0 and "--log-bytes" in done.stdout
    assert subprocess.run([INIT, "--version"], **none).stdout.startswith("nightshift-init 0")


def run_case(number, sentence, fn, *args):
    try:
        try:
            fn(*args)
        finally:
            Task.end_all()
        print(f"ok {number} - {sentence}", flush=True)
        return True
    except Skip as why:
        print(f"ok {number} - {sentence} # SKIP {why}", flush=True)
        return True
    except Exception:
        print(f"not ok {number} - {sentence}")
        print("\n".join("#   " + line for line in traceback.format_exc().splitlines()), flush=True)
        return False


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    home = tempfile.mkdtemp(prefix="ns", dir="/tmp")
    os.chdir(home)
    can_unshare = subprocess.run([*PID_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    number, good = 1, run_case(1, "bad arguments are refused with a sentence", check_arguments)
    for mode, wrap in (("plain", []), ("pid 1", PID_NAMESPACE)):
        for sentence, fn in CASES:
            if wanted not in f"{mode}: {sentence}":
                continue
            number += 1
            if wrap and not can_unshare:
                print(f"ok {number} - {mode}: {sentence} # SKIP a pid namespace may not be made here")
                continue
            good = run_case(number, f"{mode}: {sentence}", fn, wrap) and good
    print(f"1..{number}")
    os.chdir("/")
    shutil.rmtree(home, ignore_errors=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
