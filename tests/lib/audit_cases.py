"""audit_cases - who did what, on a real daemon: written with each change, and found when it was changed.

The chain is computed here once more, from the words of docs/ops/audit.md, with Python's hashlib and sqlite3: from the
store's file and from what is exported.
"""
import concurrent.futures
import hashlib
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402
from task import exec_frame  # noqa: E402

NIGHTSHIFT = f"{cl.BUILD}/nightshift"
SMALL = {"cpus": 1, "mem": "64Mi"}
ANA, BEN = 61001, 61002  # people without an account here
TEXTS = ("who", "via", "address", "what", "subject", "tenant", "before", "after", "reason")
DAY_MS = 86_400_000
KEY = "0123456789abcdef"
case = Cases()


# ---- the chain, by its description ----

def chained(before, row):
    """The hash of a row: BLAKE2b-256 over the hash before and the fields as netstrings."""
    fields = [str(row["number"]), str(row["t_ms"]), *(row[name] for name in TEXTS)]
    text = b"".join(b"%d:%s," % (len(f.encode()), f.encode()) for f in fields)
    return hashlib.blake2b(before + text, digest_size=32).digest()


def check_chain(rows, cut, head):
    """What is wrong, or None."""
    at, last = cut
    for row in rows:
        if row["number"] != at + 1:
            return f"row {at + 1} is missing"
        last = chained(last, row)
        if last.hex() != row["hash"]:
            return f"row {row['number']} does not match"
        at = row["number"]
    return None if (at, last) == head else f"it ends at {at}, and {head[0]} was written"


def link(text):
    number, _, value = (text or f"0 {'0' * 64}").partition(" ")
    return int(number), bytes.fromhex(value)


def from_file(c):
    """(rows, cut, head) as they lie in the store."""
    db = sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True)
    try:
        names = ("number", "t_ms", *TEXTS)
        rows = [dict(zip((*names, "hash"), row)) for row in
                db.execute(f"SELECT {', '.join(names)}, lower(hex(hash)) FROM audit ORDER BY number")]
        meta = dict(db.execute("SELECT key, value FROM meta WHERE key LIKE 'audit_%'"))
    finally:
        db.close()
    return rows, link(meta.get("audit_cut")), link(meta.get("audit_head"))


def from_export(text):
    first, *lines = [json.loads(line) for line in text.splitlines()]
    same(first["audit"], 1)
    return lines, *((first[end]["number"], bytes.fromhex(first[end]["hash"])) for end in ("cut", "head"))


def is_whole(c):
    """By our own count, by the server's and by the command's, on both."""
    export = c.ask("GET", "/v1/audit/export")
    same(check_chain(*from_file(c)), None)
    same(check_chain(*from_export(export)), None)
    answer = c.ask("GET", "/v1/audit/verify")
    same((answer["ok"], answer["fault"], answer["row"]), (True, None, None))
    same(says(c, "audit", "verify", "-", text=export)[0], 0)
    return answer


# ---- what is done ----

def begin(c):
    c.start()
    c.wait_ready()
    c.node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]


def rows_of(c, query=""):
    """The oldest first."""
    return c.ask("GET", f"/v1/audit?limit=1000{query}")["rows"][::-1]


