"""api_cases - what the API refuses over its socket; idempotency and events over a restart.

One case of each kind: every field, parameter and body is tried in one process (src/api/*_test.c).  The machine is drained,
so nothing changes but by what a case does; after every refusal the number of jobs and the length of the journal must be
what they were.
"""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

case = Cases()
JSON = "application/json"


# ---- one request ----

class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Client:
    """A connection that is kept, over the socket."""

    def __init__(self, c):
        self.c = c
        self.conn = cl.UnixConnection(f"{c.run}/api.sock", 60)

    def ask(self, method, path, body=None, **headers):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        names = {key.replace("_", "-"): value for key, value in headers.items()}
        if body is not None and "Content-Type" not in names:
            names["Content-Type"] = JSON
        self.conn.request(method, path, body, names)
        answer = self.conn.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


def things(c):
    """What must not change by a refusal: jobs, lines of the journal, events, answers, tokens."""
    with sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True) as db:
        return [db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                for t in ("job", "journal", "event", "answer", "directory")]


def made(c):
    """The same without the journal, to which a start of the daemon adds lines."""
    jobs, _, *rest = things(c)
    return [jobs, *rest]


def is_problem(answer, status, field, what):
    """The refusal is a whole problem, names the field for programs and for people, and says the way out."""
    same((what, answer.status, answer.headers["Content-Type"]), (what, status, "application/problem+json"))
    p = answer.json()
    same((what, p["status"], p["type"]), (what, status, "about:blank"))
    assert p["title"] and p["code"] and p["detail"], (what, p)
    same((what, p.get("field")), (what, field))
    last = field.rpartition(".")[2] if field else ""
    assert last in p["detail"], f"{what}: '{last}' is not named in: {p['detail']}"
    assert p.get("hint"), f"{what}: no hint beside: {p['detail']}"
    assert "\n" not in p["detail"] + p["hint"] and len(p["detail"]) + len(p["hint"]) < 400, (what, p)


# ---- refusals: fields_test.c and params_test.c of src/api have every one ----

@case("what is wrong with a field, a parameter, a body or a method is refused by name over the socket, and changes nothing")
def _(c, h):
    before = things(c)
    is_problem(h.ask("POST", "/v1/jobs", {"command": ["true"], "resources": {"gpus": "many"}}), 400, "resources.gpus", "a field")
    is_problem(h.ask("POST", "/v1/jobs", {"command": ["true"]}, Content_Type="text/plain"), 415, "Content-Type", "a type")
    is_problem(h.ask("GET", "/v1/jobs?limits=5"), 400, "limits", "a slip")
    is_problem(h.ask("GET", "/v1/jobs/%20"), 400, "id", "no number")
    for bad in ("?state=%", "?state=%zz", "?name=%00", "?" + "&".join("a=1" for _ in range(65))):
        same((bad[:20], h.ask("GET", f"/v1/jobs{bad}").status), (bad[:20], 400))
    for body in (b"{", b"\xff\xfe{}", b"[" * 100000):
        same((body[:9], h.ask("POST", "/v1/jobs", body).status), (body[:9], 400))
    answer = h.ask("PATCH", "/v1/jobs")
    same((answer.status, answer.headers["Allow"]), (405, "GET, HEAD, POST, OPTIONS"))
    answer = h.ask("HEAD", "/v1/whoami")
    same((answer.status, answer.body, int(answer.headers["Content-Length"]) > 10), (200, b"", True))
    same(things(c), before)


# ---- once ----

@case("the same key with the same body is one job, with another body it is refused, and both survive a restart")
def _(c, h):
    spec, other = {"command": ["true"], "held": True}, {"command": ["false"], "held": True}
    first = h.ask("POST", "/v1/jobs", spec, Idempotency_Key="once")
    same((first.status, first.headers["Location"]), (201, f"/v1/jobs/{first.json()['id']}"))
    one = h.ask("POST", "/v1/jobs", {"jobs": [spec]}, Idempotency_Key="a batch of one")
    before = made(c)
    for _ in range(2):
        again = h.ask("POST", "/v1/jobs", spec, Idempotency_Key="once")
        same((again.status, again.body, again.headers["Idempotent-Replay"]), (201, first.body, "true"))
        same(h.ask("POST", "/v1/jobs", {"jobs": [spec]}, Idempotency_Key="a batch of one").body, one.body)
        is_problem(h.ask("POST", "/v1/jobs", other, Idempotency_Key="once"), 409, "Idempotency-Key", "another body")
        same(made(c), before)
        h.conn.close()
        c.daemon.terminate()
        same(c.daemon.wait(cl.PATIENCE_S), 0)
        c.start()
        c.wait_ready()
    is_problem(h.ask("POST", "/v1/jobs", spec, Idempotency_Key="x" * 257), 400, "Idempotency-Key", "too long")


# ---- events ----

def events_after(c, number, how_many, by_header):
    """The next so many events, as (number, data)."""
    conn = cl.UnixConnection(f"{c.run}/api.sock", 30)
    conn.request("GET", "/v1/events" if by_header else f"/v1/events?after={number}", None,
                 {"Last-Event-ID": str(number)} if by_header else {})
    answer, found, at = conn.getresponse(), [], None
    same(answer.status, 200)
    while len(found) < how_many:
        line = answer.readline().decode()
        assert line, "the stream ended"
        if line.startswith("id: "):
            at = int(line[4:])
        elif line.startswith("data: "):
            found.append((at, line[6:]))
    conn.close()
    return found


@case("events go on after the last one seen, over a restart: none lost, none twice")
def _(c, h):
    first = h.ask("POST", "/v1/jobs", {"command": ["true"], "held": True}).json()["id"]
    for verb in ("release", "hold", "release", "cancel"):
        same(h.ask("POST", f"/v1/jobs/{first}/{verb}", {}).status, 200)
    total = things(c)[2]
    whole = events_after(c, 0, total, by_header=False)
    same(len({number for number, _ in whole}), total)
    middle = total // 2
    c.daemon.kill()
    c.daemon.wait()
    c.start()
    c.wait_ready()
    h.conn.close()
    same(events_after(c, whole[middle - 1][0], total - middle, by_header=True), whole[middle:])
    later = h.ask("POST", "/v1/jobs", {"command": ["true"], "held": True}).json()["id"]
    new = events_after(c, whole[-1][0], 1, by_header=True)
    same((new[0][0] > whole[-1][0], json.loads(new[0][1])["job"]), (True, later))


def prepare(c):
    c.node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    c.ask("POST", f"/v1/nodes/{c.node}/drain", {})
    c.submit(["true"], held=True)  # job 1, for calls that need one


if __name__ == "__main__":
    sys.exit(case.together(prepare=prepare, arguments=lambda c: (c, Client(c))))
