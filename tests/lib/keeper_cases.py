"""The cases of tests/system/t0210-keeper.sh: a real keeper, real crun, real kernel.  TAP on stdout."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import claims
import silent_fs
from cluster import plain_init
from keeper import BUILD, PATIENCE_S, USER, Keeper
from task import STARTED

FAIL_POINTS_START = [
    "before_task_json", "after_task_json", "after_lock", "after_cgroup", "after_scratch",
    "after_rootfs", "after_bundle", "before_spawn", "after_spawn", "before_started"]
FAIL_POINTS_END = [
    "program_over", "before_result", "after_result", "after_cgroup_remove", "after_scratch_remove",
    "after_net_give_back", "before_ended"]


def status_of(text):
    """The lines of /proc/self/status as a dict."""
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:  # it is not there, or goes while it is read
        return True


def a_job_runs_and_its_end_is_told(k):
    """a job runs; its output, exit code and use are told, and nothing is left of it"""
    k.ask("17.1.0", "echo out; echo err >&2; exit 3")
    started = k.event("started", task="17.1.0")
    ended = k.event("ended", task="17.1.0")
    assert started["pid"] > 0 and started["t_ms"] <= ended["t_ms"]
    assert (ended["code"], ended["signal"], ended["why"]) == (3, 0, "exited"), ended
    assert ended["cpu_ms"] > 0 and ended["mem_peak_mib"] > 0, ended
    assert k.output("17.1.0", ["stdout"]) == "out\n"
    assert k.output("17.1.0", ["stderr"]) == "err\n"
    assert k.left() == [], k.left()


def a_signal_is_told(k):
    """a job that a signal ends is told with the signal"""
    ended, _ = k.ran("1.1.0", "kill -SEGV $$")
    assert (ended["code"], ended["signal"], ended["why"]) == (0, 11, "exited"), ended


def a_program_that_is_missing(k):
    """a program that is not there ends with 127, as in a shell"""
    ended, _ = k.ran("1.1.0", "", argv=["/no/such/program"])
    assert (ended["ev"], ended["code"]) == ("ended", 127), ended


def it_is_its_user(k):
    """inside it is its user with its groups, without a capability, and cannot become more"""
    _, text = k.ran("1.1.0", "cat /proc/self/status")
    s = status_of(text)
    assert s["Uid"].split() == ["4711"] * 4 and s["Gid"].split() == ["4711"] * 4, s
    assert sorted(s["Groups"].split()) == ["44", "4711"], s
    for cap in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(s[cap], 16) == 0, (cap, s[cap])
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s


def it_is_alone(k):
    """it sees no other process, has its own host name, and only a loopback without a network"""
    other = "1.1.0"
    k.ask(other, "echo up; sleep 1000")
    k.until_output(other, "up")
    _, text = k.ran("7.1.2", "hostname; ls /proc | grep -c '^[0-9]'; ls /sys/class/net; cat /etc/hostname")
    lines = text.split()
    assert lines[0] == "job-7-2" and lines[2:] == ["lo", "job-7-2"], lines
    assert int(lines[1]) <= 5, lines  # init, sh, ls, grep and the pipe's shell
    k.send("stop", other, grace_ms=0)
    k.event("ended", task=other)


def system_calls_are_refused(k):
    """mounting, namespaces, keys and kernel modules are refused to it"""
    script = """
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
for name, call in (("unshare_user", lambda: c.unshare(0x10000000)), ("mount", lambda: c.mount(b"x", b"/tmp", b"tmpfs", 0, None)),
                   ("clone_user", lambda: c.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)), ("clone3", lambda: c.syscall(435, 0, 0)),
                   ("keyctl", lambda: c.syscall(250, 0, 0)), ("bpf", lambda: c.syscall(321, 0, 0, 0)),
                   ("io_uring", lambda: c.syscall(425, 1, 0)), ("vsock", lambda: c.socket(40, 1, 0))):
    ctypes.set_errno(0)
    r = call()
    print(name, r, ctypes.get_errno(), flush=True)
    if name == "clone_user" and r == 0: os._exit(0)
