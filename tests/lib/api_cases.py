"""api_cases - what the API refuses, and how; idempotency, pages, events.

The fields of a job and the parameters of every call are taken from /v1/openapi.json: a new one without a row in
FIELDS fails here.  The machine is drained, so nothing changes but by what a case does; after every refusal the
number of jobs and the length of the journal must be what they were.
"""
import json
import os
import sqlite3
import sys
import threading
import urllib.parse

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


# ---- the fields of a job ----

NOT_TEXT = (5, 1.5, True, [], {})
CONTROL = ("a\0b", "a\nb", "\x1b[31mred", "\x7f")


def text(most):
    return (*NOT_TEXT, *CONTROL, "x" * (most + 1))


def path(most):
    return (*NOT_TEXT, *CONTROL, "", "here", "./x", "/a/../b", "/..", "/" + "x" * most)


NUMBER = ("many", "", True, [], {}, -1, -0.5, 1e99, 2**64, -2**63)
WORD = (5, True, [], {}, "", "nonsense", "a\0b", "x" * 65, "NORMAL ")
FLAG = (0, 1, "yes", "", [], {})
SIZE = ("", "big", "16 Gi", "-1Gi", "1Mi ", "0", "1K", "999999Ti", "9" * 65, True, [], {}, -1, 0, 1.5, 2**63, "1\0Gi")
DURATION = ("", "soon", "-1h", "1 h", "1h1h", "1s1h", "99999d", "1:60", "9" * 65, True, [], {}, -1, 1.5, 2**63, "1\0h")
SIGNAL = ("", "NOPE", "usr1", 0, 65, -1, 1.5, True, [], {}, "SIG", "x" * 17)

FIELDS = {
    "name": text(253), "tenant": text(253), "reservation": text(253), "profile": (*text(253), "no-such-profile"),
    "command": ([], "", [""], [5], [["true"]], 5, True, {}, ["a\0b"], "a\0b", ["x"] * 4097, "x" * (128 * 1024 + 1)),
    "workdir": path(4095), "cwd": path(4095),
    "env": (5, "A=b", [], {"": "x"}, {"1A": "x"}, {"A=B": "x"}, {"A B": "x"}, {"A": None}, {"A": []}, {"A": {}},
            {"A": "a\0b"}, {"A" * 257: "x"}, {f"A{i}": "x" for i in range(1025)}),
    "image": text(1024),
    "volumes": (5, "/a:/b", {}, [5], ["a:/b"], ["/a:b"], ["/a:/b:rx"], ["/a:/../b"], ["/a\n:/b"], [{}], [{"from": 5}],
                [{"from": "/a", "to": "b"}], [{"from": "/a", "colour": 1}], [{"from": "/a", "ro": "yes"}], ["/a"] * 65),
    "resources.gpus": (*NUMBER, 17, 1.5), "resources.gpu_share": (*NUMBER, 0, 1, 0.0001),
    "resources.gpu_mem": SIZE, "resources.mem": SIZE, "resources.scratch": SIZE, "resources.gpu_type": text(1024),
    "resources.devices": (5, "a/b", [], True, {"": 1}, {"a b": 1}, {"/a": 1}, {"a\0b": 1}, {"a": 0}, {"a": -1}, {"a": 1.5},
                          {"a": "1"}, {"a": 65536}, {"a": None}, {"x" * 254: 1}, {f"a{i}": 1 for i in range(9)}),
    "resources.cpus": (*NUMBER, 0, 0.0001, 4097, "0", "1.0001", "1 ", "m"),
    "replicas": (*NUMBER, 0, 1.5, 4097),
    "placement.scope": WORD, "placement.layout": WORD, "placement.linked": FLAG,
    "max_time": DURATION, "priority": WORD,
    "begin": (True, [], {}, "", "tomorrow", "now+2h", "2026-03-01", "2026-03-01T12:30:00", "2026-02-30T12:30:00Z", 0, -1,
              1.5, 1772368200, 253402300800000),
    "after": (True, {}, "", "late:7", "never:7", "7_3", 0, -1, 1.5, [0], [[7]], ["ok:"], [None], [1 << 53], ["ok:1"] * 65,
              [987654321], "any:987654321"),
    "freeze.mode": WORD, "freeze.signal": SIGNAL, "freeze.grace": DURATION,
    "retries": (*NUMBER, 1.5, 101), "requeue": FLAG,
    "array": (5, [], {}, True, "", "9-0", "0-", "-9", "a-b", "0-9:0", "0-100000", "0-99999999999", "1,2", "0-9\0"),
    "network": WORD, "kind": WORD, "held": FLAG, "tty": FLAG, "stdin": FLAG,
}
SECTIONS = ("resources", "placement", "freeze")


