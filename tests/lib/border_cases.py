"""border_cases - nothing crosses the border between two tenants, whatever is asked.

One tenant (`theirs`, with a marker in its name) has jobs, variables, output, people, tokens, a reservation and files
that are full of two markers: SECRET is what only they could know, IDENT is in the names of their things, which others
may guess.  The people of the other (`ours`: member, lead, viewer, a narrow token) and somebody without a token then
send requests that are made up at random from the API's own description.  SECRET must be in no answer at all, IDENT in
none but to whoever said it first.  At the end everything of theirs is as it was.
"""
import copy
import http.client
import json
import os
import random
import shutil
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import seeds  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402

case = Cases()
REQUESTS = int(os.environ.get("NIGHTSHIFT_REQUESTS", "10000"))
SEED = seeds.seed()
SECRET, IDENT = "qzsecretzq", "qzidentzq"
THEIRS, THEIR_USER, THEIR_KEY = f"{IDENT}-lab", f"{IDENT}-ada", "the-same-key"
SETTINGS = "default_tenant: ''\npools: { desks: { nodes: [pc1] } }\nprofiles: { small: { gpus: 1 } }\n"
SCOPES = ["read", "jobs", "manage"]
# They go on until somebody leaves: in between the others some of what they say is read, for so long.
ENDLESS_S = 0.15