"""
    _, text = k.ran("1.1.0", "", argv=["/usr/bin/python3", "-c", script])
    got = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in text.splitlines()}
    want = {n: (-1, 1) for n in ("unshare_user", "mount", "clone_user", "keyctl", "bpf", "vsock")}
    want.update({"clone3": (-1, 38), "io_uring": (-1, 38)})
    assert got == want, text


def folders_are_as_promised(k):
    """the system is read-only, /tmp is its own, home and volumes are there without setuid"""
    data = k.dir + "/data"
    os.mkdir(data)
    os.chown(data, 4711, 4711)
    with open(data + "/in", "w") as f:
        f.write("given\n")
    ended, text = k.ran("1.1.0", """
        pwd; touch /usr/x /etc/x /opt/x /x /var/x /sys/x 2>/dev/null && echo WRITABLE
        echo mine >/tmp/f && echo mine >/var/tmp/f && echo tmp ok; ls /tmp
        echo kept >home.txt; cat /vol/in; touch /vol/x 2>/dev/null && echo WRITABLE; echo w >/rw/out
        grep -E ' (/tmp|/var/tmp|/vol|/rw|/usr|%s) ' /proc/mounts | grep -v nosuid.*nodev
        ls -d /var/run/ /bin/sh >/dev/null && echo links; ls /.nightshift; test -w /dev/shm && echo shm
        ls -A %s; cat /etc/resolv.conf""" % (k.home, k.run),
        volumes=[{"from": data, "to": "/vol", "ro": True}, {"from": data, "to": "/rw"}])
    assert ended["code"] == 2 or ended["code"] == 0, ended
    lines = text.splitlines()
    assert lines[0] == k.home and "tmp ok" in lines and "given" in lines and "links" in lines, text
    assert "WRITABLE" not in text and "shm" in lines, text
    assert not [line for line in lines if line.startswith(("/", "tmpfs ")) and "nosuid" not in line
                and " " in line and "No such" not in line], text
    with open(k.home + "/home.txt") as f:
        assert f.read() == "kept\n"
    assert os.stat(k.home + "/home.txt").st_uid == 4711
    with open(data + "/out") as f:
        assert f.read() == "w\n"
    assert not os.path.exists("/tmp/f") and "No such file" in text, text


def a_path_its_user_cannot_reach(k):
    """a volume its user could not reach is not given, and the message names it"""
    secret = k.dir + "/secret"
    os.makedirs(secret + "/open")
    os.chmod(secret, 0o700)
    failed, _ = k.ran("1.1.0", "ls /v", volumes=[{"from": secret + "/open", "to": "/v"}])
    assert failed["ev"] == "failed" and failed["code"] == "denied", failed
    assert secret + "/open" in failed["msg"] and failed["hint"], failed
    os.symlink(secret + "/open", k.home + "/link")
    failed, _ = k.ran("2.1.0", "ls /v", volumes=[{"from": k.home + "/link", "to": "/v"}])
    assert failed["ev"] == "failed" and failed["code"] == "denied", failed
    for n, real in enumerate(("/", "/proc", "/proc/self", "/sys/fs/cgroup", "/dev/shm")):
        os.symlink(real, f"{k.home}/way{n}")  # by any other name
        failed, _ = k.ran(f"{n + 3}.1.0", "ls /v", volumes=[{"from": f"{k.home}/way{n}", "to": "/v"}])
        assert failed["ev"] == "failed" and failed["code"] == "denied", (real, failed)
    assert k.left() == [] and os.listdir(k.state + "/tasks") == [], k.left()


def a_name_that_is_too_long(k):
    """a name that is too long is what was asked for, not a machine that fails for now"""
    name = "x" * 256
    for n, what in enumerate(({"volumes": [{"from": k.home, "to": f"/mnt/{name}"}]}, {"volumes": [{"from": f"{k.home}/{name}", "to": "/v"}]},
                              {"workdir": f"{k.home}/{name}"})):
        failed, _ = k.ran(f"{n + 1}.1.0", "true", **what)
        assert failed["ev"] == "failed" and failed["code"] == "invalid" and failed["hint"], failed
    assert k.left() == [], k.left()


def a_working_folder_that_is_missing(k):
    """a working folder that is not there fails the start and is named"""
    for n, path in enumerate((k.home + "/nowhere", "/srv/nowhere")):
        failed, _ = k.ran(f"{n}.1.0", "true", workdir=path)
        assert failed["ev"] == "failed" and path in failed["msg"] and failed["hint"], failed
    os.mkdir(k.home + "/x")
    os.chown(k.home + "/x", 4711, 4711)
    _, text = k.ran("5.1.0", "pwd", workdir=k.home + "/x")
    assert text == k.home + "/x\n", text


def stopping_is_gentle_first(k):
    """stop sends TERM; a job that ends by itself keeps its exit code"""
    k.ask("1.1.0", "trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    k.until_output("1.1.0", "up")
    k.send("stop", "1.1.0", grace_ms=30000)
    ended = k.event("ended", task="1.1.0")
    assert (ended["code"], ended["signal"], ended["why"]) == (5, 0, "stopped"), ended
    assert "saved" in k.output("1.1.0")


def stopping_is_final(k):
    """a job that ignores TERM is killed after the grace, with all its processes"""
    k.ask("1.1.0", "trap '' TERM; setsid sleep 1000 & (setsid sleep 1001 &) ; echo up; while :; do sleep 1; done")
    k.until_output("1.1.0", "up")
    pids = k.pids("1.1.0")
    assert len(pids) >= 5, pids
    began = time.monotonic()
    k.send("stop", "1.1.0", grace_ms=300)
    ended = k.event("ended", task="1.1.0")
    assert time.monotonic() - began >= 0.3
    assert (ended["signal"], ended["why"]) == (9, "stopped"), ended
    assert all(is_gone(p) for p in pids) and k.left() == [], k.left()


def a_signal_reaches_the_job(k):
    """a signal reaches the job"""
    k.ask("1.1.0", "trap 'echo got it; exit 0' USR1; echo up; while :; do sleep 0.05; done")
    k.until_output("1.1.0", "up")
    k.send("signal", "1.1.0", signal=10)
    assert k.event("ended", task="1.1.0")["code"] == 0
    assert "got it" in k.output("1.1.0")


def cpu_ticks(pids):
    total = 0
    for p in pids:
        try:
            with open(f"/proc/{p}/stat") as f:
                total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        except OSError:  # one that only helped it to begin
            pass
    return total


def pausing_stands_still(k):
    """a paused job uses no CPU, goes on where it was, and can be paused twice"""
    k.ask("1.1.0", "i=0; while :; do i=$((i+1)); echo $i; done >/tmp/n & echo up; wait")
    k.until_output("1.1.0", "up")
    k.until(lambda: cpu_ticks(k.pids("1.1.0")) > 2, "it computes")
    for _ in range(2):
        k.send("pause", "1.1.0")
        k.event("paused", task="1.1.0")
    pids = k.standing("1.1.0")
    assert pids and len(pids) >= 3, f"the kernel does not say that they stand still: {pids}"
    before = cpu_ticks(pids)
    ended, _ = k.ran("2.1.0", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")  # another computes from its start to its end
    assert ended["cpu_ms"] > 0 and cpu_ticks(pids) == before and k.standing("1.1.0") == pids, (ended, before, cpu_ticks(pids))
    assert k.sync()["1.1.0"] == ["started", "paused"]
    for _ in range(2):
        k.send("resume", "1.1.0")
        k.event("resumed", task="1.1.0")
    k.until(lambda: cpu_ticks(pids) > before, "it goes on")
    k.send("pause", "1.1.0")
    k.event("paused", task="1.1.0")
    k.send("stop", "1.1.0", grace_ms=200)
    ended = k.event("ended", task="1.1.0")
    assert ended["why"] == "stopped" and k.left() == [], (ended, k.left())


def memory_is_bounded(k):
    """a job that wants too much memory ends as a whole, and that is said"""
    bomb = "python3 -c 'x = bytearray(500 << 20)'"
    ended, _ = k.ran("1.1.0", bomb, mem_mib=100)
    assert ended["why"] == "out_of_memory" and ended["mem_peak_mib"] <= 100, ended
    # Only a part of it was hit; it would have gone on for ever.
    ended, _ = k.ran("2.1.0", f"trap '' TERM; {bomb}; echo survived; sleep 1000", mem_mib=100)
    assert ended["why"] == "out_of_memory", ended


def processes_are_bounded(k):
    """a fork bomb does not get beyond its number of processes"""
    bomb = """
import os, time
print("up", flush=True)
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""
    k.ask("1.1.0", "", argv=["python3", "-c", bomb], pids_max=50)
    k.until_output("1.1.0", "up")
    k.until(lambda: len(k.pids("1.1.0")) > 40, "it comes close to its bound")
    refused = k.refused_forks("1.1.0")
    k.until(lambda: k.refused_forks("1.1.0") > refused + 100, "it tries to get beyond")
    assert len(k.pids("1.1.0")) <= 54, k.pids("1.1.0")
    k.send("stop", "1.1.0", grace_ms=0)
    assert k.event("ended", task="1.1.0")["why"] == "stopped"
    assert k.left() == []