def spec_with(field, value):
    spec, (section, _, key) = {"command": ["true"]}, field.rpartition(".")
    if section:
        spec[section] = {key: value}
    else:
        spec[key] = value
    return spec


@case("every field of a job has its cases here")
def _(c, _h):
    schema = c.ask("GET", "/v1/openapi.json")["components"]["schemas"]["JobSpec"]["properties"]
    known = {name for name in schema if name not in SECTIONS}
    known |= {f"{s}.{key}" for s in SECTIONS for key in schema[s]["properties"]}
    same(sorted(known ^ set(FIELDS)), [])


@case("every wrong value of every field is refused by its name, with the way out, and changes nothing")
def _(c, h):
    before, tried = things(c), 0
    for field, values in FIELDS.items():
        for value in values:
            what = f"{field}: {str(value)[:60]!r}"
            is_problem(h.ask("POST", "/v1/jobs", spec_with(field, value)), 400, field, what)
            tried += 1
    same(things(c), before)
    print(f"# {tried} wrong values")


@case("a job is refused the same way by /v1/jobs/check, and inside a batch with its place")
def _(c, h):
    before = things(c)
    for field, values in FIELDS.items():
        spec = spec_with(field, values[0])
        is_problem(h.ask("POST", "/v1/jobs/check", spec), 400, field, f"check {field}")
        batch = {"jobs": [{"command": ["true"]}, spec]}
        is_problem(h.ask("POST", "/v1/jobs", batch), 400, f"jobs[1].{field}", f"batch {field}")
    same(things(c), before)


@case("fields that are right alone and wrong together are refused by the name of one")
def _(c, h):
    before = things(c)
    for spec, field in (({}, "command"), ({"command": None}, "command"),
                        ({"resources": {"gpus": 1, "gpu_share": 0.5}}, "resources.gpu_share"),
                        ({"resources": {"gpus": 1, "gpu_mem": "1Gi"}}, "resources.gpu_mem"),
                        ({"resources": {"gpu_type": "A100"}}, "resources.gpu_type"),
                        ({"tty": True, "replicas": 2}, "tty"), ({"resources": 5}, "resources"),
                        ({"resources": []}, "resources"), ({"placement": "node"}, "placement"),
                        ({"colour": 1}, "colour"), ({"Name": "x"}, "Name"), ({"resources": {"gpu": 1}}, "resources.gpu"),
                        ({"resources": {"mem": "60Ti"}}, "resources.mem"), ({"resources": {"gpus": 16}}, "resources.gpus"),
                        ({"resources": {"cpus": 4000}}, "resources.cpus"), ({"replicas": 4000}, "replicas"),
                        ({"placement": {"scope": "node", "layout": "spread"}, "replicas": 2}, "placement.layout")):
        full = spec if "command" in spec or spec == {} else {"command": ["true"], **spec}
        is_problem(h.ask("POST", "/v1/jobs", full), 400, field, str(spec))
    is_problem(h.ask("POST", "/v1/jobs", {"command": ["true"], "tenant": "nobody"}), 404, "tenant", "tenant")
    is_problem(h.ask("POST", "/v1/jobs", {"command": ["true"], "reservation": "none"}), 404, "reservation", "reservation")
    for batch, field in (({"jobs": []}, "jobs"), ({"jobs": 5}, "jobs"), ({"jobs": {}}, "jobs"),
                         ({"jobs": [{"command": ["true"]}] * 1001}, "jobs"), ({"jobs": [5]}, "jobs[0]"),
                         ({"jobs": [{"command": ["true"]}], "name": "x"}, "name")):
        answer = h.ask("POST", "/v1/jobs", batch)
        same((field, answer.status, answer.json()["field"]), (field, 400, field))
    same(things(c), before)


