"""upgrade_cases - a real daemon on stores that other versions of it wrote.

An older store is made here from the steps in src/store, up to its format, and the rows that its version left:
jobs in every kind of rest, with the journal that tells of them.
"""
import glob
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
STEPS = sorted(glob.glob(f"{SOURCE}/src/store/0*.sql"))
APPLICATION_ID = 0x4E534854
T = int(time.time() - 10 * 86400) * 1000  # when it all happened: what is too old is not kept
RESOURCES = '"resources":{"cpus":1.000,"mem":"64Mi"}'
SUBMIT = '"tenant":"default","user":"root","replicas":1,"cpu_milli":1000,"mem_mib":64,"priority":"normal"'
PLACE = '[{"node":"desk1","gpus":[],"milli":0}]'

JOURNAL = [
    '"ev":"policy","half_life_ms":604800000,"age_step_ms":86400000,"age_max_steps":2,"claim_after_ms":43200000,'
    '"claims_max":2,"cpu_cost_milli":10',
    '"ev":"tenant","name":"default","weight_milli":1000',
    '"ev":"node","name":"desk1","model":"A100-80GB","gpus":4,"gpu_mem_mib":81920,"cpu_milli":64000,"mem_mib":1024',
    f'"ev":"submit","job":1,"gpus":2,{SUBMIT}',
    '"ev":"pass"',
    '"ev":"place","job":1,"slots":[[0,3,1000]]',
    '"ev":"job","job":1,"what":"started"',
    '"ev":"job","job":1,"what":"exited_ok"',
    f'"ev":"submit","job":2,{SUBMIT}',
    '"ev":"pass"',
    '"ev":"place","job":2,"slots":[[0,0,0]]',
    '"ev":"job","job":2,"what":"started"',
    f'"ev":"submit","job":3,{SUBMIT},"held":true',
    f'"ev":"submit","job":4,{SUBMIT}',
]

JOBS = [  # what never changes, then: state, when, started, ended, run, how it ended, where
    (1, "old", 2000, 9, 5000, 2000, 5000, 1, "exited", PLACE, '{"command":["true"],"resources":{"gpus":2}}'),
    (2, "ran", 0, 3, 6000, 6000, 0, 1, "", PLACE, '{"command":["echo","again"],"requeue":true,' + RESOURCES + "}"),
    (3, "held", 0, 0, 7000, 0, 0, 0, "", "", '{"command":["echo","held"],"held":true,' + RESOURCES + "}"),
    (4, "late", 0, 1, 8000, 0, 0, 0, "", "", '{"command":["echo","late"],' + RESOURCES + "}"),
]

case = Cases()


def add_rows(db, home):
    for i, text in enumerate(JOURNAL):
        db.execute("INSERT INTO journal VALUES (?, ?, ?)", (2 ** 32 + i, T + i, f'{{"t":{T + i},{text}}}'))
    for number, name, gpu, state, at, started, ended, run, how, place, spec in JOBS:
        when = [T + ms if ms else 0 for ms in (at, started, ended)]
        db.execute(f"INSERT INTO job VALUES ({', '.join('?' * 23)})",
                   (number, "default", "root", name, 0, T + number, 1, gpu, 0, 0, state, 1, *when, run, 0, 0, how, "",
                    place, 0, 0))
        db.execute("INSERT INTO job_spec VALUES (?, ?)", (number, spec))
    db.execute("INSERT INTO run VALUES (1, 1, 'default', 'root', 'desk1', 'A100-80GB', 2000, 1000, 64, ?, ?)",
               (T + 2000, T + 5000))
    db.execute("INSERT INTO run VALUES (2, 1, 'default', 'root', 'desk1', 'A100-80GB', 0, 1000, 64, ?, 0)",
               (T + 6000,))
    db.execute("INSERT INTO event VALUES (7, ?, 'job', 'default', 4, '{}')", (T,))
    db.execute("INSERT INTO account VALUES ('root', ?, ?, ?, 1, ?)", (home, cl.JOB_UID, cl.JOB_UID, T))