def time_is_bounded(k):
    """a job's time is bounded; a pause does not count"""
    ended, _ = k.ran("1.1.0", "sleep 1000", max_time_ms=300, grace_ms=5000)
    assert (ended["signal"], ended["why"]) == (15, "time_limit"), ended
    for n, limit_ms in enumerate((4000, 16000, 64000, 256000), 2):  # so long we may take until it is paused; the next has longer
        task = f"{n}.1.0"
        k.ask(task, "sleep 1000", max_time_ms=limit_ms)
        started = k.event("started", task=task)
        k.send("pause", task)
        paused = k.event("paused", "ended", task=task)
        if paused["ev"] == "paused":
            break
    k.ran("1.2.0", "sleep 1")
    resumes_ms = time.time_ns() // 1000000
    k.send("resume", task)
    ended = k.event("ended", task=task)
    stood_ms = resumes_ms - paused["t_ms"]
    assert stood_ms >= 900 and ended["why"] == "time_limit", (stood_ms, ended)
    assert ended["t_ms"] - started["t_ms"] >= limit_ms + stood_ms - 10, (stood_ms, started, ended)


def ends_wait_for_descriptors(k):
    """a task that ends while the keeper can open nothing is told as it ended once it can, and leaves nothing"""
    k.ask("1.1.0", "sleep 100000")
    k.event("started", task="1.1.0")
    before = resource.prlimit(k.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(k.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    for pid in k.pids("1.1.0"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    k.until(lambda: "task.waits" in k.messages(), "the keeper to have no descriptor")
    resource.prlimit(k.process.pid, resource.RLIMIT_NOFILE, before)
    ended = k.event("ended", task="1.1.0")
    assert ended["signal"] == 9, ended
    assert k.left() == [], k.left()
    k.kill()
    os.makedirs(k.run + "/tasks/7.1.0/bundle")  # as a keeper left it that could not remove it
    k.start()
    assert k.left() == [], k.left()


def time_is_not_the_walls(k):
    """a clock that jumps a year ends no job before its time, nor does a restart meanwhile"""
    def look(name):
        ended, _ = k.ran(name, "sleep 1000", max_time_ms=300, grace_ms=5000)
        assert ended["why"] == "time_limit", ended  # so the keeper has looked at all limits since
    wall = k.dir + "/wall"
    k.kill()
    with open(wall, "w") as f:
        f.write("0")
    k.start(env={"NIGHTSHIFT_TEST_WALL": wall})
    k.ask("1.1.0", "sleep 100000", max_time_ms=24 * 3600 * 1000, grace_ms=100)
    k.event("started", task="1.1.0")
    with open(wall, "w") as f:
        f.write(str(365 * 24 * 3600 * 1000))
    look("2.1.0")
    k.kill()
    k.start(env={"NIGHTSHIFT_TEST_WALL": wall})
    look("3.1.0")
    assert k.pids("1.1.0")
    k.send("stop", "1.1.0", grace_ms=0)
    assert k.event("ended", task="1.1.0")["why"] == "stopped"


FALSE_INIT = """#!/usr/bin/python3
import os, signal, socket, struct, time
for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(name, signal.SIG_IGN)
s = socket.socket(fileno=3).accept()[0]
s.sendall(struct.pack(">Iq", %d << 24 | 8, int(time.time() * 1000) + 10 ** 12))
while %r:
    os.write(5, b"x" * 65536)
while True:
    time.sleep(1000)
"""


def false_supervisor(k, writes):
    # Restarts it with a nightshift-init that is the user's: it lies about the time, and is deaf.
    with open(k.dir + "/false-init", "w") as f:
        f.write(FALSE_INIT % (STARTED, writes))
    os.chmod(k.dir + "/false-init", 0o755)
    k.kill()
    k.options = ("--init", k.dir + "/false-init")
    k.start()


def time_is_the_keepers(k):
    """a supervisor that lies about when it began, and hears nothing, has no more time for that; nor after a restart"""
    false_supervisor(k, False)
    k.ask("1.1.0", "true", max_time_ms=300, grace_ms=100)
    ended = k.event("ended", task="1.1.0")
    assert (ended["signal"], ended["why"]) == (9, "time_limit"), ended
    k.ask("2.1.0", "true", max_time_ms=2000, grace_ms=100)
    k.event("started", task="2.1.0")
    k.kill()
    with open(k.state + "/tasks/2.1.0/status", "a") as f:
        f.write(f"started {10 ** 13}\n")
    k.start()
    assert k.event("ended", task="2.1.0")["why"] == "time_limit"


def output_is_the_keepers(k):
    """a supervisor that writes more than its log may hold is ended, and what it wrote is cut"""
    false_supervisor(k, True)
    ended, _ = k.ran("1.1.0", "true", log_bytes=262144)
    assert ended["why"] == "too_much_output", ended
    assert sum(os.stat(f"{k.state}/tasks/1.1.0/log.{i}").st_size for i in range(4)) <= 400000


def a_start_is_idempotent(k):
    """two starts of one task run it once, also after its end, until it is forgotten"""
    for _ in range(3):
        k.ask("1.1.0", "echo once >>count; sleep 0.3")
    k.event("ended", task="1.1.0")
    k.ask("1.1.0", "echo twice >>count")
    assert k.event("ended", task="1.1.0")["code"] == 0
    with open(k.home + "/count") as f:
        assert f.read() == "once\n"
    assert k.sync()["1.1.0"] == ["ended"]
    k.send("forget", "1.1.0")
    k.send("forget", "1.1.0")
    assert k.sync() == {}
    assert sorted(os.listdir(k.state + "/tasks/1.1.0")) == [f"log.{i}" for i in range(4)]
    k.send("purge", "1.1.0")
    k.sync()
    assert os.listdir(k.state + "/tasks") == []


def forgetting_waits(k):
    """a job that runs cannot be forgotten"""
    k.ask("1.1.0", "sleep 1000")
    k.event("started", task="1.1.0")
    k.send("forget", "1.1.0")
    k.send("purge", "1.1.0")
    assert k.sync()["1.1.0"] == ["started"]
    k.send("stop", "1.1.0", grace_ms=0)
    k.event("ended", task="1.1.0")


def bad_requests(k):
    """a request that cannot be read fails its task and names the field; the connection goes on"""
    for n, (field, value) in enumerate((("mem_mib", -1), ("workdir", "relative"), ("argv", "x"),
                                        ("user", {}), ("surprise", 1), ("gpus", [{"index": 0}]))):
        k.ask(f"{n}.1.0", "true", **{field: value})
        failed = k.event("failed", task=f"{n}.1.0")
        assert failed["code"] == "invalid" and field in failed["msg"], failed
    for user in ({"uid": 0}, {"uid": 999}, {"gid": 0}, {"groups": [0]}):
        k.ask("9.1.0", "true", user={**k.user, **user})
        assert k.event("failed", task="9.1.0")["code"] == "denied", user
    k.socket.sendall(b"not json\n[]\n{}\n\n" + b'{"do":"dance"}\n')
    assert k.ran("8.1.0", "exit 4")[0]["code"] == 4


def a_home_of_ours(k):
    """a home among ours is there inside, also when its user cannot reach it outside, as below /root"""
    os.chmod(k.dir, 0o700)
    user = {**USER, "home": k.state + "/homes/ana"}
    for task in ("1.1.0", "2.1.0"):
        ended, text = k.ran(task, "pwd; echo x >>kept; cat kept", user=user)
        assert ended["code"] == 0 and text.splitlines()[0] == user["home"], (ended, text)
    assert text.splitlines()[1:] == ["x", "x"], text
    failed, _ = k.ran("3.1.0", "true", user=user, workdir=user["home"] + "/nowhere")
    assert failed["ev"] == "failed" and "working folder" in failed["msg"], failed
    failed, _ = k.ran("4.1.0", "true", user={**USER, "home": k.state + "/homes/../tasks"})
    assert failed["ev"] == "failed", failed


def a_folder_that_is_not_inside(k):
    """a job whose user was in a folder that is not there inside begins at home, and is told so"""
    _, text = k.ran("1.1.0", "pwd", cwd="/tmp")
    assert text == k.home + "\n", text
    assert k.output("1.1.0", ["meta"]).splitlines()[1:] == [
        f"the folder /tmp is not there inside the job: it begins in {k.home}"], k.output("1.1.0", ["meta"])
    _, text = k.ran("2.1.0", "pwd", cwd="/usr/share")
    assert text == "/usr/share\n" and len(k.output("2.1.0", ["meta"]).splitlines()) == 1, text


def a_volume_may_be_a_file(k):
    """a single file can be given to a job too, to read or to write"""
    path = k.dir + "/one"
    with open(path, "w") as f:
        f.write("given\n")
    os.chown(path, 4711, 4711)
    ended, text = k.ran("1.1.0", "cat /mnt/in; echo more >>/mnt/out; echo x >>/mnt/in",
                        volumes=[{"from": path, "to": "/mnt/in", "ro": True}, {"from": path, "to": "/mnt/out"}])
    with open(path) as f:
        assert f.read() == "given\nmore\n", (ended, text)
    assert text.startswith("given\n") and "Read-only" in text, text


def fake_gpus(k, *lines):
    """Restarts it on a machine with two GPUs, whose driver and devices are fakes."""
    dev = k.dir + "/dev"
    os.makedirs(dev, exist_ok=True)
    for name in ("nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm"):
        open(f"{dev}/{name}", "w").close()
    with open(k.dir + "/nvml", "w") as f:
        f.write("driver 550.54.15\n")
        for n, minor in enumerate((3, 0)):
            f.write(f"gpu NVIDIA A100-SXM4-80GB\nuuid GPU-{n}\nminor {minor}\nmemory 81920 512\n")
        f.write("".join(line + "\n" for line in lines))
    k.kill()
    k.options += ("--dev", dev, "--nvml", os.path.abspath(f"{BUILD}/tests/fakes/libnvidia-ml.so.1"))
    k.env = {"NIGHTSHIFT_FAKE_NVML": k.dir + "/nvml", "NIGHTSHIFT_FAKE_DEV": dev}
    k.start(env=k.env)


def only_its_own_gpus(k):
    """a job sees the device nodes of its own GPUs, and variables that name them"""
    fake_gpus(k)
    assert [g["uuid"] for g in k.node["gpus"]] == ["GPU-0", "GPU-1"], k.node
    look = "cd /dev; echo nvidia*; echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"
    for n, (gpus, nodes, names) in enumerate((
            ([0], "nvidia-uvm nvidia3 nvidiactl", "GPU-0 GPU-0"),
            ([0, 1], "nvidia-uvm nvidia0 nvidia3 nvidiactl", "GPU-0,GPU-1 GPU-0,GPU-1"),
            ([], "nvidia*", "void"))):
        _, text = k.ran(f"{n}.1.0", look, env=["CUDA_VISIBLE_DEVICES=all"],
                        gpus=[{"index": i, "uuid": f"GPU-{i}", "milli": 1000} for i in gpus])
        assert text.splitlines() == [nodes, names], text
    failed, _ = k.ran("9.1.0", look, gpus=[{"index": 7, "uuid": "GPU-7"}])
    assert failed["ev"] == "failed" and "GPU-7" in failed["msg"], failed


def leftovers_are_named(k):
    """a process on a GPU that no living job owns is told, with its owner and command"""
    stray = subprocess.Popen(["sleep", "1000"])
    k.ask("1.1.0", "sleep 1000")
    ours = k.event("started", task="1.1.0")["pid"]
    try:
        fake_gpus(k, f"process {stray.pid} 100 compute", f"process {ours} 100 compute")
        k.send("sync")
        k.event("ready")
        left = k.event("leftover")
        assert left["pid"] == stray.pid and left["gpu"] == "GPU-1" and not left["ended"], left
        assert left["command"] == "sleep 1000" and left["owner"], left
        k.send("stop", "1.1.0", grace_ms=0)
        while True:  # nothing of the living job was called a leftover
            event = k.event("leftover", "ended")
            assert event.get("pid") != ours, event
            if event["ev"] == "ended":
                break
        assert stray.poll() is None
    finally:
        stray.kill()
        stray.wait()


def lost_files(k):
    """a job whose files were lost is a leftover; with --end-leftovers it is ended"""
    k.ask("1.1.0", "sleep 1000")
    pid = k.event("started", task="1.1.0")["pid"]
    k.kill()
    shutil.rmtree(k.state + "/tasks/1.1.0")
    k.start()
    k.send("sync")
    k.event("ready")
    told = k.event("leftover")
    assert told["task"] == "1.1.0" and not told["ended"] and not is_gone(pid), told
    k.kill()
    k.options += ("--end-leftovers",)
    k.start()
    k.send("sync")
    assert k.event("leftover")["ended"]
    k.until(lambda: is_gone(pid), "it is ended")
    for top in (k.run + "/tasks/1.1.0", k.run + "/crun/1.1.0"):
        shutil.rmtree(top, ignore_errors=True)
    k.until(lambda: (k.sync(), not k.pids("1.1.0"))[1], "its group is empty")
    k.sync()


def a_daemon_is_replaced(k):
    """a second daemon takes the place of the first, and is told everything by sync"""
    k.ask("1.1.0", "sleep 1000")
    k.event("started", task="1.1.0")
    old = k.socket
    k.connect()
    assert old.recv(1) == b""
    assert k.sync()["1.1.0"] == ["started"]
    k.send("stop", "1.1.0", grace_ms=0)
    k.event("ended", task="1.1.0")


def a_killed_keeper_harms_nobody(k):
    """a keeper killed while a job runs: the job and its output go on, the next keeper tells its end"""
    k.ask("1.1.0", "echo before; while ! [ -e go ]; do sleep 0.02; done; echo after; exit 6")
    k.until_output("1.1.0", "before")
    started = k.event("started", task="1.1.0")
    k.kill()
    k.start()
    assert k.sync()["1.1.0", "started"]["pid"] == started["pid"] != 0
    open(k.home + "/go", "w").close()
    ended = k.event("ended", task="1.1.0")
    assert (ended["code"], ended["why"]) == (6, "exited") and ended["cpu_ms"] > 0, ended
    assert k.output("1.1.0") == "before\nafter\n" and k.left() == [], k.left()


def an_end_nobody_saw(k):
    """a job that ended while there was no keeper: the next one finds its exit code"""
    k.ask("1.1.0", "echo up; while ! [ -e go ]; do sleep 0.02; done; exit 7")
    k.until_output("1.1.0", "up")
    pids = k.pids("1.1.0")
    k.kill()
    open(k.home + "/go", "w").close()
    k.until(lambda: all(is_gone(p) for p in pids), "the job ends")
    k.start()
    told = k.sync()
    assert told["1.1.0"] == ["ended"] and told["1.1.0", "ended"]["code"] == 7, told
    assert k.left() == [], k.left()


def a_supervisor_that_was_killed(k):
    """a job whose supervisor was killed is lost, and that is said"""
    k.ask("1.1.0", "sleep 1000")
    os.kill(k.event("started", task="1.1.0")["pid"], 9)
    ended = k.event("ended", task="1.1.0")
    assert (ended["signal"], ended["why"]) == (9, "lost") and k.left() == [], ended


def program_of(pid):
    """As it was called; empty when it has just ended, as the job's sleeps do."""
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return os.path.basename(f.read().split("\0")[0])
    except OSError:
        return ""


def a_container_runtime_that_was_killed(k):
    """a job whose crun was killed goes on, and nothing is left of it in the end"""
    k.ask("1.1.0", "echo up; while ! [ -e go ]; do sleep 0.02; done; exit 4")
    k.until_output("1.1.0", "up")
    runtimes = [pid for pid in k.pids("1.1.0") if program_of(pid) == "crun"]
    assert runtimes, "crun is not there"
    for pid in runtimes:
        os.kill(pid, 9)
        k.until(lambda: is_gone(pid), "crun is gone")
    open(k.home + "/go", "w").close()
    ended = k.event("ended", task="1.1.0")
    assert (ended["code"], ended["why"]) == (4, "exited") and k.left() == [], (ended, k.left())


def what_was_intended_is_done(k):
    """a stop, a pause and a time limit hold across a killed keeper"""
    k.ask("1.1.0", "trap '' TERM; echo up; while :; do sleep 1; done")
    k.ask("2.1.0", "echo up; sleep 1000")
    k.ask("3.1.0", "echo up; sleep 1000", max_time_ms=8000)
    for t in ("1.1.0", "2.1.0", "3.1.0"):
        k.until_output(t, "up")
    k.send("stop", "1.1.0", grace_ms=5000)
    k.send("pause", "2.1.0")
    k.event("paused", task="2.1.0")
    k.kill()
    k.start()
    told = k.sync()
    assert told["2.1.0"] == ["started", "paused"]
    got = {t: told[t, "ended"]["why"] for t in ("1.1.0", "3.1.0") if (t, "ended") in told}
    while len(got) < 2:
        e = k.event("ended")
        got[e["task"]] = e["why"]
    assert got == {"1.1.0": "stopped", "3.1.0": "time_limit"}, got
    k.send("stop", "2.1.0", grace_ms=5000)
    assert k.event("ended", task="2.1.0")["signal"] == 15


def dying_while_starting(k):
    """a keeper that dies at any step of a start: the job runs exactly once in the end"""
    k.kill()
    for n, point in enumerate(FAIL_POINTS_START):
        task = f"{n}.1.0"
        k.start(env={"NIGHTSHIFT_FAILPOINT": "keeper." + point})
        k.ask(task, f"echo run >>count{n}; while ! [ -e go{n} ]; do sleep 0.02; done")
        assert k.wait_dead() == -9, point
        k.start()
        told = k.sync()
        if task not in told:
            k.ask(task, f"echo run >>count{n}; while ! [ -e go{n} ]; do sleep 0.02; done")
        if "started" not in told.get(task, []):
            k.event("started", task=task)
        open(f"{k.home}/go{n}", "w").close()
        ended = k.event("ended", task=task)
        assert (ended["code"], ended["why"]) == (0, "exited"), (point, ended)
        with open(f"{k.home}/count{n}") as f:
            assert f.read() == "run\n", point
        k.kill()
    assert k.left() == [], k.left()
    k.start()


def dying_while_ending(k):
    """a keeper that dies at any step of an end: the end is told as it was, and nothing is left"""
    k.kill()
    for n, point in enumerate(FAIL_POINTS_END):
        task = f"{n}.1.0"
        k.start(env={"NIGHTSHIFT_FAILPOINT": "keeper." + point})
        k.ask(task, "exit 9")
        assert k.wait_dead() == -9, point
        k.start()
        told = k.sync()
        assert told[task] == ["ended"], (point, told)
        ended = told[task, "ended"]
        assert (ended["code"], ended["why"]) == (9, "exited"), (point, ended)
        assert k.left() == [], (point, k.left())
        k.send("forget", task)
        k.sync()
        k.kill()
    k.start()


def dying_while_forgetting(k):
    """a keeper that dies while it forgets: the next one forgets the rest, or tells the end again"""
    for visit in range(1, 5):
        task = f"{visit}.1.0"
        k.kill()
        k.start(env={"NIGHTSHIFT_FAILPOINT": f"keeper.forgetting:{visit}"})
        k.ran(task, "true")
        k.send("forget", task)
        assert k.wait_dead() == -9
        k.start()
        assert task not in k.sync()
        assert set(os.listdir(f"{k.state}/tasks/{task}")) == {f"log.{i}" for i in range(4)}
        k.send("purge", task)
        k.sync()


def dying_on_verbs(k):
    """a keeper that dies between the words and the deed of stop and pause"""
    for n, (point, verb) in enumerate((("after_stop_note", "stop"), ("after_freeze", "pause"))):
        task = f"{n}.1.0"
        k.kill()
        k.start(env={"NIGHTSHIFT_FAILPOINT": "keeper." + point})
        k.ask(task, "echo up; sleep 1000")
        k.until_output(task, "up")
        k.send(verb, task, **({"grace_ms": 60000} if verb == "stop" else {}))
        assert k.wait_dead() == -9
        k.start()
        if verb == "pause":
            assert k.sync()[task] == ["started", "paused"]
            k.send("stop", task, grace_ms=60000)
        ended = k.event("ended", task=task) if verb == "pause" else None
        while not ended:
            told = k.sync()
            ended = told.get((task, "ended"))
        assert (ended["signal"], ended["why"]) == (15, "stopped"), ended


def one_keeper_only(k):
    """a second keeper for the same folder is refused, and the first is named"""
    first = k.process
    k.start(connect=False)
    assert k.process.wait(timeout=PATIENCE_S) != 0
    assert f"process {first.pid}" in k.messages()
    k.process = first


def many_at_once(k):
    """sixty starts at once all run, in turn, and all end"""
    for i in range(60):
        k.ask(f"{i}.1.0", f"exit {i % 7}")
    ended = {}
    while len(ended) < 60:
        e = k.event("ended", "failed")
        ended[e["task"]] = e.get("code")
    assert ended == {f"{i}.1.0": i % 7 for i in range(60)}, ended
    assert k.left() == []


def stopped_before_its_turn(k):
    """a job that is stopped while it waits to be started never runs, and its end is told"""
    with k.at_once():
        for i in range(20):
            k.ask(f"{i}.1.0", "true")
        k.ask("99.1.0", "touch ran")
        k.send("stop", "99.1.0")
    ended = {}
    while len(ended) < 21:
        e = k.event("ended", "failed")
        ended[e["task"]] = e
    assert ended["99.1.0"]["why"] == "stopped" and not os.path.exists(k.home + "/ran"), ended["99.1.0"]
    assert k.left() == []


def a_terminal(k):
    """with tty the job has a terminal"""
    ended, text = k.ran("1.1.0", "tty; test -t 0 && test -t 1 && echo yes", tty=True)
    assert ended["code"] == 0 and "/dev/pts/" in text and "yes" in text, (ended, text)


def without_root(k):
    """without root: contained, one user only, killed with all its processes"""
    k.close()
    k = Keeper("--mode", "rootless", user=USER)
    try:
        assert k.hello["mode"] == "rootless" and not k.hello["caps"]["multi_user"], k.hello
        ended, text = k.ran("1.1.0", "cat /proc/self/status; hostname; touch /usr/x; exit 3")
        s = status_of(text)
        assert ended["code"] == 3 and "job-1" in text and "Read-only" in text, (ended, text)
        assert int(s["CapBnd"], 16) == 0 and s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s
        k.ask("2.1.0", "true", user={**k.user, "uid": 4712, "name": "bob"})
        failed = k.event("failed", task="2.1.0")
        assert failed["code"] == "denied" and "serves one user" in failed["msg"], failed
        stubborn(k, "3.1.0")
    finally:
        k.close()


def without_anything(k):
    """without containers: processes of one user, and hello says that nothing contains them"""
    k.close()
    k = Keeper("--mode", "plain", user=USER)
    try:
        assert k.hello["mode"] == "plain" and "nothing contains" in k.hello["note"], k.hello
        ended, text = k.ran("1.1.0", "id -u; pwd; exit 3")
        assert ended["code"] == 3 and text == f"4711\n{k.home}\n", (ended, text)
        k.ask("2.1.0", "true", user={**k.user, "uid": 4712})
        assert k.event("failed", task="2.1.0")["code"] == "denied"
        stubborn(k, "3.1.0")
    finally:
        k.close()


def stubborn(k, task):
    k.ask(task, "trap '' TERM; setsid sleep 1000 & echo $!; echo $$; echo up; while :; do sleep 1; done")
    pid = k.event("started", task=task)["pid"]
    k.until_output(task, "up")
    k.kill()
    k.start()
    assert k.sync()[task] == ["started"]
    k.send("stop", task, grace_ms=200)
    ended = k.event("ended", task=task)
    assert (ended["signal"], ended["why"]) == (9, "stopped") and is_gone(pid), ended
    if k.hello["mode"] == "plain":  # the numbers are the machine's own
        assert all(is_gone(int(p)) for p in k.output(task).split()[:2])
    assert k.left() == [], k.left()


def a_network_of_its_tenant(k):
    """jobs of a tenant reach each other by address, and a killed keeper does not cut them off"""
    k.close()
    octet = claims.second_octet()
    name = f"nk{octet}"
    k = Keeper("--net-range", f"10.{octet}.0.0/20", "--net-prefix", name, "--net-table", name)
    try:
        if not k.hello["caps"]["network"]:
            return k.node["no_network"]["msg"]
        k.ask("1.1.0", "ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1; "
              "exec python3 -m http.server 8000 --directory /etc", network="tenant")
        k.until_output("1.1.0", f"10.{octet}.")
        k.kill()
        k.start()
        assert k.sync()["1.1.0"] == ["started"]
        address = k.output("1.1.0").split()[0]
        get = (f"import time, urllib.request as u\nwhile True:\n  try:\n    "
               f"print(u.urlopen('http://{address}:8000/hostname', timeout=5).read().decode()); break"
               f"\n  except OSError: time.sleep(0.1)")
        # Whoever may see it waits for its server as long as that takes; by then it is there for the other as well.
        _, text = k.ran("2.1.0", "", argv=["python3", "-c", get], network="tenant", tenant="vision", max_time_ms=PATIENCE_S * 1000)
        assert "job-1" in text, text
        once = f"import urllib.request as u\ntry: print(u.urlopen('http://{address}:8000/hostname', timeout=5).read().decode())\n" \
               "except OSError as why: print('no way:', why)"
        _, text = k.ran("3.1.0", "", argv=["python3", "-c", once], network="tenant", tenant="speech")
        assert "no way:" in text and "job-1" not in text, text
        k.send("stop", "1.1.0", grace_ms=0)
        k.event("ended", task="1.1.0")
        assert [x for x in k.left() if "netns" not in x] == [], k.left()
    finally:
        k.close()
        subprocess.run(["nft", "delete", "table", "inet", name], capture_output=True, check=False)
        for link in os.listdir("/sys/class/net"):
            if link.startswith(name):
                subprocess.run(["ip", "link", "del", link], check=False)


def networks_come_late(k):
    """networks that could not be made at the start are made when a task needs one; a task from before keeps its own"""
    mode = k.hello["mode"]
    k.close()
    if mode != "root" or not shutil.which("nft"):
        return f"mode {mode} has no networks" if mode != "root" else "nft is missing"
    octet = claims.second_octet()
    name, folder = f"nk{octet}", tempfile.mkdtemp(prefix="nft.", dir="/tmp")
    real = shutil.which("nft")
    with open(f"{folder}/nft", "w") as f:
        f.write(f"#!/bin/sh\n[ ! -e {folder}/broken ] || {{ echo not yet >&2; exit 1; }}\nexec {real} \"$@\"\n")
    os.chmod(f"{folder}/nft", 0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    server = "ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1; exec python3 -m http.server 8000 --directory /etc"

    def refused_then_made(task, command):
        k.ask(task, command, network="tenant")
        assert "not yet" in k.event("failed", task=task)["msg"]
        os.unlink(f"{folder}/broken")

        def is_made():  # the keeper tries it once in some seconds; in between it refuses as before
            k.send("forget", task)
            k.ask(task, command, network="tenant")
            return k.event("started", "failed", task=task)["ev"] == "started"
        k.until(is_made, "networks to be made")

    open(f"{folder}/broken", "w").close()
    k = Keeper("--net-range", f"10.{octet}.0.0/20", "--net-prefix", name, "--net-table", name, env=env)
    try:
        assert not k.hello["caps"]["network"], k.hello
        refused_then_made("1.1.0", server)
        assert k.hello["caps"]["network"], k.hello
        k.until_output("1.1.0", f"10.{octet}.")
        address = k.output("1.1.0").split()[0]
        open(f"{folder}/broken", "w").close()
        k.kill()
        k.start(env=env)
        assert not k.hello["caps"]["network"] and k.sync()["1.1.0"] == ["started"]
        get = (f"import time, urllib.request as u\nwhile True:\n  try:\n    "
               f"print(u.urlopen('http://{address}:8000/hostname', timeout=5).read().decode()); break"
               f"\n  except OSError: time.sleep(0.1)")
        refused_then_made("2.1.0", f"timeout {PATIENCE_S} python3 -c \"{get}\"")
        k.event("ended", task="2.1.0")
        assert "job-1" in k.output("2.1.0"), k.output("2.1.0")
        k.send("stop", "1.1.0", grace_ms=0)
        k.event("ended", task="1.1.0")
    finally:
        k.close()
        shutil.rmtree(folder)
        subprocess.run(["nft", "delete", "table", "inet", name], capture_output=True, check=False)
        for link in os.listdir("/sys/class/net"):
            if link.startswith(name):
                subprocess.run(["ip", "link", "del", link], check=False)


def told_to_end_while_it_begins(k):
    """a keeper that is told to end while it begins takes away what it has made"""
    mode = k.hello["mode"]
    if mode != "root" or not shutil.which("nft"):
        return f"mode {mode} has no networks" if mode != "root" else "nft is missing"
    octet, real = claims.second_octet(), shutil.which("nft")
    name, folder = f"nk{octet}", f"{k.dir}/tools"
    os.mkdir(folder)
    with open(f"{folder}/nft", "w") as f:
        f.write(f'#!/bin/sh\n[ "$1" != -f ] || {{ echo x >>{folder}/told; kill -TERM $PPID; }}\nexec {real} "$@"\n')
    os.chmod(f"{folder}/nft", 0o755)
    k.kill()
    k.options = ("--net-range", f"10.{octet}.0.0/20", "--net-prefix", name, "--net-table", name, "--tidy")
    try:
        k.start(env={"PATH": f"{folder}:{os.environ['PATH']}"}, connect=False)
        status = k.wait_dead()
        tables = subprocess.run([real, "list", "tables"], capture_output=True, text=True, check=True).stdout
        assert os.path.exists(f"{folder}/told") and status == 0 and f" {name}\n" not in tables, (status, tables)
        assert "keeper.stopped" in k.messages()
    finally:
        subprocess.run([real, "delete", "table", "inet", name], capture_output=True, check=False)


def silent(k, *options):
    # Restarts it beside a file system that never answers.
    k.kill()
    k.options = options
    k.start()
    away = k.dir + "/away"
    os.makedirs(away, exist_ok=True)
    return silent_fs.SilentFs(away)


def others_start_meanwhile(k):
    """a start that waits for a file server holds up no other, also where one starts at a time, and can be stopped"""
    if silent_fs.why_not():
        return silent_fs.why_not()
    with silent(k, "--parallel", "1", "--start-limit", "86400") as fs:
        for n, what in enumerate(({"volumes": [{"from": fs.path + "/data", "to": "/mnt/x"}]},
                                  {"user": {**k.user, "home": fs.path + "/ana"}}, {"workdir": fs.path + "/work"})):
            k.ask(f"{n}.1.0", "true", **what)
        assert fs.asked.wait(PATIENCE_S)
        assert k.ran("9.1.0", "exit 3")[0]["code"] == 3
        for n in range(2):
            k.send("stop", f"{n}.1.0", grace_ms=0)
            assert k.event("ended", task=f"{n}.1.0")["why"] == "stopped"
    # The kernel lets go of what it held, and that is cleared away too.
    k.until(lambda: not k.left(), "nothing is left")


def a_start_has_a_limit(k):
    """a start that waits for a file server is given up after a while, and what does not answer is named"""
    if silent_fs.why_not():
        return silent_fs.why_not()
    with silent(k, "--start-limit", "1") as fs:
        for n, (path, what) in enumerate((
                (fs.path + "/data", {"volumes": [{"from": fs.path + "/data", "to": "/mnt/x"}]}),
                (fs.path + "/ana", {"user": {**k.user, "home": fs.path + "/ana"}}))):
            k.ask(f"{n}.1.0", "true", **what)
            failed = k.event("failed", task=f"{n}.1.0")
            assert failed["code"] == "unavailable" and f"'{path}' does not answer" in failed["msg"], failed
            assert failed["hint"], failed
    k.until(lambda: not k.left(), "nothing is left")


def make_image(folder):
    """A small image of a few of this machine's programs, as folder/image:v1."""
    root = folder + "/tree"
    for program in ("/bin/sh", "/bin/cat", "/bin/ls", "/usr/bin/id"):
        files = [program]
        for line in subprocess.check_output(["ldd", program], text=True).splitlines():
            files += [word for word in line.split() if word.startswith("/")]
        for path in files:
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
    os.makedirs(root + "/work")
    os.makedirs(root + "/etc")
    with open(root + "/etc/motto", "w") as f:
        f.write("from the image\n")
    with open(root + "/setuid", "w") as f:
        f.write("")
    os.chmod(root + "/setuid", 0o4755)
    os.chmod(root + "/work", 0o777)
    image = f"{folder}/image:v1"
    for command in (["umoci", "init", "--layout", folder + "/image"], ["umoci", "new", "--image", image],
                    ["umoci", "insert", "--image", image, root, "/"],
                    ["umoci", "config", "--image", image, "--config.env", "FROM=image",
                     "--config.env", "BOTH=image", "--config.workingdir", "/work",
                     "--config.entrypoint", "/bin/sh", "--config.cmd", "-c",
                     "--config.cmd", "echo its own command"]):
        subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return "oci:" + image


def no_images(k):
    """Why images cannot be tried here, or None: then with a supervisor that runs in any."""
    if not k.hello["caps"]["images"]:
        return k.node["no_images"]["msg"]
    k.kill()
    k.options += ("--init", plain_init())
    k.start()
    return None


def an_image_with_gpus(k):
    """an image gets the files of the GPU driver that the machine's CDI specs name, or is refused"""
    reason = no_images(k)
    if reason:
        return reason
    image, specs, gpu = make_image(k.dir + "/i"), k.dir + "/cdi", [{"index": 0, "uuid": "GPU-0"}]
    fake_gpus(k)
    k.kill()
    k.options += ("--cdi", specs)
    k.start(env=k.env)
    failed, _ = k.ran("1.1.0", "", image=image, argv=["-c", "true"], gpus=gpu)
    assert failed["ev"] == "failed" and "driver" in failed["msg"] and "nvidia-ctk" in failed["hint"], failed
    library, hooked = k.dir + "/libcuda.so.550", k.dir + "/hooked"
    with open(library, "w") as f:
        f.write("the driver's\n")
    os.makedirs(k.dir + "/dev/nvidia-caps")
    open(k.dir + "/dev/nvidia-caps/nvidia-cap1", "w").close()
    os.mkdir(specs)
    with open(specs + "/nvidia.json", "w") as f:
        json.dump({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
            {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia-caps/nvidia-cap1"}]}}],
            "containerEdits": {
                "env": ["DRIVER=550", "NVIDIA_VISIBLE_DEVICES=void"],
                "mounts": [{"hostPath": library, "containerPath": "/usr/lib/libcuda.so.1", "options": ["rw", "bind"]}],
                "hooks": [{"hookName": "createContainer", "path": "/bin/sh",
                           "args": ["sh", "-c", f"cat >{hooked}"]}]}}, f)
    script = "cat /usr/lib/libcuda.so.1; ls /dev/nvidia-caps; echo $DRIVER $NVIDIA_VISIBLE_DEVICES; echo x >/usr/lib/libcuda.so.1"
    ended, text = k.ran("2.1.0", "", image=image, argv=["-c", script], gpus=gpu)
    assert text.splitlines()[:3] == ["the driver's", "nvidia-cap1", "550 GPU-0"], (ended, text)
    assert ended["code"] != 0 and "Read-only" in text, text
    with open(hooked) as f:
        assert json.load(f)["id"] == "2.1.0"
    _, text = k.ran("3.1.0", "", image=image, argv=["-c", "echo none: $DRIVER"])
    assert text == "none:\n", text


def an_image(k):
    """a job runs in an image: its system, its way to be run, with the user's home"""
    reason = no_images(k)
    if reason:
        return reason
    image = make_image(k.dir + "/i")
    _, text = k.ran("1.1.0", "", image=image, argv=[])
    assert text == "its own command\n", text
    script = """id -u; cat /etc/motto; ls /; echo $FROM $BOTH; cat /etc/hostname; echo x >made
        ls; echo y >/tmp/y; echo z >%s/z; ls /usr/bin/python3; cat /proc/self/status""" % k.home
    for n in (2, 3):  # what one writes the next does not see
        ended, text = k.ran(f"{n}.1.0", "", image=image, argv=["-c", script], env=["BOTH=user"])
        lines = text.splitlines()
        assert lines[:2] == ["4711", "from the image"] and "image user" in lines, text
        assert f"job-{n}" in lines and lines[lines.index(f"job-{n}") + 1] == "made", text
        assert "usr" in lines and "No such file" in text and "NoNewPrivs:\t1" in lines, text
    with open(k.home + "/z") as f:
        assert f.read() == "z\n"
    k.ask("4.1.0", "", image=image, argv=["-c", "while [ ! -e go ]; do :; done; cat /etc/motto"],
          workdir=k.home)
    k.event("started", task="4.1.0")
    k.kill()
    k.start()
    assert k.sync()["4.1.0"] == ["started"]
    open(k.home + "/go", "w").close()
    ended = k.event("ended", task="4.1.0")
    assert ended["code"] == 0 and k.output("4.1.0") == "from the image\n", ended
    assert k.left() == [], k.left()
    failed, _ = k.ran("5.1.0", "true", image="oci:/no/such:v1")
    assert failed["ev"] == "failed" and "/no/such" in failed["msg"], failed


CASES = [v for v in list(globals().values()) if callable(v) and getattr(v, "__doc__", None)
         and v.__module__ == "__main__" and v.__code__.co_varnames[:1] == ("k",)]


def main():
    only = sys.argv[1:]
    failed = 0
    cases = [c for c in CASES if not only or c.__name__ in only]
    print(f"1..{len(cases)}", flush=True)
    for n, case in enumerate(cases, 1):
        k = None
        try:
            k = Keeper()
            skip = case(k)
            print(f"ok {n} - {case.__doc__}" + (f" # SKIP {skip}" if skip else ""), flush=True)
        except Exception:
            failed += 1
            print(f"not ok {n} - {case.__doc__}", flush=True)
            for line in traceback.format_exc().splitlines() + (
                    (k.messages().splitlines()[-12:] if k and os.path.isdir(k.dir) else [])):
                print("#   " + line, flush=True)
        finally:
            if k:
                try:
                    k.close()
                except Exception:
                    print("# closing: " + traceback.format_exc().replace("\n", "\n#   "))
    sys.exit(failed != 0)


main()