# ---- bodies ----

@case("a body that is no JSON object is refused, whatever it is")
def _(c, h):
    before = things(c)
    for body in (b"{", b"[]", b"5", b'"x"', b"null", b"true", b"{}{}", b'{"command":["true"]} x', b"\xff\xfe{}", b"\xef\xbb\xbf",
                 b'{"command":["\xff"]}', b'{"command":["\xed\xa0\x80"]}', b'{"command":["true"],}', b"\0", b" ",
                 b'{"command":["\x01"]}', b"[" * 100000, b'{"a":' * 100000, b'{"replicas":' + b"9" * 100000 + b"}",
                 b'{"command":["true"],"replicas":1e999}', b'{"command":["true"],"replicas":NaN}', b"command: [true]"):
        for call in ("/v1/jobs", "/v1/jobs/check", "/v1/tokens", "/v1/session", "/v1/jobs/1/cancel", "/v1/jobs/1/signal"):
            answer = h.ask("POST", call, body)
            same((call, body[:40], answer.status), (call, body[:40], 400))
            p = answer.json()
            assert p["detail"] and p.get("hint"), (call, body[:40], p)
    same(things(c), before)


@case("a field that is given twice is refused by its name, on every level")
def _(c, h):
    before = things(c)
    for call, body, field in (("/v1/jobs", '{"command":["true"],"command":["false"]}', "command"),
                              ("/v1/jobs", '{"command":["true"],"resources":{"mem":"1Gi","mem":"2Gi"}}', "resources.mem"),
                              ("/v1/jobs", '{"jobs":[{"command":["true"]}],"jobs":[]}', "jobs"),
                              ("/v1/tokens", '{"name":"a","name":"b"}', "name"),
                              ("/v1/jobs/1/signal", '{"signal":"TERM","signal":"KILL"}', "signal"),
                              ("/v1/jobs/1/cancel", '{"reason":"a","reason":"b"}', "reason")):
        is_problem(h.ask("POST", call, body), 400, field, body)
    same(things(c), before)


@case("a body of another type is 415, whatever it says")
def _(c, h):
    before = things(c)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/yaml", "multipart/form-data",
                 "application/jsonx", "text/json", "application/problem+json", ""):
        is_problem(h.ask("POST", "/v1/jobs", {"command": ["true"]}, Content_Type=kind), 415, "Content-Type", kind)
    same(things(c), before)
    for kind in ("application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=utf-8"):
        same(h.ask("POST", "/v1/jobs/check", {"command": ["true"]}, Content_Type=kind).status, 200)


@case("a missing body is a body that says nothing")
def _(_c, h):
    is_problem(h.ask("POST", "/v1/jobs"), 400, "command", "no body")
    is_problem(h.ask("POST", "/v1/jobs/1/signal"), 400, "signal", "no body")
    is_problem(h.ask("POST", "/v1/session"), 400, "user", "no body")


