"""store_cases - a store that is lost, old, damaged or full, below a real daemon whose jobs run."""
import glob
import os
import random
import re
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import seeds  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

SMALL = {"cpus": 1, "mem": "64Mi"}
SEED = seeds.seed()
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
        # The second where what the daemon writes by itself has used up the rest, and waits for room.
        assert status == 503 and ("is full" in str(problem) or "no room" in str(problem)), problem
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


def stop(c):
    c.daemon.terminate()
    c.daemon.wait()


def turn_bytes(path, word, by=1):
    """Each of its places in the file has other first bytes."""
    with open(path, "r+b") as f:
        data, at, n = f.read(), -1, 0
        while (at := data.find(word, at + 1)) >= 0:
            f.seek(at)
            f.write(bytes(byte ^ 1 for byte in word[:by]))
            n += 1
    return n


@case("a byte that is another is put right, more is refused and says what is damaged, and a backup helps")
def _(c):
    begin(c)
    number = run(c, "true", name="a-name-to-find", held=True)
    c.wait_state(number, "held")
    copy = f"{c.folder}/backup.db"
    same(save(c, "backup", copy).returncode, 0)
    stop(c)
    assert turn_bytes(f"{c.state}/nightshift.db", b"a-name-to-find")
    assert "damaged" in save(c, "verify").stderr
    assert "nothing was changed" in save(c, "restore", f"{c.state}/nightshift.db").stderr
    begin(c)
    same(c.job(number)["name"], "a-name-to-find")
    assert logged(c, "store.mended")
    stop(c)
    assert turn_bytes(f"{c.state}/nightshift.db", b"a-name-to-find", by=4)
    c.start()
    assert c.daemon.wait(timeout=cl.PATIENCE_S) != 0
    said = c.log_tail(3)
    assert "is damaged" in said and "nightshift restore" in said, said
    same(save(c, "restore", copy).returncode, 0)
    begin(c)
    same(c.job(number)["name"], "a-name-to-find")


# ---- every kind of row ----

START_TABLES = {"job", "job_spec", "account", "directory", "meta", "journal_segment"}
CHANGES = {
    "job": "message = 'ab' || message || 'cd' WHERE state < 9", "job_spec": "spec = 'ab' || spec || 'cd'",
    "account": "home = 'ab' || home || 'cd'", "directory": "body = 'ab' || body || 'cd'",
    "meta": "value = 'ab' || value || 'cd'", "journal_segment": "t_ms = t_ms + 9999999999",
    "run": "gpu_milli = gpu_milli + 9999999999", "usage_day": "starts = starts + 9999999999",
    "machines_day": "total = total + 9999999999", "ledger_day": "got = got + 9999999999",
    "event": "body = 'ab' || body || 'cd'", "job_step": "note = 'ab' || note || 'cd'",
    "job_log": "bytes = bytes + 9999999999", "answer": "body = 'ab' || body || 'cd'",
    "journal": "line = 'ab' || line || 'cd'",
}


def sql(c, text):
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    n = db.execute(text).rowcount
    db.commit()
    db.close()
    return n


def a_bit_of_everything(c):
    """Rows in every table that a daemon alone fills, and the file as it is then."""
    begin(c)
    held = run(c, "true", name="waits", held=True)
    done = run(c, "echo done", resources={"gpus": 1, **SMALL}, name="over")
    c.wait_end(done)
    c.ask("POST", "/v1/jobs", {"command": ["true"], "held": True, "resources": SMALL}, key="once")
    c.ask("PUT", "/v1/tenants/vision", {"weight": 3})
    stop(c)
    return held, done, cl.read_file(f"{c.state}/nightshift.db")


def put(c, data):
    for path in glob.glob(f"{c.state}/nightshift.db-*"):
        os.unlink(path)
    with open(f"{c.state}/nightshift.db", "wb") as f:
        f.write(data)


def start_or_refuse(c):
    """None when it is ready, else what it said."""
    c.start()
    wait_for("it to start, or to refuse", lambda: c.daemon.poll() is not None or c.is_ready())
    return None if c.daemon.poll() is None else c.log_tail(4)


def store_check(c):
    return next(check for check in c.ask("GET", "/v1/doctor")["checks"] if check["name"] == "store")


@case("a row of any table that is damaged is named: no start is made from it, or the rest goes on without it")
def _(c):
    _held, done, whole = a_bit_of_everything(c)
    for table, change in CHANGES.items():
        put(c, whole)
        where = " AND" if " WHERE " in change else " WHERE"
        assert sql(c, f"UPDATE {table} SET {change}{where} sum <> 0"), table
        assert f"of table {table} is not as it was written" in save(c, "verify").stderr, table
        said = start_or_refuse(c)
        if table in START_TABLES:
            assert said and f"of table {table} is not" in said and "nightshift restore" in said, (table, said)
            continue
        if table == "journal":
            assert said and "the journal is damaged" in said and "nightshift restore" in said, said
            continue
        same(said, None)
        check = store_check(c)
        assert check["ok"] is False and f"of table {table} is" in check["found"], (table, check)
        assert "nightshift restore" in check["fix"] and "damaged" in c.ask("GET", "/v1/server")["message"], check
        same((figure(c, "store_damaged"), c.job(done)["state"]), (1, "succeeded"))
        same(c.wait_end(run(c, "true"))["state"], "succeeded")
        stop(c)
    put(c, whole)
    same(start_or_refuse(c), None)
    check = store_check(c)
    same((check["ok"], figure(c, "store_damaged")), (True, 0))


