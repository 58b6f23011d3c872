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
    for number, state, ms in ((3, "starting", 2000), (4, "starting", 2100), (5, "running", 2200), (6, "succeeded", 5000)):
        db.execute("INSERT INTO event VALUES (?, ?, 'job', 'default', 1, ?)",
                   (number, T + ms, f'{{"job":1,"state":"{state}","run":1,"exit_code":0}}'))
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
    db.executescript(f"INSERT INTO meta (key, value) VALUES ('program', '0.0.{version}'); PRAGMA user_version = {version}; "
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
    # What is known of jobs from before, and all of what came since.
    life = lambda n: [e["what"] for e in c.ask("GET", f"/v1/jobs/{n}/events")["events"]]  # noqa: E731
    same(life(1), ["submitted", "placed", "started", "ended"])
    same((life(2), life(3)[:2]), (["submitted", "requeued", "placed", "started", "ended"], ["submitted", "released"]))
    same(life(5), ["submitted", "placed", "started", "ended"])
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


# ---- before there were roles: tokens had one ----

BEFORE_ROLES = 5  # the last format in which a token had a role
OLD_MEMBER, OLD_ADMIN = 2, 3
OLD_TOKENS = {  # text: user, role, expires
    "nst_" + "a1" * 32: ("carla", OLD_ADMIN, 0),
    "nst_" + "b2" * 32: ("ben", OLD_MEMBER, 0),
    "nst_" + "c3" * 32: ("eve", OLD_MEMBER, T),
    "nst_" + "d4" * 32: ("root", OLD_MEMBER, 0),
    "nst_" + "e5" * 32: ("dora", OLD_MEMBER, 0),
}
OLD_SETTINGS = """
admins: [dora]
default_tenant: guests
tenants:
  default: { members: [root] }
  vision: { weight: 2, guarantee: 2, limit: { gpus: 3, jobs: 50 }, members: [ben, eve] }
  guests: { user_limit: { gpus: 1 } }
"""


def make_store_with_tokens(c):
    make_store(c, BEFORE_ROLES)
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    for text, (user, role, expires) in OLD_TOKENS.items():
        db.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?, ?)",
                   (hashlib.blake2b(text.encode(), digest_size=32).digest(), "laptop", user, role, T, expires))
    db.execute("INSERT INTO pool VALUES ('desks', '', 'desk1', '', 0)")
    db.commit()
    db.close()
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(OLD_SETTINGS)


@case("tokens of before there were roles open what they opened, and no more; pools are everybody's; limits hold")
def _(c):
    make_store_with_tokens(c)
    c.start()
    c.wait_ready()
    admin, member, late, of_root, of_admin = OLD_TOKENS
    same(c.call("GET", "/v1/whoami", token=late)[0], 401)
    who = c.ask("GET", "/v1/whoami", token=admin)
    same((who["user"], who["role"]), ("carla", "admin"))
    who = c.ask("GET", "/v1/whoami", token=member)
    same((who["user"], who["role"], who["roles"]), ("ben", "none", {"vision": "member"}))
    for method, path, body in (("POST", "/v1/nodes/desk1/drain", {}), ("POST", "/v1/nodes/desk1/resume", {}),
                               ("GET", "/v1/users", None), ("GET", "/v1/journal", None),
                               ("PUT", "/v1/tenants/new", {}), ("POST", "/v1/jobs/3/cancel", {})):
        status = c.call(method, path, body, token=member)[0]
        assert status in (403, 404), f"{method} {path}: {status}"
    for token, roles in ((of_root, {"default": "member"}), (of_admin, {"guests": "member"})):
        who = c.ask("GET", "/v1/whoami", token=token)
        same((who["role"], who["roles"]), ("none", roles))
        same(c.call("GET", "/v1/users", token=token)[0], 403)
    assert c.call("GET", "/v1/jobs/1", token=of_admin)[0] in (403, 404)
    c.ask("POST", "/v1/nodes/desk1/drain", {}, token=admin)
    c.ask("POST", "/v1/nodes/desk1/resume", {}, token=admin)
    c.ask("PUT", "/v1/tenants/new", {}, token=admin)
    pool = c.ask("GET", "/v1/pools")["pools"]
    same([(p["name"], p["stage"], p["owner"]) for p in pool], [("desks", "all", "api")])
    same(c.ask("PUT", "/v1/pools/desks", {"stage": "beta"}, token=admin)["stage"], "beta")
    same(c.ask("PUT", "/v1/pools/desks", {"stage": "all"}, token=admin)["stage"], "all")
    same(c.job(1)["state"], "succeeded")
    mine = c.ask("POST", "/v1/jobs", {"command": ["true"], "tenant": "vision", "resources": {"cpus": 1, "mem": "64Mi"}},
                 token=member)["id"]
    same((c.wait_end(mine)["state"], c.job(mine)["user"]), ("succeeded", "ben"))
    assert c.call("GET", f"/v1/jobs/{mine}", token=of_root)[0] in (403, 404)
    same(c.call("POST", "/v1/jobs", {"command": ["true"], "tenant": "default"}, token=member)[0], 403)
    status, why = c.call("POST", "/v1/jobs", {"command": ["true"], "tenant": "vision", "resources": {"gpus": 4}},
                         token=member)
    assert status in (400, 409) and "vision" in why["detail"], (status, why)
    same({t["name"]: t["weight"] for t in c.ask("GET", "/v1/quota")["tenants"]
          if t["name"] in ("vision", "guests")}, {"vision": 2, "guests": 1})
    c.kill_daemon()
    c.start()  # and they are so the next time
    c.wait_ready()
    same([(w["user"], w["role"]) for w in (c.ask("GET", "/v1/whoami", token=t) for t in (admin, member, of_root))],
         [("carla", "admin"), ("ben", "none"), ("root", "none")])
    db = sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True)
    rows = db.execute("SELECT name FROM sqlite_master WHERE name = 'token'").fetchall()
    db.close()
    same(rows, [])


@case("a settings file of before there were roles means what it meant: members as a list, admins, who is in no tenant")
def _(c):
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(OLD_SETTINGS)
    c.start()
    c.wait_ready()
    for user, role, roles in (("dora", "admin", None), ("ben", "none", {"vision": "member"}),
                              ("zoe", "none", {"guests": "member"})):
        token = c.ask("POST", "/v1/tokens", {"name": "t", "user": user, "scopes": ["read"]})["token"]
        who = c.ask("GET", "/v1/whoami", token=token)
        same((user, who["role"]), (user, role))
        if roles:
            same(who["roles"], roles)
    tenant = c.ask("GET", "/v1/tenants/vision")
    same((tenant["of_settings"], tenant["spec"]["guarantee"], tenant["spec"]["limit"]["gpus"]), (True, 2, 3))


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