def says(c, *words, text=None):
    done = subprocess.run([NIGHTSHIFT, *words], capture_output=True, text=True, check=False, input=text,
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"})
    return done.returncode, done.stdout, done.stderr


def drain(c, verb="drain", reason=None):
    return c.ask("POST", f"/v1/nodes/{c.node}/{verb}", {"reason": reason} if reason else {})


def over_tcp(c, token, method, path, body=None):
    conn = http.client.HTTPConnection("127.0.0.1", c.port(), timeout=cl.PATIENCE_S)
    conn.request(method, path, json.dumps(body or {}),
                 {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    answer = conn.getresponse()
    data = answer.read()
    address = "%s:%d" % conn.sock.getsockname() if conn.sock else ""
    conn.close()
    return answer.status, data, address


def changed_file(c, *statements):
    """Somebody with the file, while nobody has it open."""
    c.kill_daemon()
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    for name in ("audit_grows", "audit_stays", "audit_goes"):
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
    for sql, *values in statements:
        db.execute(sql, values)
    db.commit()
    db.close()
    begin(c)


def documented(export):
    """What the program in docs/ops/audit.md says of an export: "" when all is well."""
    with open(f"{os.environ['NIGHTSHIFT_SOURCE']}/docs/ops/audit.md", encoding="utf-8") as f:
        program = f.read().partition("```python\n")[2].partition("```")[0]
    assert "blake2b" in program
    done = subprocess.run([sys.executable, "-c", program], input=export, capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


# ---- cases ----

@case("whoever changes something is written down: who, how, from where, before, after and why")
def _(c):
    c.options[c.options.index("--listen") + 1] = "127.0.0.1:0"
    began = int(time.time() * 1000)
    begin(c)
    c.ask("PUT", f"/v1/users/uid-{ANA}", {"role": "operator"})
    token = c.ask("POST", "/v1/tokens", {"name": "laptop", "scopes": ["manage"], "user": f"uid-{ANA}"})["token"]
    drain(c, reason="a new fan")
    status, _, address = over_tcp(c, token, "POST", f"/v1/nodes/{c.node}/resume")
    same(status, 200)
    c.ask("POST", "/v1/tokens", {"name": "mine", "expires": "1d"}, uid=BEN)
    c.ask("DELETE", "/v1/tokens/mine", uid=BEN)
    c.ask("PUT", "/v1/pools/desks", {"window": "zone=UTC; Mon-Fri 20:00-08:00", "nodes": ["pc1"]})
    c.ask("PUT", "/v1/pools/desks", {"nodes": ["pc1", "pc2"]})
    c.ask("POST", "/v1/pools/desks/close", {"for": "3h"})
    c.ask("POST", "/v1/pools/desks/open", {"for": "1h"})
    c.ask("POST", "/v1/pools/desks/regular", {"reason": "as ever"})
    c.ask("DELETE", "/v1/pools/desks")
    tenant = c.ask("GET", "/v1/quota")["tenants"][0]["name"]
    c.ask("PUT", "/v1/reservations/class", {"tenant": tenant, "for": "2h", "nodes": [c.node]})
    c.ask("DELETE", "/v1/reservations/class")
    first, *rows = rows_of(c)
    same((first["what"], first["subject"], json.loads(first["after"])["role"]), ("user.set", f"uid-{ANA}", "operator"))
    same([(r["who"], r["via"], r["what"], r["subject"]) for r in rows], [
        ("root", "socket uid 0", "token.create", f"uid-{ANA}/laptop"), ("root", "socket uid 0", "node.drain", c.node),
        (f"uid-{ANA}", "token laptop", "node.resume", c.node),
        (f"uid-{BEN}", f"socket uid {BEN}", "token.create", f"uid-{BEN}/mine"),
        (f"uid-{BEN}", f"socket uid {BEN}", "token.delete", f"uid-{BEN}/mine"),
        *(("root", "socket uid 0", f"pool.{what}", "desks") for what in ("set", "set", "close", "open", "regular", "delete")),
        ("root", "socket uid 0", "reservation.set", "class"), ("root", "socket uid 0", "reservation.delete", "class")])
    same([(r["before"], r["after"], r["reason"]) for r in rows[1:3]],
         [('{"state":"up"}', '{"state":"drain"}', "a new fan"), ('{"state":"drain"}', '{"state":"up"}', "")])
    same((rows[1]["address"], rows[2]["address"].split(":")[0]), ("unix", "127.0.0.1"))
    assert not address or rows[2]["address"] == address, (address, rows[2])
    same((rows[5]["before"], json.loads(rows[5]["after"])["nodes"], json.loads(rows[6]["before"])["nodes"],
          json.loads(rows[6]["after"])["nodes"], rows[10]["after"]), ("", ["pc1"], ["pc1"], ["pc1", "pc2"], ""))
    same([len(json.loads(r["after"])["exceptions"]) > 0 for r in rows[7:10]], [True, True, False])
    same((rows[9]["reason"], rows[11]["tenant"], rows[12]["tenant"]), ("as ever", tenant, tenant))
    now = time.time() * 1000
    assert all(began <= r["t_ms"] <= now for r in rows), rows
    is_whole(c)
    drain(c)
    for query, n in ((f"&who=uid-{BEN}", 2), ("&what=pool.", 6), ("&what=pool.set", 2), (f"&subject={c.node}", 3),
                     (f"&tenant={tenant}", 2), (f"&since_ms={int(now) + 100_000}", 0), ("&until_ms=1", 0), ("&before=4", 3)):
        same((query, len(rows_of(c, query))), (query, n))


@case("what somebody else does to a job is written: ending it, signals, commands inside")
def _(c):
    begin(c)
    number = c.submit(["sleep", "600"], uid=ANA, resources=SMALL)
    c.wait_state(number, "running")
    wait_for("its process", lambda: c.job_pids(number))
    conn = cl.UnixConnection(f"{c.run}/api.sock", cl.PATIENCE_S)
    conn.request("GET", f"/v1/jobs/{number}/stream?key={KEY}")
    down = conn.getresponse()
    c.ask("POST", f"/v1/jobs/{number}/stream/{KEY}?n=1", exec_frame(["true"]), kind="application/octet-stream")
    down.read()
    c.signal(number, "CONT")
    c.ask("POST", f"/v1/jobs/{number}/cancel", {"reason": "the room is too hot"})
    c.wait_end(number)
    held = c.submit(["true"], uid=ANA, held=True, resources=SMALL)
    c.ask("POST", f"/v1/jobs/{held}/release", {})
    rows = wait_for("all rows", lambda: len(rows_of(c)) == 4 and rows_of(c))
    same([(r["who"], r["what"], r["subject"]) for r in rows],
         [("root", "job.exec", str(number)), ("root", "job.signal", str(number)), ("root", "job.cancel", str(number)),
          ("root", "job.release", str(held))])
    same((rows[1]["after"], rows[2]["reason"], rows[2]["before"], rows[3]["before"], rows[3]["after"]),
         ('{"signal":"CONT"}', "the room is too hot", '{"state":"running"}', '{"state":"held"}', '{"state":"queued"}'))
    same({r["tenant"] for r in rows}, {c.job(number)["tenant"]})
    is_whole(c)


@case("whatever is changed in the file is found, and the daemon says so wherever one looks")
def _(c):
    begin(c)
    for i in range(6):
        drain(c, "resume" if i % 2 else "drain", reason=f"number {i}")
    noted = is_whole(c)["head"]
    same(noted["number"], 6)
    changed_file(c, ("UPDATE audit SET who = 'eve' WHERE number = 3",))
    answer = c.ask("GET", "/v1/audit/verify")
    same((answer["ok"], answer["fault"], answer["row"], answer["rows"]), (False, "hash", 3, 2))
    assert check_chain(*from_file(c)) == "row 3 does not match"
    code, out, _ = says(c, "audit", "verify")
    assert code == 1 and "row 3: " in out, (code, out)
    wait_for("the log to say so", lambda: "error audit.broken row=3 fault=hash" in c.log_tail())
    checks = {check["name"]: check for check in c.ask("GET", "/v1/doctor")["checks"]}
    assert not checks["audit"]["ok"] and checks["audit"]["found"].startswith("row 3: "), checks["audit"]
    assert "the audit is not as it was written" in says(c, "status")[1]
    assert "\nnightshift_audit_broken 1\n" in c.ask("GET", "/metrics")
    drain(c)  # it goes on being written
    same(c.ask("GET", "/v1/audit/verify")["row"], 3)
    changed_file(c, ("UPDATE audit SET who = 'root' WHERE number = 3",))
    is_whole(c)
    wait_for("that to be seen", lambda: "\nnightshift_audit_broken 0\n" in c.ask("GET", "/metrics"))
    code, out, _ = says(c, "audit", "verify", "--head", noted["hash"], "--number", "6")
    assert code == 0 and out.startswith("✓ 7 rows; the last is 7 "), (code, out)
    changed_file(c, ("UPDATE audit SET number = 99 WHERE number = 4",), ("UPDATE audit SET number = 4 WHERE number = 5",),
                 ("UPDATE audit SET number = 5 WHERE number = 99",))
    same(c.ask("GET", "/v1/audit/verify")["row"], 4)  # two have changed places
    changed_file(c, ("DELETE FROM audit WHERE number = 5",))
    assert says(c, "audit", "verify")[0] == 1
    export = c.ask("GET", "/v1/audit/export")
    assert check_chain(*from_export(export)) and says(c, "audit", "verify", "-", text=export)[0] == 1


@case("rows cut off at the end are found, and with their traces removed by a noted head")
def _(c):
    begin(c)
    for i in range(6):
        drain(c, "resume" if i % 2 else "drain")
    noted = c.ask("GET", "/v1/audit/verify")["head"]["hash"]
    changed_file(c, ("DELETE FROM audit WHERE number > 4",))
    answer = c.ask("GET", "/v1/audit/verify")
    same((answer["fault"], answer["row"]), ("head", 5))
    rows, _, _ = from_file(c)
    changed_file(c, ("UPDATE meta SET value = ? WHERE key = 'audit_head'", f"4 {rows[3]['hash']}"))
    is_whole(c)
    code, out, _ = says(c, "audit", "verify", "--head", noted)
    assert code == 1 and "noted head" in out, (code, out)
    answer = c.ask("GET", f"/v1/audit/verify?head={noted}&number=6")
    same((answer["ok"], answer["fault"], answer["row"]), (False, "noted", 6))


@case("a change and its row are on the disk together, or neither is, whenever the daemon dies")
def _(c):
    begin(c)
    drain(c, "resume")
    died = 0
    for point in [f"store.{when}_commit:{n}" for when in ("before", "after") for n in range(2, 9)]:
        state = c.ask("GET", "/v1/nodes")["nodes"][0]["state"]
        count = len(rows_of(c))
        verb = "resume" if state == "drain" else "drain"
        c.kill_daemon()
        c.start(failpoint=point)
        wait_for("its death, or its readiness", lambda: c.daemon.poll() is not None or c.is_ready())
        try:
            c.call("POST", f"/v1/nodes/{c.node}/{verb}", {})
            c.call("POST", "/v1/tokens", {"name": point.replace(":", "-")})
        except cl.Away:
            died += 1
        c.kill_daemon()
        begin(c)
        after = c.ask("GET", "/v1/nodes")["nodes"][0]["state"]
        rows = rows_of(c)
        same((point, sum(r["what"].startswith("node.") for r in rows[count:])), (point, int(after != state)))
        tokens = {f"{t['user']}/{t['name']}" for t in c.ask("GET", "/v1/tokens")["tokens"]}
        same((point, tokens), (point, {r["subject"] for r in rows if r["what"] == "token.create"}))
        is_whole(c)
    assert died >= 4, died


@case("rows go when they are old, which is a row itself, and the rest verifies", "--keep-audit", "10d")
def _(c):
    path = f"{c.folder}/clock"
    c.env["NIGHTSHIFT_TEST_CLOCK"] = path

    def turn(days):
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            f.write(str(days * DAY_MS))
        os.rename(f"{path}.new", path)

    turn(0)
    begin(c)
    first = None
    for day in range(0, 18, 3):
        turn(day)
        drain(c, "resume" if day % 2 else "drain", reason=f"day {day}")
        first = first or c.ask("GET", "/v1/audit/verify")["head"]
    c.kill_daemon()  # it looks for what is old soon after a start
    begin(c)
    wait_for("what is old is gone", lambda: [r["reason"] for r in rows_of(c, "&what=node.")] == ["day 6", "day 9", "day 12", "day 15"])
    cuts = rows_of(c, "&what=audit.cut")  # the look after the first start may have come in the middle of this
    cut, cut_rows = cuts[-1], [json.loads(one["after"])["rows"] for one in cuts]
    number, last = link(cut["subject"])
    same((cut["who"], cut["via"], sum(cut_rows), number), ("system", "system", 2, 2))
    answer = is_whole(c)
    same((answer["cut"]["number"], answer["cut"]["hash"]), (2, last.hex()))
    log = c.log_tail(200)
    assert f"audit.cut rows={cut_rows[-1]} until_ms={json.loads(cut['after'])['until_ms']} number=2 hash={last.hex()}" in log, log
    same(c.ask("GET", f"/v1/audit/verify?head={last.hex()}")["ok"], True)
    same(c.ask("GET", f"/v1/audit/verify?head={first['hash']}")["fault"], "noted")  # it is kept no longer
    heads = log.count(" audit.head ")
    turn(16)  # the next day its head is told again
    wait_for("the head of the next day", lambda: c.log_tail(200).count(" audit.head ") > heads)
    rows, _, head = from_file(c)
    changed_file(c, ("DELETE FROM audit WHERE number <= 4",),
                 ("UPDATE meta SET value = ? WHERE key = 'audit_cut'", f"4 {rows[1]['hash']}"))
    same((c.ask("GET", "/v1/audit/verify")["fault"], from_file(c)[2]), ("cut", head))  # nobody told of this one


@case("others are answered while a long audit is verified and exported")
def _(c):
    begin(c)
    last, rows = bytes(32), []
    first_ms = int(time.time() * 1000) - 86400_000  # not so old that it is let go
    for number in range(1, 60_001):
        row = {"number": number, "t_ms": first_ms + number, **dict.fromkeys(TEXTS, "x")}
        last = chained(last, row)
        rows.append((number, row["t_ms"], *("x" for _ in TEXTS), last))
    c.kill_daemon()
    db = sqlite3.connect(f"{c.state}/nightshift.db")
    db.executemany(f"INSERT INTO audit VALUES ({', '.join('?' * 12)})", rows)
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('audit_head', ?)", (f"60000 {last.hex()}",))
    db.commit()
    db.close()
    begin(c)
    paths = ["/v1/audit/verify"] * 3 + ["/v1/audit/export"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = [pool.submit(c.ask, "GET", path) for path in paths]
        answered = 0
        while not any(a.done() for a in asked):
            assert c.is_ready()
            answered += 1
        for a in asked[:3]:
            same((a.result()["ok"], a.result()["rows"]), (True, 60_000))
        same(asked[3].result().count("\n"), 60_001)
    assert answered >= 5, answered
    same(len(rows_of(c, "&who=nobody")), 0)


@case("no token's text is in the audit, the export, the log or the store")
def _(c):
    c.options[c.options.index("--listen") + 1] = "127.0.0.1:0"
    begin(c)
    tokens = [c.ask("POST", "/v1/tokens", {"name": name, "scopes": ["read", "manage"]})["token"] for name in ("one", "two")]
    same(over_tcp(c, tokens[0], "POST", f"/v1/nodes/{c.node}/drain")[0], 200)
    same(over_tcp(c, tokens[1], "DELETE", "/v1/tokens/one")[0], 204)
    texts = [json.dumps(rows_of(c)), c.ask("GET", "/v1/audit/export"), c.log_tail(1000), says(c, "audit", "-o", "wide")[1]]
    for name in ("nightshift.db", "nightshift.db-wal"):
        with open(f"{c.state}/{name}", "rb") as f:
            texts.append(f.read().decode(errors="replace"))
    assert "token one" in texts[0] and all(texts), texts[0]
    for token in tokens:
        assert not any(token in text or token.removeprefix("nst_") in text for text in texts)


@case("the command shows rows, what changed in one, and an export that verifies without a server")
def _(c):
    begin(c)
    says(c, "drain", c.node, "--reason", "a new fan")
    c.ask("PUT", "/v1/pools/desks", {"nodes": ["pc1"]})
    c.ask("PUT", "/v1/pools/desks", {"nodes": ["pc1", "pc2"]})
    code, out, _ = says(c, "audit")
    assert code == 0 and "state up → drain: a new fan" in out and "nodes pc1 → pc1 pc2" in out, out
    same(out.splitlines()[0].split(), ["N", "TIME", "WHO", "FROM", "WHAT", "SUBJECT", "CHANGE"])
    assert "socket uid 0" in says(c, "audit", "--what", "node.", "-o", "wide")[1]
    same(says(c, "audit", "--what", "pool.", "-o", "name", "--limit", "1")[1], "3\n")
    same(len(json.loads(says(c, "audit", "-o", "json", "--since", "1h")[1])["rows"]), 3)
    same(says(c, "audit", "--until", "1h", "-o", "name")[1], "")
    out = says(c, "audit", "show", "3")[1]
    assert "\n- nodes pc1\n+ nodes pc1 pc2\n" in out and "\nsubject  desks\n" in out, out
    same([says(c, "audit", *words)[0] for words in (("show", "99"), ("show", "x"), ("frob",), ("verify", "/nowhere"),
                                                     ("verify", "--head", "x"), ("verify", "--number", "3"))], [4, 2, 2, 4, 2, 2])
    code, export, _ = says(c, "audit", "export")
    same((code, documented(export), documented(export.replace("a new fan", "a new fam")),
          documented(export.rpartition('{"number":3')[0])),
         (0, "", "AssertionError: row 1", "AssertionError: rows at the end are missing"))
    with open(f"{c.work}/export", "w", encoding="utf-8") as f:
        f.write(export)
    c.kill_daemon()
    code, out, _ = says(c, "audit", "verify", f"{c.work}/export")
    assert code == 0 and out.startswith("✓ 3 rows; the last is 3 "), out
    with open(f"{c.work}/export", "w", encoding="utf-8") as f:
        f.write(export.replace("a new fan", "a new fam"))
    code, out, _ = says(c, "audit", "verify", f"{c.work}/export")
    assert code == 1 and "row 1: " in out, out
    begin(c)


if __name__ == "__main__":
    sys.exit(case.each())
