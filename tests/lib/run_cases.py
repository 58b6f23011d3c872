"""run_cases - jobs from submit to end, through the HTTP API of a real daemon with its keeper.

What the API says is compared with what /proc says: the observer here reads the processes themselves.
All cases share one cluster; each case has its own jobs.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402
from cluster import wait_for  # noqa: E402
from task import EXIT, STDIN, STDOUT, WATCH, exec_frame, frame  # noqa: E402

SMALL = {"cpus": 1, "mem": "64Mi"}
case = Cases()


def run(c, line, **spec):
    """A shell line as a job."""
    return c.submit(["sh", "-c", line], resources=spec.pop("resources", SMALL), **spec)


def finished(c, line, **spec):
    """(the job at its end, its output)"""
    number = run(c, line, **spec)
    return c.wait_end(number), c.text_of(number)


# ---- the observer ----

def processes(c, number, program=None):
    """Processes of a job: {pid: environment}, its supervisor left out."""
    found = {}
    for pid in cl.pids_with("HOME", f"{c.state}/homes/root"):
        env, name = cl.process_environ(pid), cl.proc_file(pid, "comm").decode().strip()
        if env.get("NIGHTSHIFT_JOB_ID") == str(number) and name not in ("", "nightshift-init") and \
                name == (program or name) and cl.process_birth(pid):
            found[pid] = env
    return found


def one_process(c, number, program="sleep"):
    """(pid, environment) of the first one, when there is one and the API says that it runs."""
    c.wait_state(number, "running")
    return next(iter(wait_for(f"a {program} of job {number}", lambda: processes(c, number, program)).items()))


def gpus_of(c, number):
    """What its processes were given, as they see it."""
    env = one_process(c, number)[1]
    return [gpu for gpu in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if gpu not in ("", "void", "none")]


def cpu_ticks(pid):
    words = cl.proc_file(pid, "stat").rpartition(b")")[2].split()
    return int(words[11]) + int(words[12])


# ---- running ----

@case("a job runs as its user, in namespaces of its own, and not as root")
def _(c):
    number = run(c, "id -u; id -g; pwd; echo $HOME; readlink /proc/self/ns/pid; grep CapEff /proc/self/status; "
                    "grep NoNewPrivs /proc/self/status; exec sleep 600")
    pid = one_process(c, number)[0]
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    same(status["Uid"].split(), [str(cl.JOB_UID)] * 4)
    assert len(status["NSpid"].split()) > 1 and int(status["NSpid"].split()[-1]) < 20, status["NSpid"]
    for space in ("pid", "mnt", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"), space
    home = f"{c.state}/homes/root"
    wait_for("its output", lambda: len(c.text_of(number).splitlines()) == 7)
    lines = c.text_of(number).splitlines()
    same(lines[:4], [str(cl.JOB_UID), str(cl.JOB_UID), home, home])
    same(lines[4], os.readlink(f"/proc/{pid}/ns/pid"))
    assert lines[5].split()[1].strip("0") == "" and lines[6].split()[1] == "1", lines[5:]
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    same(c.wait_end(number)["state"], "cancelled")


@case("a job cannot write to the system, nor see other processes")
def _(c):
    job, text = finished(c, "touch /usr/x /etc/x 2>/dev/null && echo wrote; ls -d /proc/[0-9]* | wc -l; "
                            "touch /tmp/x $HOME/x && echo mine")
    same(job["state"], "succeeded")
    lines = text.splitlines()
    assert "wrote" not in lines and "mine" in lines and int(lines[0]) < 8, lines


@case("exit code, signal, stderr and the tail of the log are told")
def _(c):
    job, text = finished(c, "echo out; echo err >&2; exit 42")
    same((job["state"], job["exit_code"], job["exit_signal"], job["end"]), ("failed", 42, 0, "exited"))
    same(sorted(text.split()), ["err", "out"])
    records = [line.split(" ", 3) for line in c.text_of(job["id"], "?format=records").splitlines()]
    same(sorted((r[1], r[3]) for r in records if r[1] != "meta"), [("stderr", "err"), ("stdout", "out")])
    job, _ = finished(c, "kill -SEGV $$")
    same((job["state"], job["exit_signal"]), ("failed", signal.SIGSEGV))
    job, text = finished(c, "seq 1 5000")
    same(text, "".join(f"{i}\n" for i in range(1, 5001)))
    same(c.text_of(job["id"], "?tail=3"), "4998\n4999\n5000\n")
    job, text = finished(c, "printf 'no line feed'")
    same((job["state"], text), ("succeeded", "no line feed"))


@case("a program that is not there: 127, one that cannot be run: 126")
def _(c):
    same(c.wait_end(c.submit(["/no/such/program"], resources=SMALL))["exit_code"], 127)
    same(c.wait_end(c.submit(["/etc/hostname"], resources=SMALL))["exit_code"], 126)


@case("a start that cannot succeed fails at once, and says why")
def _(c):
    job = c.wait_end(run(c, "true", volumes=[{"from": "/no/such/folder", "to": "/mnt/x"}]))
    same((job["state"], job["end"]), ("failed", "start_failed"))
    assert "/no/such/folder" in job["message"], job["message"]
    job = c.wait_end(run(c, "true", workdir="/no/such/place"))
    same(job["state"], "failed")
    assert "/no/such/place" in job["message"], job["message"]


@case("a start that may succeed later is tried again, says why, and can be cancelled")
def _(c):
    if not c.ask("GET", "/v1/server")["caps"]["images"]:
        raise Skip("there is nothing here to fetch images with")
    number = run(c, "true", image="registry.invalid/no/such:1")

    def failures():
        with open(c.log_path, encoding="utf-8") as f:
            return f.read().count(f"task.failed task={number}.1.0 ")
    wait_for("a second try", lambda: failures() > 1)
    job = c.job(number)
    same((job["state"], job["run"]), ("starting", 1))
    wait_for("the reason", lambda: "registry.invalid" in c.job(number)["message"])
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    same(c.wait_end(number)["state"], "cancelled")


@case("a log can be followed while the job runs, to its end")
def _(c):
    number = run(c, "for i in 1 2 3; do echo line $i; sleep 0.1; done; exit 3")
    same(c.text_of(number, "?follow=1"), "line 1\nline 2\nline 3\n")
    same(c.job(number)["exit_code"], 3)


@case("the command may be a string, the environment is given on")
def _(c):
    number = c.submit("echo $COLOUR $NIGHTSHIFT_JOB_ID $SLURM_JOB_ID", env={"COLOUR": "green"}, resources=SMALL)
    same(c.wait_end(number)["state"], "succeeded")
    same(c.text_of(number).split(), ["green", str(number), str(number)])


# ---- GPUs ----

@case("whole GPUs are never shared, halves share one")
def _(c):
    whole = [run(c, "exec sleep 600", resources={**SMALL, "gpus": 1}) for _ in range(3)]
    halves = [run(c, "exec sleep 600", resources={**SMALL, "gpu_share": 0.5}) for _ in range(2)]
    seen = {number: gpus_of(c, number) for number in whole + halves}
    mine = [gpu for number in whole for gpu in seen[number]]
    same(len(mine), 3)
    same(len(set(mine)), 3)
    same(seen[halves[0]], seen[halves[1]])
    assert not set(seen[halves[0]]) & set(mine), seen
    waiting = run(c, "exec sleep 600", resources={**SMALL, "gpus": 1})
    same(c.job(waiting)["state"], "queued")
    reasons = c.ask("GET", f"/v1/jobs/{waiting}/why")["reasons"]
    assert reasons and "gpu" in reasons[0]["code"], reasons
    same(processes(c, waiting), {})
    c.ask("POST", f"/v1/jobs/{whole[0]}/cancel", {})
    same(gpus_of(c, waiting), seen[whole[0]])
    for number in (*whole[1:], *halves, waiting):
        c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    for number in (*whole, *halves, waiting):
        same(c.wait_end(number)["state"], "cancelled")


@case("a job sees no device but its own")
def _(c):
    number = run(c, "exec sleep 600", resources={**SMALL, "gpus": 2})
    pid = one_process(c, number)[0]
    same(len(gpus_of(c, number)), 2)
    same([name for name in os.listdir(f"/proc/{pid}/root/dev") if name.startswith("nvidia")], [])
    for name in ("sda", "vda", "mem", "kmsg", "kvm"):
        assert not os.path.exists(f"/proc/{pid}/root/dev/{name}"), name
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    c.wait_end(number)
    without = run(c, "exec sleep 600")
    same(gpus_of(c, without), [])
    c.ask("POST", f"/v1/jobs/{without}/cancel", {})
    c.wait_end(without)


# ---- ending ----

@case("a cancelled job is asked to end, then made to; its children go too")
def _(c):
    number = run(c, "trap 'echo asked; exit 0' TERM; sleep 600 & wait")
    one_process(c, number)
    c.ask("POST", f"/v1/jobs/{number}/cancel", {"reason": "enough"})
    assert c.wait_end(number)["state"] in ("cancelled", "succeeded")
    same(c.text_of(number), "asked\n")
    stubborn = run(c, "trap '' TERM; sleep 610 & sleep 620; sleep 630", freeze={"grace": "1s"})
    one_process(c, stubborn)
    c.ask("POST", f"/v1/jobs/{stubborn}/cancel", {})
    same(c.wait_end(stubborn)["state"], "cancelled")
    same(processes(c, stubborn), {})
    waiting = run(c, "true", held=True)
    same(c.ask("POST", f"/v1/jobs/{waiting}/cancel", {})["state"], "cancelled")
    status, problem = c.call("POST", f"/v1/jobs/{waiting}/cancel", {})
    same((status, problem["code"]), (409, "conflict"))


@case("a time limit is kept, and named")
def _(c):
    job, _ = finished(c, "exec sleep 600", max_time="1s")
    same((job["state"], job["end"]), ("failed", "time_limit"))
    assert job["ended_ms"] - job["started_ms"] > 900, job


@case("a job that uses more memory than it asked for is ended, and told so")
def _(c):
    number = c.submit(["python3", "-c", "x = bytearray(300 << 20); print(len(x))"], resources=SMALL)
    job = c.wait_end(number)
    same((job["state"], job["end"]), ("failed", "out_of_memory"))
    assert "memory" in job["message"], job["message"]


@case("a job is tried again as often as it asked for")
def _(c):
    job, text = finished(c, "echo try $NIGHTSHIFT_RESTART; exit 9", retries=2)
    same((job["state"], job["exit_code"], job["run"]), ("failed", 9, 3))
    same(text, "try 2\n")
    same([c.text_of(job["id"], f"?run={i}") for i in (1, 2, 3)], ["try 0\n", "try 1\n", "try 2\n"])


# ---- many ----

@case("an array of 20 runs each index once")
def _(c):
    answer = c.ask("POST", "/v1/jobs", {"command": ["sh", "-c", "echo $NIGHTSHIFT_ARRAY_INDEX $SLURM_ARRAY_TASK_ID"],
                                        "array": "0-19", "resources": SMALL})
    same(answer["count"], 20)
    ids = range(answer["id"], answer["id"] + 20)
    ends = [c.wait_end(number) for number in ids]
    same({job["state"] for job in ends}, {"succeeded"})
    same([c.text_of(number).split() for number in ids], [[str(i), str(i)] for i in range(20)])
    listed = c.ask("GET", f"/v1/jobs?state=all&array={answer['id']}&limit=100")["jobs"]
    same(sorted(job["id"] for job in listed), list(ids))


@case("a gang sees its ranks, and its replicas reach each other")
def _(c):
    talk = """