@case("the other bodies are refused by field as well")
def _(c, h):
    before = things(c)
    for call, body, field in (("/v1/tokens", {"name": ""}, "name"), ("/v1/tokens", {"name": "a b"}, "name"),
                              ("/v1/tokens", {"name": 5}, "name"), ("/v1/tokens", {"name": "x" * 65}, "name"),
                              ("/v1/tokens", {"name": "a\0b"}, "name"), ("/v1/tokens", {"user": ".x"}, "user"),
                              ("/v1/tokens", {"user": []}, "user"), ("/v1/tokens", {"expires": "0s"}, "expires"),
                              ("/v1/tokens", {"expires": ""}, "expires"), ("/v1/tokens", {"expires": "99999w"}, "expires"),
                              ("/v1/tokens", {"expires": 5}, "expires"), ("/v1/tokens", {"scopes": ["king"]}, "scopes"),
                              ("/v1/tokens", {"scopes": []}, "scopes"), ("/v1/tokens", {"colour": 1}, "colour"),
                              ("/v1/session", {"token": 5}, "token"), ("/v1/session", {"token": "x" * 257}, "token"),
                              ("/v1/session", {"tok": "x"}, "tok"), ("/v1/jobs/1/signal", {"signal": "NOPE"}, "signal"),
                              ("/v1/jobs/1/signal", {"signal": 9}, "signal"), ("/v1/jobs/1/cancel", {"reason": 5}, "reason"),
                              ("/v1/jobs/1/cancel", {"reason": "x" * 1001}, "reason"), ("/v1/jobs/1/hold", {"x": 1}, "x"),
                              ("/v1/jobs/act", {"jobs": [1]}, "verb"), ("/v1/jobs/act", {"verb": "hop", "jobs": [1]}, "verb"),
                              ("/v1/jobs/act", {"verb": 5, "jobs": [1]}, "verb"), ("/v1/jobs/act", {"verb": "hold"}, "jobs"),
                              ("/v1/jobs/act", {"verb": "hold", "jobs": 1}, "jobs"), ("/v1/jobs/act", {"verb": "hold", "jobs": []}, "jobs"),
                              ("/v1/jobs/act", {"verb": "hold", "jobs": [1, "2"]}, "jobs"), ("/v1/jobs/act", {"verb": "hold", "jobs": [-1]}, "jobs"),
                              ("/v1/jobs/act", {"verb": "hold", "jobs": [1] * 1001}, "jobs"), ("/v1/jobs/act", {"verb": "hold", "jobs": [1], "x": 1}, "x"),
                              ("/v1/jobs/act", {"verb": "hold", "jobs": [1], "reason": 5}, "reason"),
                              (f"/v1/nodes/{c.node}/drain", {"why": 1}, "why")):
        is_problem(h.ask("POST", call, body), 400, field, f"{call} {str(body)[:50]}")
    answer = h.ask("POST", "/v1/session", {"token": "nst_wrong"})
    same((answer.status, answer.json()["field"], "Set-Cookie" in answer.headers), (403, "token", False))
    same(things(c), before)


# ---- parameters ----

KEY = "0123456789abcdef"  # of a stream
NEEDED = {"key": KEY, "n": "1", "grep": "x"}  # values of parameters that a call cannot do without


def needed(operation):
    """The query that it cannot do without."""
    pairs = {p["name"]: NEEDED[p["name"]] for p in operation["parameters"] if p["in"] == "query" and p["required"]}
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def operations(c):
    """(method, path with values, operation) of every call but those of OAuth, which has its own words for what is
    wrong and lets be what it does not know: oauth_cases.py."""
    for template, methods in c.ask("GET", "/v1/openapi.json")["paths"].items():
        if template.startswith("/oauth/"):
            continue
        for method, operation in methods.items():
            yield method.upper(), template.replace("{id}", "1").replace("{name}", c.node).replace("{key}", KEY), operation


def wrong_values(schema):
    if schema.get("type") == "integer":
        return ("-1", "x", "1.5", "", "+1", "0x1", "1 ", str(schema["maximum"] + 1), "9" * 30,
                *([str(schema["minimum"] - 1)] if schema["minimum"] else []))
    if "enum" in schema or "all" in schema.get("pattern", ""):
        return ("nonsense", "TRUE", "running,,queued", "all,running", "x" * 300)
    if "maxLength" not in schema:  # keys and places
        return ("", "x", "1.2", "1.2.x", "-1.2.3", "a" * 300)
    return ("x" * (schema["maxLength"] + 1), "a\nb", "\x7f")


@case("every parameter of every call is refused by its name when it is wrong")
def _(c, h):
    before, tried = things(c), 0
    for method, call, operation in operations(c):
        for p in operation["parameters"]:
            for value in wrong_values(p["schema"]) if p["in"] == "query" else ():
                what = f"{method} {call}?{p['name']}={value[:40]}"
                query = urllib.parse.urlencode({p["name"]: value})
                is_problem(h.ask(method, f"{call}?{query}"), 400, p["name"], what)
                tried += 1
            if p["in"] == "header":
                value = "x" * 300
                answer = h.ask(method, call, {} if method == "POST" else None, **{p["name"]: value})
                is_problem(answer, 400, p["name"], p["name"])
                tried += 1
    same(things(c), before)
    assert tried > 100, tried