class World:
    def __init__(self, c):
        self.c, self.random, self.asked, self.longest_s = c, random.Random(SEED), 0, 0
        self.port, self.conn = c.port(), None
        spec = c.ask("GET", "/v1/openapi.json")
        self.schemas = spec["components"]["schemas"]
        self.calls = [(method.upper(), path, op) for path, ops in spec["paths"].items() for method, op in ops.items()]
        self.often = self.calls + [one for one in self.calls if one[1].startswith(("/v1/jobs", "/v1/logs"))] * 2
        self.machine = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
        self.theirs()
        self.ours()
        self.was = self.state_of_theirs()
        self.log_was = os.path.getsize(c.log_path)

    def theirs(self):
        c = self.c
        c.ask("PUT", f"/v1/tenants/{THEIRS}", {"help": SECRET, "groups": {SECRET: "viewer"}, "limit": {"gpus": 7}})
        c.ask("PUT", f"/v1/users/{THEIR_USER}", {"full_name": SECRET, "mail": f"{SECRET}@example.org"})
        c.ask("PUT", f"/v1/tenants/{THEIRS}/members/{THEIR_USER}", {"role": "lead"})
        self.their_token = c.ask("POST", "/v1/tokens", {"user": THEIR_USER, "name": f"{IDENT}-token", "scopes": SCOPES})["token"]

        def submit(line, **more):
            return c.ask("POST", "/v1/jobs", {"name": SECRET, "command": ["sh", "-c", line], "env": {"MARK": SECRET},
                                              "tenant": THEIRS, **more}, token=self.their_token, key=more.get("array") or None)["id"]
        one = {"resources": {"cpus": 1, "mem": "64Mi"}}
        ended = submit(f"echo {SECRET}; echo {SECRET} > $HOME/{SECRET}; chmod 600 $HOME/{SECRET}", **one)
        c.wait_end(ended)
        holds = submit(f"echo {SECRET}; exec sleep 600", resources={"gpus": 3, "cpus": 1, "mem": "64Mi"})
        c.wait_state(holds, "running")
        waits = submit("true", resources={"gpus": 4, "cpus": 1, "mem": "64Mi"})
        held = c.ask("POST", "/v1/jobs", {"command": [SECRET], "tenant": THEIRS, "held": True}, token=self.their_token,
                     key=THEIR_KEY)["id"]
        self.their_jobs = [ended, holds, waits, held]

    def ours(self):
        c = self.c
        c.ask("PUT", "/v1/tenants/ours", {})
        c.ask("PUT", "/v1/tenants/below", {"parent": "ours"})
        self.people, self.token = {"member": "member", "lead": "lead", "viewer": "viewer", "narrow": "lead"}, {}
        for user in self.people:
            c.ask("PUT", f"/v1/users/{user}", {})
        self.heal()
        self.our_jobs = []
        for gpus in (0, 1, 2):  # the last has to wait for theirs
            body = {"command": ["sleep", "600"], "tenant": "ours",
                    "resources": {"cpus": 1, "mem": "64Mi", **({"gpus": gpus} if gpus else {})}}
            self.our_jobs.append(c.ask("POST", "/v1/jobs", body, token=self.token["member"])["id"])
        c.wait_state(self.our_jobs[0], "running")
        c.wait_state(self.our_jobs[1], "running")
        c.ask("PUT", f"/v1/reservations/{IDENT}-class", {"tenant": THEIRS, "nodes": [self.machine], "for": "1h",
                                                         "from_ms": int(time.time() * 1000) + 3600_000})
        c.ask("POST", f"/v1/nodes/{self.machine}/drain", {})  # what is submitted from here on waits

    def heal(self):
        """They may take themselves out, and their tokens away: so that they can go on."""
        for user, role in self.people.items():
            self.c.ask("PUT", f"/v1/tenants/ours/members/{user}", {"role": role})
            if self.token.get(user) and self.c.call("GET", "/v1/server", token=self.token[user])[0] == 200 and \
                    self.c.call("GET", "/v1/whoami", token=self.token[user])[0] == 200:
                continue
            self.c.call("DELETE", f"/v1/tokens/test?user={user}")
            body = {"user": user, "name": "test", "scopes": SCOPES, **({"tenants": ["ours"]} if user == "narrow" else {})}
            self.token[user] = self.c.ask("POST", "/v1/tokens", body)["token"]
        page = self.c.ask("GET", "/v1/jobs?tenant=ours&limit=1000")["jobs"]
        for j in page:
            if j["id"] > max(getattr(self, "our_jobs", [2**53])):
                self.c.call("POST", f"/v1/jobs/{j['id']}/cancel", {})

    def state_of_theirs(self):
        """What must be the same at the end; times go on."""
        c = self.c
        jobs = [c.job(n) for n in self.their_jobs]
        page = c.ask("GET", f"/v1/jobs?tenant={THEIRS}&state=all&limit=1000")["jobs"]
        tokens = [t for t in c.ask("GET", "/v1/tokens")["tokens"] if IDENT in t["user"]]
        users = [u for u in c.ask("GET", "/v1/users")["users"] if IDENT in u["name"]]
        reserved = c.ask("GET", "/v1/reservations")["reservations"]
        return without_times([jobs, sorted(j["id"] for j in page), tokens, users, c.ask("GET", f"/v1/tenants/{THEIRS}"),
                              [(r["name"], r["tenant"], r["from_ms"]) for r in reserved if IDENT in r["name"]],
                              [c.text_of(n) for n in self.their_jobs[:2]]])

    # ---- one request ----

    def send(self, method, path, body, headers, endless):
        """(status, headers and body as bytes)"""
        if endless or self.conn is None:
            if self.conn:
                self.conn.close()
            self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=cl.PATIENCE_S)
        began = time.monotonic()
        try:
            self.conn.request(method, path, body, headers)
            answer = self.conn.getresponse()
            data = self.read_some(answer) if endless else answer.read()
        except (http.client.HTTPException, ConnectionError) as why:
            self.conn.close()
            self.conn = None
            return 0, repr(why).encode()
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if endless or answer.will_close:
            self.conn.close()
            self.conn = None
        return answer.status, str(answer.headers).encode() + data

    def read_some(self, answer):
        data, until = b"", time.monotonic() + ENDLESS_S
        self.conn.sock and self.conn.sock.settimeout(ENDLESS_S)
        while time.monotonic() < until:
            try:
                piece = answer.read1(1 << 16)
            except (TimeoutError, socket.timeout):
                break
            if not piece:
                break
            data += piece
        return data

    def hear(self, path, headers, mark):
        """What a request that goes on for ever says, until the mark is in it."""
        conn, data = http.client.HTTPConnection("127.0.0.1", self.port, timeout=cl.PATIENCE_S), b""
        try:
            conn.request("GET", path, None, headers)
            answer = conn.getresponse()
            same(answer.status, 200)
            while mark not in data:
                piece = answer.read1(1 << 16)
                assert piece, f"it ended before {mark} came, after {data[-400:]}"
                data += piece
        finally:
            conn.close()
        return data


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not k.endswith(("_ms", "_s")) and k != "log"}  # counted when there is time
    return [without_times(v) for v in value] if isinstance(value, (list, tuple)) else value