import os, socket
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(("", where[1])) as s:
        print("heard", s.accept()[0].recv(99).decode(), "of", size, flush=True)
else:
    for _ in range(5000):
        try:
            with socket.create_connection(where, 1) as s:
                s.sendall(str(rank).encode())
            break
        except OSError:
            import time; time.sleep(0.02)
    else:
        raise SystemExit("nobody answers at %s:%d" % where)
"""
    number = c.submit(["python3", "-c", talk], replicas=2, resources={**SMALL, "gpus": 1})
    job = c.wait_end(number)
    texts = [c.text_of(number, f"?replica={i}") for i in (0, 1)]
    same((job["state"], texts), ("succeeded", ["heard 1 of 2\n", ""]))


@case("when one replica fails, the gang is ended whole")
def _(c):
    job, _ = finished(c, "[ $RANK = 1 ] && exit 7; exec sleep 600", replicas=2)
    same((job["state"], job["exit_code"]), ("failed", 7))
    same(processes(c, job["id"]), {})


# ---- holding, freezing ----

@case("a held job waits until it is released")
def _(c):
    number = run(c, "echo ran", held=True)
    same(c.job(number)["state"], "held")
    same(c.ask("POST", f"/v1/jobs/{number}/release", {})["state"] in ("queued", "starting", "running"), True)
    same(c.wait_end(number)["state"], "succeeded")


@case("a paused job really stands still, keeps its GPU, and goes on")
def _(c):
    number = run(c, "while :; do :; done", resources={**SMALL, "gpus": 1}, freeze={"mode": "pause"})
    pid = one_process(c, number, "sh")[0]
    wait_for("it to burn CPU", lambda: cpu_ticks(pid) > 5)
    c.ask("POST", f"/v1/jobs/{number}/freeze", {})
    c.wait_state(number, "paused")
    before = cpu_ticks(pid)
    free = sum(gpu["free_milli"] for gpu in c.ask("GET", "/v1/nodes")["nodes"][0]["gpus"])
    for _ in range(3):  # other work runs meanwhile
        same(finished(c, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")[0]["state"], "succeeded")
    same((cpu_ticks(pid), free), (before, 3000))
    c.ask("POST", f"/v1/jobs/{number}/thaw", {})
    c.wait_state(number, "running")
    wait_for("it to go on", lambda: cpu_ticks(pid) > before + 5)
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    same(c.wait_end(number)["state"], "cancelled")


@case("a paused job can be cancelled")
def _(c):
    number = run(c, "exec sleep 600", freeze={"mode": "pause"})
    one_process(c, number)
    c.ask("POST", f"/v1/jobs/{number}/freeze", {})
    c.wait_state(number, "paused")
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    same(c.wait_end(number)["state"], "cancelled")
    same(processes(c, number), {})


@case("a job that saves itself when asked gives its GPU back, and goes on where it was")
def _(c):
    line = "echo restart $NIGHTSHIFT_RESTART; [ $NIGHTSHIFT_RESTART = 1 ] && { cat saved; exit 0; }; " \
           "trap 'echo work >saved; exit 85' USR1; sleep 600 & wait"
    number = run(c, line, resources={**SMALL, "gpus": 4}, freeze={"mode": "signal", "signal": "USR1"})
    one_process(c, number)
    c.ask("POST", f"/v1/jobs/{number}/freeze", {})
    c.wait_state(number, "frozen")
    same(processes(c, number), {})
    same(finished(c, "true", resources={**SMALL, "gpus": 4})[0]["state"], "succeeded")
    c.ask("POST", f"/v1/jobs/{number}/thaw", {})
    job = c.wait_end(number)
    same((job["state"], job["run"], c.text_of(number)), ("succeeded", 2, "restart 1\nwork\n"))


@case("a signal reaches the job")
def _(c):
    number = run(c, "trap 'echo got it; exit 5' USR2; sleep 600 & wait")
    one_process(c, number)
    c.signal(number, "USR2")
    same((c.wait_end(number)["exit_code"], c.text_of(number)), (5, "got it\n"))


# ---- the API ----

@case("the same idempotency key is the same job, also when asked at once")
def _(c):
    spec = {"command": ["true"], "resources": SMALL}
    first, second = (c.ask("POST", "/v1/jobs", spec, key="the key") for _ in range(2))
    same(second, first)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(c.ask("POST", "/v1/jobs", spec, key="at once")))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(len({answer["id"] for answer in answers}), 1)
    same(len(answers), 8)
    batch = {"jobs": [spec, spec]}
    first, second = (c.ask("POST", "/v1/jobs", batch, key="a batch") for _ in range(2))
    same(second, first)
    same(len(first["ids"]), 2)


@case("events arrive as they happen, and again after the last one seen")
def _(c):
    after = 0
    for line in stream_lines(c, "/v1/events?after=0"):
        if line.startswith("id: "):
            after = int(line[4:])
            break
    number = run(c, "true")
    states = []
    for line in stream_lines(c, f"/v1/events?after={after}"):
        if line.startswith("data: "):
            event = json.loads(line[6:])
            states += [event["state"]] if event["job"] == number else []
            if event["job"] == number and event["state"] in cl.ENDED:
                break
    same(states, ["queued", "starting", "running", "succeeded"])


def stream_lines(c, path):
    conn = cl.UnixConnection(f"{c.run}/api.sock", cl.PATIENCE_S)
    conn.request("GET", path)
    answer = conn.getresponse()
    same((answer.status, answer.headers["Content-Type"].split(";")[0]), (200, "text/event-stream"))
    try:
        while True:
            line = answer.readline()
            assert line, "the stream ended"
            yield line.decode().rstrip("\n")
    finally:
        conn.close()


@case("what is wrong is refused with a problem that names the field")
def _(c):
    good = {"command": ["true"]}
    for body, field in ((b"{", None), (b"[]", None), (b'{"command":["true"],"command":["false"]}', "command"),
                        (b"\xff\xfe", None), ({}, "command"), ({"command": []}, "command"),
                        ({**good, "colour": 1}, "colour"), ({**good, "resources": {"gpus": -1}}, "resources.gpus"),
                        ({**good, "resources": {"gpus": "many"}}, "resources.gpus"),
                        ({**good, "resources": {"mem": "16 apples"}}, "resources.mem"),
                        ({**good, "max_time": "yesterday"}, "max_time"), ({**good, "priority": "huge"}, "priority"),
                        ({**good, "array": "9-0"}, "array"), ({**good, "replicas": 0}, "replicas"),
                        ({**good, "freeze": {"signal": "NOPE"}}, "freeze.signal"),
                        ({**good, "tenant": 7}, "tenant"), ({"jobs": []}, "jobs")):
        status, problem = c.call("POST", "/v1/jobs", body)
        assert status == 400 and problem["status"] == 400 and problem["detail"], f"{body}: {status} {problem}"
        same((body, problem.get("field")), (body, field))
    status, problem = c.call("POST", "/v1/jobs", {**good, "resources": {"gpus": 99}})
    assert status in (400, 409, 422) and problem["detail"], (status, problem)
    same(c.call("GET", "/v1/jobs/999999")[0], 404)
    same(c.call("GET", "/v1/nothing")[0], 404)
    same(c.call("POST", "/v1/jobs/1", {})[0], 405)


KEY = "0123456789abcdef"


def stream(c, number, *posts):
    """All frames that come out while the posts go in, as {type: bytes}."""
    conn = cl.UnixConnection(f"{c.run}/api.sock", cl.PATIENCE_S)
    conn.request("GET", f"/v1/jobs/{number}/stream?key={KEY}")
    down = conn.getresponse()
    same(down.status, 200)
    for n, frames in enumerate(posts, 1):
        same(send_frames(c, number, n, frames)[0], 204)
    data, frames = down.read(), {}
    while data:
        end = 4 + int.from_bytes(data[1:4], "big")
        frames[data[0]] = frames.get(data[0], b"") + data[4:end]
        data = data[end:]
    return frames


def send_frames(c, number, n, frames, key=KEY):
    return c.call("POST", f"/v1/jobs/{number}/stream/{key}?n={n}", frames, kind="application/octet-stream")


@case("another command runs inside the job, as the same user, and tells its own end")
def _(c):
    number = run(c, "exec sleep 600")
    pid = one_process(c, number)[0]
    frames = stream(c, number, exec_frame(["sh", "-c", "readlink /proc/self/ns/pid; id -u; exit 6"]))
    same(frames[STDOUT].decode().split(), [os.readlink(f"/proc/{pid}/ns/pid"), str(cl.JOB_UID)])
    same(frames[EXIT], bytes([0, 6]))
    same(c.job(number)["state"], "running")
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    same(c.wait_end(number)["state"], "cancelled")


@case("what goes into a stream counts once, in its order, and begins with a word that users may say")
def _(c):
    number = run(c, "exec sleep 600")
    one_process(c, number)
    conn = cl.UnixConnection(f"{c.run}/api.sock", cl.PATIENCE_S)
    conn.request("GET", f"/v1/jobs/{number}/stream?key={KEY}")
    down = conn.getresponse()
    same(c.call("GET", f"/v1/jobs/{number}/stream?key={KEY}")[0], 409)
    same(c.call("GET", f"/v1/jobs/{number}/stream?key=short")[0], 400)
    same(send_frames(c, number, 1, frame(WATCH))[0], 400)
    same(send_frames(c, number, 1, exec_frame(["cat"]), key="f" * 16)[0], 404)
    same(c.call("POST", f"/v1/jobs/{number}/stream/{KEY}?n=1", exec_frame(["cat"]))[0], 415)  # as JSON
    for n, frames, status in ((1, exec_frame(["cat"]), 204), (1, exec_frame(["cat"]), 204), (3, frame(STDIN), 409),
                              (2, frame(STDIN, b"once"), 204), (2, frame(STDIN, b"once"), 204), (3, frame(STDIN), 204)):
        same((n, send_frames(c, number, n, frames)[0]), (n, status))
    data = down.read()
    assert frame(STDOUT, b"once") in data and data.count(b"once") == 1, data
    assert data.endswith(frame(EXIT, bytes([0, 0]))), data
    wait_for("the stream to be over", lambda: send_frames(c, number, 4, frame(STDIN))[0] == 404)
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    c.wait_end(number)


# ---- the command line ----

def shell(c, *argv, **more):
    """A command of nightshift's, as root on the socket."""
    env = {**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", **more.pop("env", {})}
    return subprocess.Popen([f"{cl.BUILD}/nightshift", *argv], env=env, cwd="/", **more)


def says(c, *argv, **more):
    """(exit code, standard output, standard error)"""
    feed = more.pop("feed", None)
    with shell(c, *argv, stdin=subprocess.PIPE if feed is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE, **more) as p:
        out, err = p.communicate(feed, cl.PATIENCE_S)
    return p.returncode, out, err.decode()


# Counts until it is told to stop: whoever attaches finds it running, however long that takes them.
COUNT = "i=0; until [ -e $HOME/enough ]; do i=$((i+1)); echo line $i; [ $((i % 100)) != 0 ] || sleep 0.05; done"


@case("attach shows the last lines first, and nothing is missing or doubled where they join")
def _(c):
    number = run(c, COUNT)
    wait_for("its first lines", lambda: c.text_of(number).count("\n") > 200)
    for _ in range(3):
        with shell(c, "attach", "-n", "50", str(number), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as p:
            lines = [int(p.stdout.readline().split()[1]) for _ in range(400)]
            p.terminate()
        same(lines, list(range(lines[0], lines[0] + 400)))
    with shell(c, "attach", "-n", "0", str(number), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as p:
        out = p.stdout.readline()
        with open(f"{c.state}/homes/root/enough", "w", encoding="utf-8"):
            out += p.stdout.read()
    lines = [int(line.split()[1]) for line in out.splitlines()]
    last = int(c.text_of(number, "?tail=1").split()[1])
    same((p.returncode, lines), (0, list(range(lines[0], last + 1))))


@case("run and logs -f go on where they were when the daemon is killed, whatever the log keeps")
def _(c):
    c.options += ["--log-limit", "1Mi"]  # overwritten again and again while they are away
    c.daemon.terminate()
    c.daemon.wait(cl.PATIENCE_S)
    c.start()
    c.wait_ready()
    work = "seq 200000; i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo mark $i; sleep 0.05; done; exit 3"
    with shell(c, "run", "--name", "watched", "--", "sh", "-c", work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as watched:
        seen = b""
        while b"mark 3\n" not in seen[-2000:]:
            seen += os.read(watched.stdout.fileno(), 1 << 16)
        number = next(j["id"] for j in c.ask("GET", "/v1/jobs")["jobs"] if j["name"] == "watched")
        with shell(c, "logs", "-f", "-n", "3", str(number), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as follows:
            first = os.read(follows.stdout.fileno(), 1 << 16)
            for _ in range(2):
                c.kill_daemon()
                c.start()
                c.wait_ready()
            rest = follows.communicate(timeout=cl.PATIENCE_S)[0]
        seen += watched.communicate(timeout=cl.PATIENCE_S)[0]
    same(watched.returncode, 3)
    marks = [f"mark {i}".encode() for i in range(1, 61)]
    same([line for line in seen.splitlines() if line.startswith(b"mark")], marks)
    lines = (first + rest).splitlines()
    same(lines, marks[marks.index(lines[0]):])


@case("a log on a full disk has a hole, and everybody who reads it is told")
def _(c):
    seen = []
    small = cl.Cluster(state_bytes=24 << 20, name="full", options=["--network", "no"])
    try:
        small.start()
        small.wait_ready()
        with open(f"{small.state}/filler", "wb") as f:
            f.write(bytes(8 << 20))
        line = "trap 'exit 0' USR1; echo first; seq 4000000; sleep 600 & wait"
        with shell(small, "run", "--network", "none", "--", "sh", "-c", line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as p:
            reader = threading.Thread(target=lambda: seen.extend(p.communicate()))
            reader.start()
            wait_for("the disk to be full", lambda: processes(small, 1, "sleep"), 4 * cl.PATIENCE_S)
            os.unlink(f.name)
            small.signal(1, "USR1")
            reader.join()
        same(p.returncode, 0)
        out, err, lost = seen[0], seen[1].decode(), small.job(1)["message"]
        assert lost.endswith("bytes of its output were lost: the disk was full"), lost
        assert lost in err and lost in says(small, "logs", "1")[2], err
        assert lost in says(small, "show", "1")[1].decode()
        assert out.startswith(b"first\n"), out[:100]
    finally:
        small.close()


def over_tls(c):
    """The daemon again, with a certificate of its own on loopback: the environment of a client."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", f"{c.folder}/key.pem", "-out", f"{c.folder}/cert.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    c.daemon.terminate()
    c.daemon.wait(cl.PATIENCE_S)
    c.options += ["--listen", "127.0.0.1:0", "--tls-cert", f"{c.folder}/cert.pem", "--tls-key", f"{c.folder}/key.pem"]
    c.start()
    c.wait_ready()
    return {"NIGHTSHIFT_SERVER": f"https://127.0.0.1:{c.port()}", "NIGHTSHIFT_CA": f"{c.folder}/cert.pem", "TERM": "xterm",
            "NIGHTSHIFT_TOKEN": c.ask("POST", "/v1/tokens", {"name": "tls", "scopes": ["read", "jobs", "manage"]})["token"]}


def on_terminal(steps, env, *argv):
    with tempfile.NamedTemporaryFile("w", suffix=".steps") as f:
        f.write("\n".join(steps))
        f.flush()
        done = subprocess.run([sys.executable, f"{os.path.dirname(os.path.abspath(__file__))}/on_terminal.py", f.name, "--",
                               f"{cl.BUILD}/nightshift", *argv], env={**os.environ, **env}, cwd="/", capture_output=True,
                              check=False)
    same((done.returncode, done.stderr), (0, b""))


@case("terminals work over TLS as they do on the socket: keys, size, exit code, and 10 MB both ways")
def _(c):
    number, env = run(c, "exec sleep 600"), over_tls(c)
    c.wait_state(number, "running")
    data = os.urandom(10 << 20)
    same(says(c, "exec", "-i", str(number), "cat", env=env, feed=data)[:2], (0, data))
    same(says(c, "exec", str(number), "sh", "-c", "echo out; echo err >&2; exit 7", env=env), (7, b"out\n", "err\n"))
    on_terminal(["see 24 80", "raw", "type one\\r", "see got one", "resize 33 101", "see 33 101", "exit 4", "cooked"], env,
                "exec", "-it", str(number), "sh", "-c",
                "trap 'stty size; exit 4' WINCH; stty size; read x; echo got $x; while :; do sleep 0.05; done")
    on_terminal(["see ready", "type \\x1d\\x1d\\x1d", "see detached", "exit 0", "cooked"], env, "run", "-t", "--name", "left",
                "--", "sh", "-c", "echo ready; read x; exit 5")
    left = next(j["id"] for j in c.ask("GET", "/v1/jobs")["jobs"] if j["name"] == "left")
    on_terminal(["see ready", "type go\\r", "exit 5", "cooked"], env, "attach", str(left))
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    c.wait_end(number)


# ---- the daemon ----

@case("a job whose supervisor is killed is told as lost, and nothing of it is left")
def _(c):
    number = run(c, "sleep 600 & exec sleep 610")
    pid = one_process(c, number)[0]
    parent = cl.process_parent(pid)
    if cl.proc_file(parent, "comm") != b"nightshift-init\n":  # it was the one in the background
        parent = cl.process_parent(parent)
    same(cl.proc_file(parent, "comm"), b"nightshift-init\n")
    os.kill(parent, signal.SIGKILL)
    job = c.wait_end(number)
    same((job["state"], job["end"]), ("failed", "lost"))
    same(processes(c, number), {})

@case("jobs run on while the daemon is stopped and started, and their end is known")
def _(c):
    number = run(c, "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done; exit 4")
    longer = run(c, "exec sleep 600")
    pid = one_process(c, longer)[0]
    birth = cl.process_birth(pid)
    c.daemon.terminate()
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    wait_for("its end without a daemon", lambda: not processes(c, number))
    c.start()
    c.wait_ready()
    job = c.wait_end(number)
    same((job["state"], job["exit_code"], job["run"]), ("failed", 4, 1))
    same(c.text_of(number), "1\n2\n3\n4\n5\n6\n7\n8\n")
    same((c.job(longer)["state"], cl.process_birth(pid)), ("running", birth))
    c.ask("POST", f"/v1/jobs/{longer}/cancel", {})
    same(c.wait_end(longer)["state"], "cancelled")


@case("a second daemon on the same state is refused, and the first goes on")
def _(c):
    done = subprocess.run(c.argv(), capture_output=True, text=True, timeout=cl.PATIENCE_S, check=False)
    assert done.returncode != 0 and done.stderr.startswith("nightshiftd: "), done
    same(finished(c, "echo here")[1], "here\n")


@case("a job can read neither the daemon's files nor what is not its user's")
def _(c):
    secret = f"{c.folder}/secret"
    with open(secret, "w", encoding="utf-8") as f:
        f.write("secret")
    os.chmod(secret, 0o600)
    job, text = finished(c, f"cat {secret} {c.state}/nightshift.db 2>/dev/null; ls {c.run} 2>/dev/null; echo done")
    same((job["state"], text), ("succeeded", "done\n"))


@case("nothing is left of jobs that are over")
def _(c):
    def left():
        found = {"cgroups": c.cgroups(), "mounts": c.mounts(), "files": c.task_files(), "in networks": c.network_users(),
                 "networks": c.surplus()}
        return {key: value for key, value in found.items() if value}
    try:
        wait_for("nothing to be left", lambda: not left())
    except AssertionError:
        same(left(), {})
    for gpu in c.ask("GET", "/v1/nodes")["nodes"][0]["gpus"]:
        same((gpu["free_milli"], gpu["jobs"]), (1000, []))


@case("a keeper that stands still is told by readyz, the doctor and the metrics, and goes on where it was")
def _(c):
    def heard():
        lines = c.ask("GET", "/metrics").splitlines()
        return float(next(line for line in lines if line.startswith("nightshift_keeper_heard_seconds")).split()[1])

    def keeper_row():
        return next(row for row in c.ask("GET", "/v1/doctor")["checks"] if row["name"] == "keeper")

    pid = wait_for("the keeper", c.keeper_pid)
    same(keeper_row()["ok"], True)
    os.kill(pid, signal.SIGSTOP)
    try:
        status, answer = wait_for("it to be told", lambda: (lambda a: a if a[0] == 503 else None)(c.call("GET", "/readyz")))
        assert "has not answered for" in answer["detail"], answer
        assert heard() >= 10, heard()
        row = keeper_row()
        assert row["ok"] is False and "has not answered" in row["found"], row
        number = run(c, "echo here")  # taken, and started when it answers again
    finally:
        os.kill(pid, signal.SIGCONT)
    c.wait_ready()
    same(c.wait_end(number)["state"], "succeeded")
    wait_for("it to be heard", lambda: heard() < 10)


@case("told to end its jobs, a daemon that is stopped leaves nothing running")
def _(c):
    number = run(c, "exec sleep 600")
    one_process(c, number)
    c.daemon.terminate()
    c.daemon.wait(cl.PATIENCE_S)
    c.options += ["--on-stop", "end"]
    c.start()
    c.wait_ready()
    c.daemon.terminate()
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    same(processes(c, number), {})
    wait_for("the keeper to go too", lambda: not c.keeper_pid())


def cancel_all(c):
    """The next case begins with an empty machine."""
    if c.daemon.poll() is not None:
        return
    for job in c.ask("GET", "/v1/jobs?limit=1000")["jobs"]:
        c.call("POST", f"/v1/jobs/{job['id']}/cancel", {})
    wait_for("all jobs to end", lambda: not c.ask("GET", "/v1/jobs")["jobs"])


if __name__ == "__main__":
    sys.exit(case.together(repair=cancel_all))