@case("a parameter that a call does not know, or is given twice, is refused by its name")
def _(c, h):
    before = things(c)
    for method, call, operation in operations(c):
        if call == "/v1/signin/sso/back":  # what a provider adds is its own business
            continue
        is_problem(h.ask(method, f"{call}?colour=1"), 400, "colour", f"{method} {call}")
        for p in operation["parameters"]:
            if p["in"] == "query":
                value = "text" if p["name"] == "format" else "running" if p["name"] == "state" else "1"
                is_problem(h.ask(method, f"{call}?{p['name']}={value}&{p['name']}={value}"), 400, p["name"], call)
    is_problem(h.ask("GET", "/v1/jobs?limits=5"), 400, "limits", "a slip")
    assert "limit" in h.ask("GET", "/v1/jobs?limits=5").json()["hint"]
    for bad in ("?state=%", "?state=%zz", "?name=%00", "?" + "&".join("a=1" for _ in range(65))):
        same((bad[:20], h.ask("GET", f"/v1/jobs{bad}").status), (bad[:20], 400))
    same(things(c), before)


@case("a number of a job that is none is refused by its name; one that nobody has is not found")
def _(c, h):
    every = c.ask("GET", "/v1/openapi.json")["paths"]
    for method, template, operation in [(m, p, o) for p, ms in every.items() for m, o in ms.items()]:
        if "{id}" in template:
            path = template.replace("{key}", KEY) + needed(operation)
            for bad in ("x", "-1", "1.5", "9007199254740992", "9" * 40, "0x1", "%20", "1%0a"):
                answer = h.ask(method.upper(), path.replace("{id}", bad))
                is_problem(answer, 400, "id", f"{method} {template} {bad}")
            body = {"signal": "TERM"} if template.endswith("signal") else None
            kind = {"Content-Type": "application/octet-stream"} if "{key}" in template else {}
            answer = h.ask(method.upper(), path.replace("{id}", "9007199254740991"), body, **kind)
            same((template, answer.status, answer.json()["code"]), (template, 404, "not_found"))
    is_problem(h.ask("GET", "/v1/jobs/1/stream"), 400, "key", "a stream without its key")
    same(h.ask("POST", "/v1/nodes/nobody/drain").status, 404)
    same(h.ask("DELETE", "/v1/tokens/nobody").status, 404)


@case("other methods are 405 and told which there are; OPTIONS says it too, HEAD is GET without a body")
def _(c, h):
    for template, methods in c.ask("GET", "/v1/openapi.json")["paths"].items():
        call = template.replace("{id}", "1").replace("{name}", "x")
        wanted = {m.upper() for m in methods} | {"OPTIONS"} | ({"HEAD"} if "get" in methods else set())
        for method in {"PUT", "PATCH", "OPTIONS"} - {m.upper() for m in methods}:
            answer = h.ask(method, call)
            same((call, answer.status), (call, 204 if method == "OPTIONS" else 405))
            same((call, set(answer.headers["Allow"].split(", "))), (call, wanted))
    answer = h.ask("HEAD", "/v1/whoami")
    same((answer.status, answer.body, int(answer.headers["Content-Length"]) > 10), (200, b"", True))
    same((h.ask("GET", "/v1/nothing").status, h.ask("GET", "/v1/jobs/1/nothing").status, h.ask("GET", "//v1/jobs").status),
         (404, 404, 404))


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


# ---- pages ----

@case("pages give each job once, while others are submitted")
def _(c, h):
    spec = {"command": ["true"], "held": True, "name": "paged"}
    wanted = set(h.ask("POST", "/v1/jobs", {"jobs": [spec] * 240}).json()["ids"])
    stop = threading.Event()

    def submit_on():
        mine = Client(c)
        while not stop.is_set():
            mine.ask("POST", "/v1/jobs", spec)
    other = threading.Thread(target=submit_on)
    other.start()
    try:
        seen, page = [], h.ask("GET", "/v1/jobs?name=paged&limit=7").json()
        while True:
            seen += [job["id"] for job in page["jobs"]]
            if page["next"] is None:
                break
            page = h.ask("GET", f"/v1/jobs?name=paged&limit=7&before={page['next']}").json()
    finally:
        stop.set()
        other.join()
    same(len(seen), len(set(seen)))
    same(sorted(wanted - set(seen)), [])
    same(seen, sorted(seen, reverse=True))


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