def make_store(c, version):
    """As the version whose last step was `version` left it: the rows are as old as the first."""
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    for number, path in enumerate(STEPS[:version], 1):
        with open(path, encoding="utf-8") as f:
            db.executescript(f.read())
        if number == 1:
            add_rows(db, f"{c.state}/homes/root")
            db.commit()
    db.executescript(f"INSERT INTO meta VALUES ('program', '0.0.{version}'); PRAGMA user_version = {version}; "
                     f"PRAGMA application_id = {APPLICATION_ID};")
    db.close()


def digests(c):
    """Of every file of the store."""
    found = {}
    for path in glob.glob(f"{c.state}/nightshift.db*"):
        if not path.endswith(".lock"):
            with open(path, "rb") as f:
                found[os.path.basename(path)] = hashlib.sha256(f.read()).hexdigest()
    return found


def goes_on(c, version):
    make_store(c, version)
    c.start()
    c.wait_ready()
    same(c.job(1)["state"], "succeeded")
    again = c.wait_end(2)  # its task is gone: it was lost, and may run again
    same((again["state"], again["run"], c.text_of(2)), ("succeeded", 2, "again\n"))
    same((c.wait_end(4)["state"], c.text_of(4)), ("succeeded", "late\n"))
    same(c.job(3)["state"], "held")
    c.ask("POST", "/v1/jobs/3/release", {})
    same((c.wait_end(3)["state"], c.text_of(3)), ("succeeded", "held\n"))
    same(c.submit(["true"], resources={"cpus": 1, "mem": "64Mi"}), 5)
    rows = c.ask("GET", f"/v1/usage?from_ms={T + 3000}&to_ms={T + 5500}")["rows"]
    same([(r["user"], round(r["gpu_hours"] * 3600, 3), r["runs"]) for r in rows], [("root", 4.0, 1)])
    c.wait_end(5)
    total = sum(m["total_gpu_hours"] for m in c.ask("GET", "/v1/fairness?from_ms=0")["machines"])
    assert 0 < total < 1, f"whose the GPUs were is counted from the upgrade on: {total} GPU-hours"
    c.daemon.send_signal(signal.SIGTERM)
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    same(db.execute("PRAGMA user_version").fetchone()[0], len(STEPS))
    same(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
    db.close()
    c.start()  # and once more, on what it wrote itself
    c.wait_ready()
    same(c.job(5)["state"], "succeeded")


for step in range(1, len(STEPS)):
    case(f"a store of format {step} is brought to format {len(STEPS)}, and its jobs go on")(
        lambda c, version=step: goes_on(c, version))


@case("a store of a newer version is refused by name, and not a byte of it is touched")
def _(c):
    newer = len(STEPS) + 1
    make_store(c, len(STEPS))
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    db.executescript(f"PRAGMA user_version = {newer}; UPDATE meta SET value = '9.9.9' WHERE key = 'program'; "
                     "CREATE TABLE of_the_future (x);")
    db.close()
    before = digests(c)
    done = subprocess.run(c.argv(), capture_output=True, text=True, timeout=cl.PATIENCE_S, check=False)
    same(done.returncode, 5)
    for part in (f"has format {newer}", "of nightshiftd 9.9.9", f"knows formats up to {len(STEPS)}",
                 "hint: start the newer nightshiftd, or use a copy from before the upgrade"):
        assert part in done.stderr, done.stderr
    same(digests(c), before)


@case("a file that is no store is refused, and not a byte of it is touched")
def _(c):
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    db.executescript("CREATE TABLE somebody_elses (x);")
    db.close()
    before = digests(c)
    done = subprocess.run(c.argv(), capture_output=True, text=True, timeout=cl.PATIENCE_S, check=False)
    same(done.returncode, 2)
    assert "another program" in done.stderr, done.stderr
    same(digests(c), before)


if __name__ == "__main__":
    sys.exit(case.each(["--node-name", "desk1", "--mem", "1Gi"]))