def all_told(c):
    jobs = c.ask("GET", "/v1/jobs?state=all&limit=100")["jobs"]
    return ([{k: v for k, v in job.items() if k not in ("why", "reason", "eta_ms")} for job in jobs],
            c.ask("GET", "/v1/usage?from_ms=1&to_ms=9999999999999")["rows"],
            c.ask("GET", "/v1/tenants/vision")["spec"])


@case("any bit of the file that falls over is put right, or the start is refused and says what to do")
def _(c):
    _held, _done, whole = a_bit_of_everything(c)
    put(c, whole)
    begin(c)
    want = all_told(c)
    stop(c)
    random_bits = random.Random(SEED)
    refused = 0
    for _ in range(40):
        bit = random_bits.randrange(len(whole) * 8)
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        put(c, data)
        said = start_or_refuse(c)
        if said is None:
            assert figure(c, "store_damaged") or all_told(c) == want, f"bit {bit} is wrong, and nobody knows"
            stop(c)
        else:
            refused += 1
            assert "damaged" in said or "not a Nightshift store" in said or "hint" in said, (bit, said)
    assert refused < 20, refused


@case("a log that a killed daemon has left, with a bit that fell over, is not cut short")
def _(c):
    begin(c)
    numbers = [run(c, "true", held=True) for _ in range(30)]
    c.kill_daemon()
    log = f"{c.state}/nightshift.db-wal"
    whole = cl.read_file(log)
    for part in (0.1, 0.5):
        with open(log, "r+b") as f:
            f.seek(int(len(whole) * part))
            f.write(bytes([whole[int(len(whole) * part)] ^ 8]))
        said = start_or_refuse(c)
        assert said and "-wal' is damaged" in said and "nightshift restore" in said, said
        with open(log, "wb") as f:
            f.write(whole)
    begin(c)
    same([c.job(n)["state"] for n in numbers], ["held"] * 30)


# ---- the newest segment of the journal ----

def cut_journal(c):
    """Passes that found nothing, until the journal is begun anew."""
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    seq, t_ms, line = db.execute("SELECT seq, t_ms, line FROM journal WHERE line LIKE '%\"pass\"%' ORDER BY seq DESC").fetchone()
    last = db.execute("SELECT max(seq) FROM journal").fetchone()[0]
    assert seq <= last
    db.executemany("INSERT INTO journal (seq, t_ms, line) VALUES (?, ?, ?)",
                   ((last + i, t_ms, line) for i in range(1, 60_000)))
    db.commit()
    db.close()
    begin(c)
    wait_for("the journal to be cut", lambda: logged(c, "journal.cut"))


@case("a segment that is damaged where it begins is made from the one before: nothing is lost and nothing runs twice")
def _(c):
    begin(c)
    lives = start_waiter(c, "a", resources={"gpus": 1, **SMALL})
    held = run(c, "true", held=True, name="waits")
    stop(c)
    cut_journal(c)
    after = start_waiter(c, "b", "exit 3", resources={"gpus": 1, **SMALL})
    stop(c)
    whole = cl.read_file(f"{c.state}/nightshift.db")
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    number, begins = db.execute("SELECT number, begins FROM journal_segment ORDER BY number DESC").fetchone()
    lines = db.execute("SELECT seq, line FROM journal WHERE seq >= ?", (number << 32,)).fetchall()
    db.close()
    first = number << 32
    assert begins > 5 and len(lines) > begins, (begins, len(lines))
    changed = "line = 'xyz' || line"
    for damage in (f"UPDATE journal SET {changed} WHERE seq = {first}",
                   f"UPDATE journal SET {changed} WHERE seq >= {first} AND seq < {first + begins}",
                   f"DELETE FROM journal WHERE seq >= {first + 2} AND seq < {first + begins}"):
        put(c, whole)
        assert sql(c, damage)
        same(start_or_refuse(c), None)
        assert logged(c, "journal.mended")
        same([c.job(n)["state"] for n in (lives, held, after)], ["running", "held", "running"])
        stop(c)
        db = sqlite3.connect(f"{c.state}/nightshift.db")
        same(db.execute("SELECT seq, line FROM journal WHERE seq >= ? ORDER BY seq LIMIT ?", (first, len(lines))).fetchall(), lines)
        db.close()
    for damage in (f"UPDATE journal SET {changed} WHERE seq = {first + begins}",
                   f"DELETE FROM journal WHERE seq = {first + begins}",
                   f"UPDATE journal SET {changed} WHERE seq IN ({first}, {first - (1 << 32)})"):
        put(c, whole)
        assert sql(c, damage)
        said = start_or_refuse(c)
        assert said and "the journal is damaged" in said and "nightshift restore" in said, said
    put(c, whole)
    begin(c)
    let_go(c, "a")
    let_go(c, "b")
    same([c.wait_end(n)["exit_code"] for n in (lives, after)], [7, 3])
    same((starts(c, "a"), starts(c, "b")), (1, 1))


def start_on_flipped_bit(weak):
    """What the daemon says then, and the job's command as it is shown; one of them is None."""
    c = cl.Cluster(weak=weak)
    try:
        begin(c)
        number = c.submit(["echo", "words-to-find"], resources=SMALL, held=True)
        c.wait_state(number, "held")
        stop(c)
        turn_bytes(f"{c.state}/nightshift.db", b"words-to-find", by=3)
        said = start_or_refuse(c)
        if said:
            return said, None
        return None, c.job(number)["spec"]["command"][1]
    finally:
        c.close()


@case("no start is made from a spec with a bit that fell over; without checksums it is")
def _(_):
    said, _command = start_on_flipped_bit([])
    assert said and "is damaged" in said and "job_spec" in said, said
    same(start_on_flipped_bit(["row_sums"])[1], "vnsds-to-find")


if __name__ == "__main__":
    sys.exit(case.each())