def differences(was, now, at=""):
    """Where they differ, as text."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [d for k in was.keys() | now.keys() for d in differences(was.get(k), now.get(k), f"{at}.{k}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [d for i, pair in enumerate(zip(was, now)) for d in differences(*pair, f"{at}[{i}]")]
    return [] if was == now else [f"{at}: {was!r:.200} -> {now!r:.200}"]


# ---- what requests are made of ----

ODD = ["", "0", "-1", "1e9", "9007199254740991", "18446744073709551616", "..", ".", "%2e%2e", "a%2Fb", "%00", "%0d%0a", "*",
       "'", "ours' OR '1'='1", "ours\" --", "null", "true", "%F0%9F%98%80", "x" * 300, "all", "all,", "root", "test", "admin"]


# Fields that name something there is: elsewhere a name of theirs that was said would be kept as one of ours.
REFERS = ("tenant", "tenants", "reservation", "user", "parent", "pools", "id")


def names(w, field="tenant"):
    theirs = [THEIRS, THEIR_USER, f"{IDENT}-token", f"{IDENT}-class"] if field in REFERS else []
    return ["ours", "below", "member", "lead", "viewer", "narrow", "desks", "small", "test", w.machine, "default", *theirs, *ODD]


def text_for(w, name, schema, field="tenant"):
    r = w.random
    if name == "id" or name in ("array", "before"):
        return str(r.choice([*w.our_jobs, *w.their_jobs, *w.their_jobs, r.randrange(1, 300)])) if r.random() < 0.9 else r.choice(ODD)
    if name == "grep":  # what their output has in it: a line that comes back has all of it
        return r.choice([SECRET[:6], SECRET[2:], "z", r.choice(ODD)])
    if name == "key":
        return r.choice(["0123456789abcdef", "f" * 32, r.choice(ODD)])
    if schema.get("enum") and r.random() < 0.8:
        return str(r.choice(schema["enum"]))
    if schema.get("type") == "integer" and r.random() < 0.8:
        return str(r.choice([0, 1, 5, 1000, r.randrange(2**31), r.randrange(2**53)]))
    return r.choice(names(w, field))


def value_for(w, schema, field="", depth=0):
    """A value that may be right: by its schema, mostly."""
    r = w.random
    while "$ref" in schema:
        at = w.schemas
        for part in schema["$ref"].split("/")[3:]:
            at = at[part]
        schema = at
    if r.random() < 0.06 or depth > 6:
        return r.choice([None, 0, -1, 1.5, True, [], {}, r.choice(names(w, field)), [r.choice(names(w, field))]])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return value_for(w, r.choice(schema[key]), field, depth + 1)
    if "enum" in schema:
        return r.choice(schema["enum"])
    kind = schema.get("type")
    kind = r.choice(kind) if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        fields = {k: value_for(w, v, k, depth + 1) for k, v in schema.get("properties", {}).items()
                  if k in schema.get("required", []) or r.random() < 0.25}
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and r.random() < 0.6:
            fields[r.choice(names(w, field))] = value_for(w, more, field, depth + 1)
        return fields
    if kind == "array":
        return [value_for(w, schema.get("items", {}), field, depth + 1) for _ in range(r.randrange(3))]
    if kind in ("integer", "number"):
        return r.choice([0, 1, 2, *w.our_jobs, *w.their_jobs, 86400_000, int(time.time() * 1000) + r.randrange(10**8)])
    if kind == "boolean":
        return r.random() < 0.5
    if kind == "null":
        return None
    return r.choice(names(w, field))


GOOD = {  # bodies that are taken, to be changed from there
    "/v1/jobs": {"command": ["sh", "-c", "env; cat /etc/hostname"], "tenant": "ours", "resources": {"cpus": 1, "mem": "64Mi"}},
    "/v1/jobs/check": {"command": ["true"], "tenant": "ours", "after": [1], "reservation": "none"},
    "/v1/jobs/act": {"verb": "cancel", "jobs": [1, 2, 3]},
    "/v1/tokens": {"name": "more", "scopes": ["read"], "tenants": ["ours"]},
    "/v1/jobs/{id}/signal": {"signal": "CONT"},
    "/v1/tenants/{name}/members/{user}": {"role": "member"},
    "/v1/apply": {"tenants": {"ours": {"members": ["member"]}}, "users": {"member": {}}, "dry_run": True},
    "/v1/reservations/{name}": {"tenant": "ours", "for": "1h"},
}


def body_for(w, path, op):
    r = w.random
    content = op["requestBody"]["content"]
    if "application/json" not in content:
        return bytes(r.randrange(256) for _ in range(r.randrange(64)))
    if path in GOOD and r.random() < 0.7:
        body = copy.deepcopy(GOOD[path])
        for key in list(body):
            if r.random() < 0.35:
                known = names(w, key)
                body[key] = r.choice([r.choice(known), [r.choice(known)], r.choice(w.their_jobs), [r.choice(w.their_jobs)],
                                      {r.choice(known): r.choice(known)}])
        if path.startswith("/v1/jobs") and r.random() < 0.4:
            key = r.choice(["after", "reservation", "tenant", "profile", "name", "volumes"])
            body[key] = r.choice([r.choice(w.their_jobs), r.choice(names(w, key)), [f"any:{r.choice(w.their_jobs)}"],
                                  [{"from": f"{w.c.state}/homes/{r.choice(ODD)}", "to": "/mnt"}]])
    else:
        body = value_for(w, content["application/json"]["schema"])
    text = json.dumps(body)
    if r.random() < 0.05:
        at = r.randrange(len(text) + 1)
        text = text[:at] + r.choice(["\0", "{", "}", '"', ",", "\xff", "9" * 40]) + text[at:]
    return text.encode("utf-8", "surrogatepass")


def headers_for(w, method):
    r = w.random
    who = r.choice(["member", "member", "lead", "lead", "viewer", "narrow", None])
    headers = {}
    if who:
        token = w.token[who]
        headers["Authorization"] = f"Bearer {token}" if r.random() < 0.97 else r.choice(
            [f"Bearer {token[:-1]}", f"bearer {token}", f"Basic {token}", "Bearer ", f"Bearer {token}x", f"Bearer nst_{'0' * 64}"])
    if method in ("POST", "PUT", "DELETE"):
        headers["Content-Type"] = "application/json" if r.random() < 0.95 else r.choice(["text/plain", "application/octet-stream"])
    if r.random() < 0.1:
        name = r.choice(["Idempotency-Key", "Last-Event-ID", "Cookie", "X-Forwarded-User", "X-Remote-User", "X-Forwarded-For",
                         "Host", "Origin", "Range", "If-None-Match", "Accept", "X-HTTP-Method-Override"])
        headers[name] = {"Idempotency-Key": THEIR_KEY, "Last-Event-ID": "0", "Cookie": "nightshift=nss_" + "0" * 64,
                         "X-HTTP-Method-Override": "DELETE"}.get(name, THEIR_USER if "User" in name else "x")
    if method == "POST" and r.random() < 0.2:
        headers["Idempotency-Key"] = THEIR_KEY
    return who, headers


def request(w):
    """(who, method, path, body, headers, does it go on for ever)"""
    r = w.random
    method, template, op = r.choice(w.often)
    endless = op["operationId"] in ("events", "job_stream")
    if endless and r.random() < 0.7:  # they take long
        return request(w)
    path, query = template, []
    for p in op.get("parameters", []):
        if p["in"] == "path":
            field = "" if method == "PUT" and p["name"] == "user" else "tenant"
            value = text_for(w, p["name"], p["schema"], field)
            path = path.replace("{" + p["name"] + "}", value if "%" in value else urllib.parse.quote(value, safe=""))
        elif p["in"] == "query" and (p.get("required") or r.random() < 0.35):
            value = text_for(w, p["name"], p["schema"])
            if p["name"] == "follow":
                endless = True
            query.append(f"{p['name']}={value if '%' in value else urllib.parse.quote(value, safe='')}")
    if r.random() < 0.05:
        query.append(r.choice(["tenant=" + THEIRS, "user=" + THEIR_USER, "x=1", "all=1", "id=" + str(w.their_jobs[0])]))
    if r.random() < 0.03:
        path = r.choice(["/" + path, path + "/", path + "/..", path.replace("/v1/", "/v1//"), path.upper(), path + "%00", path + "?"])
    if r.random() < 0.04:
        method = r.choice(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    body = body_for(w, template, op) if "requestBody" in op and method in ("POST", "PUT") else None
    if body is None and method in ("POST", "PUT"):
        body = b"{}"
    who, headers = headers_for(w, method)
    return who, method, path + ("?" + "&".join(query) if query else ""), body, headers, endless


def said_by(path, body, headers):
    """Did the caller say one of their names?"""
    return IDENT in urllib.parse.unquote(path) or IDENT.encode() in (body or b"") or any(IDENT in v for v in headers.values())


# ---- cases ----

def send_many(w, n_requests):
    """({status: how often}, what should not have been answered)"""
    counts, leaks = {}, []
    for n in range(n_requests):
        if n % 250 == 0:
            w.heal()
        who, method, path, body, headers, endless = request(w)
        status, data = w.send(method, path, body, headers, endless)
        counts[status] = counts.get(status, 0) + 1
        if status == 401 and who and headers["Authorization"] == f"Bearer {w.token[who]}":
            w.heal()
        leaked = SECRET.encode() in data or (IDENT.encode() in data and not said_by(path, body, headers))
        if leaked or (status >= 500 and status != 503):
            at = max(data.find(SECRET.encode()), data.find(IDENT.encode()))
            leaks.append(f"{n}: {who} {method} {path} {body!r:.200} -> {status} …{data[max(0, at - 80):at + 80]!r}")
            if len(leaks) > 10:
                break
    return counts, leaks


@case(f"{REQUESTS} requests made up at random: nothing of theirs is in any answer")
def _(w):
    counts, leaks = send_many(w, REQUESTS)
    print("# answers: " + ", ".join(f"{status} {n}×" for status, n in sorted(counts.items())))
    print(f"# the longest took {w.longest_s:.2f} s")
    assert not leaks, "\n".join(leaks)
    good = sum(n for status, n in counts.items() if 200 <= status < 300)
    assert good > REQUESTS // 10 and counts.get(404, 0) > REQUESTS // 50, counts


@case("a name of theirs is answered as a name that nobody has")
def _(w):
    w.heal()
    no = IDENT[::-1]
    tried = 0
    for method, template, op in w.calls:
        if method != "GET" or op["operationId"] in ("events", "job_stream"):
            continue
        for name in (THEIRS, THEIR_USER, f"{IDENT}-token", f"{IDENT}-class"):
            path = template
            for part in ("{name}", "{user}"):
                path = path.replace(part, name)
            for p in op.get("parameters", []):
                if p["in"] == "query" and p["name"] in ("tenant", "user", "name"):
                    path += ("&" if "?" in path else "?") + f"{p['name']}={name}"
            if "{" in path or name not in path:
                continue
            for who in w.people:
                headers = {"Authorization": f"Bearer {w.token[who]}"}
                theirs = w.send("GET", path, None, headers, False)
                nobody = w.send("GET", path.replace(IDENT, no), None, headers, False)
                same((who, path, theirs[0]), (who, path, nobody[0]))
                tail = [data.split(b"\n\n", 1)[-1].replace(no.encode(), IDENT.encode()) for _, data in (theirs, nobody)]
                same((who, path, tail[0]), (who, path, tail[1]))
                tried += 1
    assert tried >= 20, tried


@case("what happens to theirs is told to none of ours")
def _(w):
    w.heal()
    w.c.ask("POST", f"/v1/jobs/{w.their_jobs[3]}/release", {})
    w.c.ask("POST", f"/v1/jobs/{w.their_jobs[3]}/hold", {})
    # What is told of ours comes after it: by then theirs would have come.
    ours = w.c.ask("POST", "/v1/jobs", {"command": ["true"], "tenant": "ours", "held": True})["id"]
    for who in w.people:
        data = w.hear("/v1/events?after=0", {"Authorization": f"Bearer {w.token[who]}"}, f'"job":{ours},'.encode())
        assert SECRET.encode() not in data and IDENT.encode() not in data, data
    for path in ("/metrics", "/v1/nodes", "/v1/usage", "/v1/quota", "/v1/pools/desks", "/v1/reservations", "/v1/tenants",
                 *(f"/v1/jobs/{n}/why" for n in w.our_jobs)):
        for who in (*w.people, None):
            headers = {"Authorization": f"Bearer {w.token[who]}"} if who else {}
            status, data = w.send("GET", path, None, headers, False)
            assert status in (200, 401), (who, path, status)
            assert SECRET.encode() not in data and IDENT.encode() not in data, (who, path, data)


@case("their jobs, people, tokens and reservations are as they were")
def _(w):
    same(differences(w.was, w.state_of_theirs()), [])
    same(w.c.call("GET", "/v1/whoami", token=w.their_token)[1]["user"], THEIR_USER)


@case("the daemon lives, and had no failure of its own")
def _(w):
    assert w.c.daemon.poll() is None
    with open(w.c.log_path, encoding="utf-8", errors="replace") as f:
        f.seek(w.log_was)
        bad = [line for line in f if " error " in line or "internal" in line]
    assert not bad, "".join(bad[:10])


@case("without the scope of what is seen, the same requests find what is theirs")
def _(w):
    if not os.access(f"{cl.BUILD}/nightshiftd-weak", os.X_OK):
        raise Skip("the weak programs are not built")
    c = make(weak=["tenant_scope"], name="weak")
    try:
        c.start()
        c.wait_ready()
        _, leaks = send_many(World(c), 1000)
        assert len(leaks) > 5, leaks
    finally:
        c.close()


def make(**how):
    c = cl.Cluster(["--rate", "1000000", "--rate-burst", "1000000"], listen="127.0.0.1:0", **how)
    shutil.copy(f"{cl.LIBEXEC}/nightshift-signin", c.libexec)
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


WORLDS = []


if __name__ == "__main__":
    sys.exit(case.together(make=make, prepare=lambda c: WORLDS.append(World(c)), arguments=lambda c: (WORLDS[0],)))