def commits(h):
    line = next(x for x in h.ask("GET", "/metrics").body.decode().splitlines() if x.startswith("nightshift_commits_total "))
    return int(line.split()[1])


@case("what is done to many jobs is one commit, and the answer names those it could not be done to")
def _(_c, h):
    first = h.ask("POST", "/v1/jobs", {"command": ["true"], "held": True, "array": "0-499"}).json()["id"]
    jobs = list(range(first, first + 500))
    over = h.ask("POST", f"/v1/jobs/{first}/cancel", {})
    same(over.status, 200)
    before = commits(h)
    answer = h.ask("POST", "/v1/jobs/act", {"verb": "cancel", "jobs": [*jobs, 987654321], "reason": "enough"})
    same(answer.status, 200)
    assert commits(h) - before < 10, commits(h) - before  # and not one for each; others may have come in between
    said = answer.json()
    same((said["changed"], [(r["job"], r["code"]) for r in said["refused"]]), (499, [(first, "conflict"), (987654321, "not_found")]))
    assert all(r["detail"] and r["hint"] for r in said["refused"]), said["refused"]
    last = h.ask("GET", f"/v1/jobs/{jobs[-1]}").json()
    same((last["state"], "enough" in last["message"]), ("cancelled", True))
    # None of them: the first one's refusal, as by its own call.
    for number, status in ((first, 409), (987654321, 404)):
        refused, alone = (h.ask("POST", path, body) for path, body in (
            ("/v1/jobs/act", {"verb": "cancel", "jobs": [number, 987654321]}), (f"/v1/jobs/{number}/cancel", {})))
        same((refused.status, refused.json()["detail"]), (status, alone.json()["detail"]))


@case("a job tells its own life, a page at a time, with who did what, over a restart")
def _(c, h):
    job = h.ask("POST", "/v1/jobs", {"command": ["true"], "held": True}).json()["id"]
    for verb in ("release", "hold", "release", "cancel"):
        same(h.ask("POST", f"/v1/jobs/{job}/{verb}", {}).status, 200)
    c.daemon.kill()
    c.daemon.wait()
    c.start()
    c.wait_ready()
    h.conn.close()
    seen, page = [], h.ask("GET", f"/v1/jobs/{job}/events?limit=2").json()
    while True:
        seen += page["events"]
        if page["next"] is None:
            break
        same(len(page["events"]), 2)
        page = h.ask("GET", f"/v1/jobs/{job}/events?limit=2&after={page['next']}").json()
    same([e["number"] for e in seen], [1, 2, 3, 4, 5])
    same([(e["what"], e["state"]) for e in seen], [("submitted", "held"), ("released", "queued"), ("held", "held"),
                                                   ("released", "queued"), ("ended", "cancelled")])
    me = c.ask("GET", "/v1/whoami")["user"]
    same([e["by"] for e in seen], [None, me, me, me, me])
    same((seen[0]["reason"], seen[4]["message"], seen[4]["exit_code"]), ("held", f"cancelled by {me}", None))
    assert seen[1]["reason"] and seen[1]["reason_text"], seen[1]  # the machine is drained
    same(sorted(e["t_ms"] for e in seen), [e["t_ms"] for e in seen])
    same(h.ask("GET", f"/v1/jobs/{job}/events?after=5").json(), {"events": [], "next": None})
    same(h.ask("GET", f"/v1/jobs/{job}/history").json(), {"runs": [], "left_out": 0})


def prepare(c):
    c.node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    c.ask("POST", f"/v1/nodes/{c.node}/drain", {})
    c.submit(["true"], held=True)  # job 1, for calls that need one


if __name__ == "__main__":
    sys.exit(case.together(prepare=prepare, arguments=lambda c: (c, Client(c))))
