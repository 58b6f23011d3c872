"""store_cases - a store that is lost, old, damaged or full, below a real daemon whose jobs run."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

SMALL = {"cpus": 1, "mem": "64Mi"}
case = Cases()


def run(c, line, **spec):
    return c.submit(["sh", "-c", line], resources=spec.pop("resources", SMALL), **spec)


def begin(c):
    c.start()
    c.wait_ready()


def logged(c, event):
    with open(c.log_path, encoding="utf-8", errors="replace") as f:
        return [line for line in f if f" {event} " in line]


def lose_store(c):
    for path in glob.glob(f"{c.state}/nightshift.db*"):
        os.unlink(path)


def waits_for(c, number, then):
    """A job that counts its starts, and ends when its file is there."""
    return (f"echo start >>{c.work}/starts.{number}; while [ ! -e {c.work}/go.{number} ]; do sleep 0.05; done; "
            f"echo done; {then}")


def start_waiter(c, file, then="exit 7", **spec):
    spec.setdefault("volumes", [f"{c.work}:{c.work}"])
    number = run(c, waits_for(c, file, then), **spec)
    c.wait_state(number, "running")
    wait_for("its first word", lambda: cl.read_file(f"{c.work}/starts.{file}"))
    return number


def let_go(c, name):
    with open(f"{c.work}/go.{name}", "w", encoding="utf-8"):
        pass


def starts(c, name):
    return cl.read_file(f"{c.work}/starts.{name}").decode().count("start")


@case("a job that runs outlives its store, and its exit code is recorded")
def _(c):
    begin(c)
    number = start_waiter(c, "a", resources={"gpus": 2, **SMALL}, name="keeps-going")
    other = start_waiter(c, "b", "exit 0", resources={"gpus": 1, **SMALL})
    places = {n: c.job(n)["where"] for n in (number, other)}
    over = run(c, "echo of the first store")
    c.wait_end(over)
    c.kill_daemon()
    lose_store(c)
    let_go(c, "b")  # ends while nobody listens
    begin(c)
    same([c.wait_state(n, "running", "succeeded")["where"] for n in (number, other)],
         [places[number], places[other]])
    same(c.job(number)["name"], "keeps-going")
    same((c.wait_end(other)["state"], c.job(other)["exit_code"]), ("succeeded", 0))
    fresh = run(c, "echo fresh", resources={"gpus": 2, **SMALL})
    assert fresh > over, (fresh, over)
    same(c.wait_end(fresh)["state"], "succeeded")
    same((c.text_of(fresh), c.call("GET", f"/v1/jobs/{over}")[0]), ("fresh\n", 404))
    let_go(c, "a")
    ended = c.wait_end(number)
    same((ended["state"], ended["exit_code"]), ("failed", 7))
    same((starts(c, "a"), starts(c, "b")), (1, 1))
    same(len(logged(c, "job.kept")), 2)
    wait_for("the copies to go", lambda: os.listdir(f"{c.state}/jobs") == ["numbers"])


@case("beside what runs and nobody knows nothing starts, until it ends")
def _(c):
    begin(c)
    number = start_waiter(c, "a", resources={"gpus": 4, **SMALL})
    c.kill_daemon()
    lose_store(c)
    for path in glob.glob(f"{c.state}/jobs/*"):
        os.unlink(path)
    c.start()
    wait_for("the stranger to be told", lambda: logged(c, "task.unknown"))
    status, problem = c.call("GET", "/readyz")
    assert status == 503 and "1 tasks run whose jobs the store does not know" in str(problem), problem
    assert "--forget-tasks" in str(problem), problem
    same(c.call("POST", "/v1/jobs", {"command": ["true"]})[0], 503)
    let_go(c, "a")
    c.wait_ready()
    same(starts(c, "a"), 1)
    fresh = run(c, "echo fresh", resources={"gpus": 1, **SMALL})
    assert fresh > number, "the number of what ran was given out"
    same(c.wait_end(fresh)["state"], "succeeded")
    second = start_waiter(c, "b")
    c.kill_daemon()
    lose_store(c)
    for path in glob.glob(f"{c.state}/jobs/*"):
        os.unlink(path)
    c.options += ["--forget-tasks", "yes"]
    begin(c)
    wait_for("it to be ended", lambda: not c.job_pids(second))


@case("a store from before a job's start learns that it runs")
def _(c):
    begin(c)
    first = start_waiter(c, "a", resources={"gpus": 4, **SMALL})
    waits = run(c, waits_for(c, "b", "exit 3"), resources={"gpus": 4, **SMALL}, volumes=[f"{c.work}:{c.work}"])
    same(c.job(waits)["state"], "queued")
    c.kill_daemon()
    saved = {path: cl.read_file(path) for path in glob.glob(f"{c.state}/nightshift.db*")}
    begin(c)
    let_go(c, "a")
    c.wait_end(first)
    c.wait_state(waits, "running")
    wait_for("its first word", lambda: starts(c, "b"))
    c.kill_daemon()
    lose_store(c)
    for path, data in saved.items():
        with open(path, "wb") as f:
            f.write(data)
    begin(c)
    c.wait_state(waits, "running")
    let_go(c, "b")
    ended = c.wait_end(waits)
    same((ended["state"], ended["exit_code"], starts(c, "b")), ("failed", 3, 1))


# ---- a clock that jumps ----

DAY_MS = 86400000


def figure(c, name):
    lines = c.ask("GET", "/metrics").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"nightshift_{name} ")))


def turn_wall(c, days):
    """Somebody sets the clock; no time passes."""
    with open(f"{c.folder}/wall.new", "w", encoding="utf-8") as f:
        f.write(str(days * DAY_MS))
    os.rename(f"{c.folder}/wall.new", f"{c.folder}/wall")
    c.env["NIGHTSHIFT_TEST_WALL"] = f"{c.folder}/wall"


def walk_ends(c):
    """What is old was looked for: once what a job wrote is measured, and again what the next wrote, a walk is over.
    What goes meanwhile is small."""
    for _ in range(2):
        before = figure(c, "log_bytes")
        c.wait_end(run(c, "head -c 200000 /dev/zero | tr '\\0' x"))
        wait_for("its output to be measured", lambda b=before: figure(c, "log_bytes") >= b + 100000)


def attack_with_a_clock(c):
    turn_wall(c, 0)
    begin(c)
    lives = start_waiter(c, "a", "exit 0", resources={"gpus": 1, **SMALL})
    old = [run(c, "echo old") for _ in range(5)]
    for number in old:
        c.wait_end(number)
    turn_wall(c, 400)
    return lives, old


def kept(c, numbers):
    return [c.call("GET", f"/v1/jobs/{n}/log")[0] for n in numbers].count(200)


@case("a clock that jumps 400 days removes nothing and bills nobody, also over a restart, until it is confirmed")
def _(c):
    lives, old = attack_with_a_clock(c)
    walk_ends(c)
    same((kept(c, old), figure(c, "removing_held")), (5, 1))
    checks = {check["name"]: check for check in c.ask("GET", "/v1/doctor")["checks"]}
    assert checks["jump"]["ok"] is False and re.search("400d|399d23h59m", checks["jump"]["found"]), checks["jump"]
    assert "--confirm-clock" in checks["jump"]["fix"], checks["jump"]
    assert "clock has jumped" in c.ask("GET", "/v1/server")["message"]
    wait_for("the log to tell it", lambda: logged(c, "clock.jump"))
    c.kill_daemon()
    begin(c)
    walk_ends(c)
    same((kept(c, old), figure(c, "removing_held"), c.job(lives)["state"]), (5, 1, "running"))
    turn_wall(c, 0)
    wait_for("it to be right again", lambda: figure(c, "removing_held") == 0)
    walk_ends(c)
    same(kept(c, old), 5)
    turn_wall(c, 400)
    done = cl.subprocess.run([f"{cl.BUILD}/nightshift", "doctor", "--confirm-clock"], capture_output=True, text=True,
                             check=False, env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"})
    assert "clock" in done.stdout, done
    wait_for("what is old by the new clock to go", lambda: kept(c, old) == 0)
    rows = c.ask("GET", "/v1/audit?what=clock.confirm")["rows"]
    same(len(rows), 1)
    let_go(c, "a")
    ended = c.wait_end(lives)
    assert ended["ended_ms"] - ended["started_ms"] < DAY_MS, ended
    rows = c.ask("GET", f"/v1/usage?from_ms={1}&to_ms={ended['ended_ms'] + DAY_MS}")["rows"]
    assert sum(r["gpu_hours"] for r in rows) < 24, rows


def without_looking_at_the_clock():
    c = cl.Cluster(weak=["clock_jumps"])
    try:
        _, old = attack_with_a_clock(c)
        wait_for("their output to be erased", lambda: (walk_ends(c), kept(c, old) == 0)[1])
    finally:
        c.close()


@case("without a look at the clock the same jump erases all of it")
def _(_):
    without_looking_at_the_clock()


# ---- a full disk ----

def fill(c):
    """All that is free, but for what was kept."""
    with open(f"{c.state}/filler", "ab", buffering=0) as f:
        for piece in (1 << 20, 4096, 512):
            try:
                while True:
                    f.write(b"x" * piece)
            except OSError:
                pass


def answers(c):
    same(c.daemon.poll(), None)
    try:
        return c.call("GET", "/healthz")[0] == 200
    except cl.Away:
        return False


def full_disk(weak=None):
    c = cl.Cluster(state_bytes=24 << 20, weak=weak)
    try:
        begin(c)
        lives = start_waiter(c, "a", "exit 0")
        fill(c)
        yield c, lives
    finally:
        c.close()


@case("on a full disk cancel works, nothing new is taken, and all goes on when there is room")
def _(_):
    for c, lives in full_disk():
        same(c.ask("POST", f"/v1/jobs/{lives}/cancel")["id"], lives)
        same(c.wait_end(lives)["state"], "cancelled")
        wait_for("its processes to go", lambda: not c.job_pids(lives))
        fill(c)
        same(figure(c, "store_on_reserve"), 1)
        status, problem = c.call("POST", "/v1/jobs", {"command": ["true"]})
        assert status == 503 and "full" in str(problem), problem
        assert "disk is full" in c.ask("GET", "/v1/server")["message"]
        c.kill_daemon()
        c.start()
        wait_for("it to answer on a full disk", lambda: answers(c))
        fill(c)
        os.unlink(f"{c.state}/filler")
        wait_for("it to take work again", lambda: c.call("GET", "/readyz")[0] == 200)
        same(c.wait_end(run(c, "true"))["state"], "succeeded")
        same(c.job(lives)["state"], "cancelled")
        wait_for("the reserve to be there again", lambda: os.path.exists(f"{c.state}/nightshift.db.reserve"))


@case("without that room a cancelled job runs on")
def _(_):
    for c, lives in full_disk(["reserve"]):
        with cl.contextlib.suppress(cl.Away):
            c.call("POST", f"/v1/jobs/{lives}/cancel", timeout=2)  # it is not durable, so nobody is told
        wait_for("the store to say why", lambda: "no room" in str(c.call("GET", "/readyz")[1]))
        assert c.job_pids(lives), "it was ended"
        os.unlink(f"{c.state}/filler")
        same(c.wait_end(lives)["state"], "cancelled")


# ---- backups, and bits that fall over ----

def save(c, *words):
    return cl.subprocess.run([f"{cl.BUILD}/nightshift", *words, "--state", c.state, "--config",
                              f"{c.folder}/settings.yaml"], capture_output=True, text=True, check=False)


@case("a backup is made while jobs run, is verified, and is put back after all was wiped")
def _(c):
    begin(c)
    lives = start_waiter(c, "a", resources={"gpus": 1, **SMALL})
    gone = start_waiter(c, "b", "exit 0", resources={"gpus": 1, **SMALL})
    held = run(c, "true", held=True)
    done = run(c, "true")
    c.wait_end(done)
    c.ask("PUT", "/v1/tenants/vision", {"weight": 3})
    copy = f"{c.folder}/backup.db"
    made = save(c, "backup", copy)
    same((made.returncode, made.stderr), (0, ""))
    same(os.stat(copy).st_mode & 0o777, 0o600)
    for words in (("verify",), ("verify", copy)):
        looked = save(c, *words)
        assert looked.returncode == 0 and "whole" in looked.stdout and "3 living jobs" in looked.stdout, looked
    after = start_waiter(c, "c", resources={"gpus": 1, **SMALL})
    let_go(c, "b")
    c.wait_end(gone)
    refused = save(c, "restore", copy)
    assert refused.returncode and "already used by process" in refused.stderr, refused
    c.kill_daemon()
    lose_store(c)
    for path in glob.glob(f"{c.state}/jobs/*"):  # wiped to the last file
        os.unlink(path)
    back = save(c, "restore", copy)
    same((back.returncode, back.stderr), (0, ""))
    c.start()
    wait_for("what runs and is not in the backup to be told", lambda: logged(c, "task.unknown"))
    lost = c.wait_state(gone, "failed")
    assert "lost" in str(lost), lost
    same([c.job(n)["state"] for n in (lives, held, done)], ["running", "held", "succeeded"])
    let_go(c, "c")
    c.wait_ready()
    let_go(c, "a")
    ended = c.wait_end(lives)
    same((ended["exit_code"], starts(c, "a"), starts(c, "b"), starts(c, "c")), (7, 1, 1, 1))
    assert run(c, "true") > after, "a number was given out twice"
    assert c.ask("GET", "/v1/tenants/vision")["spec"]["weight"] == 3


@case("a store with a bit that fell over is refused, says what is damaged, and a backup helps")
def _(c):
    begin(c)
    number = run(c, "true", name="a-name-to-find", held=True)
    c.wait_state(number, "held")
    copy = f"{c.folder}/backup.db"
    same(save(c, "backup", copy).returncode, 0)
    c.daemon.terminate()
    c.daemon.wait()
    with open(f"{c.state}/nightshift.db", "r+b") as f:
        data = f.read()
        f.seek(data.index(b"a-name-to-find"))
        f.write(b"b")
    c.start()
    assert c.daemon.wait(timeout=cl.PATIENCE_S) != 0
    said = c.log_tail(3)
    assert "is damaged" in said and "nightshift restore" in said, said
    assert "damaged" in save(c, "verify").stderr
    assert "nothing was changed" in save(c, "restore", f"{c.state}/nightshift.db").stderr
    same(save(c, "restore", copy).returncode, 0)
    begin(c)
    same(c.job(number)["name"], "a-name-to-find")


def start_on_flipped_bit(weak):
    """What the daemon says then, and the job's command as it is shown; one of them is None."""
    c = cl.Cluster(weak=weak)
    try:
        begin(c)
        number = c.submit(["echo", "words-to-find"], resources=SMALL, held=True)
        c.wait_state(number, "held")
        c.daemon.terminate()
        c.daemon.wait()
        with open(f"{c.state}/nightshift.db", "r+b") as f:
            data = f.read()
            at = -1
            while (at := data.find(b"words-to-find", at + 1)) >= 0:
                f.seek(at)
                f.write(b"s")
        c.start()
        wait_for("it to start, or to refuse", lambda: c.daemon.poll() is not None or c.is_ready())
        if c.daemon.poll() is not None:
            return c.log_tail(3), None
        return None, c.job(number)["spec"]["command"][1]
    finally:
        c.close()


@case("no start is made from a spec with a bit that fell over; without checksums it is")
def _(_):
    said, _command = start_on_flipped_bit([])
    assert said and "is damaged" in said and "job_spec" in said, said
    same(start_on_flipped_bit(["row_sums"])[1], "sords-to-find")


if __name__ == "__main__":
    sys.exit(case.each())
