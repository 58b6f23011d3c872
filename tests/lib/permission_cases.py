"""permission_cases - every call of the API as every role, on a real daemon: allowed or refused as the table says.

The calls and how far each role reaches come from /v1/openapi.json (x-reach, x-scope), so a new call without an
example here fails.  A cell is one call by one person about one thing: their own, of their tenant, or of others.
Allowed is every answer but 401, 403 and 404; refused is one of these.  ANCHORS are cells that are written here a
second time, by hand: a table that says something else fails.
"""
import http.client
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

case = Cases()
SETTINGS = """
default_tenant: ""
pools: { desks: { nodes: [pc1] } }
"""
REFUSED = (401, 403, 404)
KEY = "0123456789abcdef"
# They go on until somebody leaves: their status is enough.
ENDLESS = {"events", "job_stream", "journal"}


# ---- people: name -> (role on the site, role in `ours`, owns the machine) ----

PEOPLE = {
    "none": ("none", None, False),
    "owner": ("none", None, True),
    "viewer": ("none", "viewer", False),
    "watcher": ("viewer", None, False),
    "member": ("none", "member", False),
    "lead": ("none", "lead", False),
    "operator": ("operator", None, False),
    "admin": ("admin", None, False),
    "narrow": ("admin", "member", True),  # an administrator's token that is good for `ours` only
}


class World:
    """The daemon, a token for everybody, and what calls are about."""

    def __init__(self, c):
        self.c, self.serial = c, 0
        self.port = c.port()
        self.conn = {}
        self.spec = c.ask("GET", "/v1/openapi.json")
        self.calls = {op["operationId"]: (method.upper(), path, op)
                      for path, ops in self.spec["paths"].items() for method, op in ops.items()}
        self.machine = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
        for tenant in ("ours", "theirs"):
            c.ask("PUT", f"/v1/tenants/{tenant}", {})
        for user in ("mate", "stranger", *PEOPLE):
            c.ask("PUT", f"/v1/users/{user}", {})
        self.token = {None: None, "mate": self.make_token("mate"), "stranger": self.make_token("stranger")}
        self.place("ours", "mate", "member")
        self.place("theirs", "stranger", "member")
        self.job = {}
        for user in PEOPLE:  # everybody was a member once, and has a job from then
            self.place("ours", user, "member")
            self.token[user] = self.make_token(user, tenants=["ours"] if user == "narrow" else None)
            self.job[user] = self.submit(user, "ours")
        self.job["mate"], self.job["stranger"] = self.submit("mate", "ours"), self.submit("stranger", "theirs")
        for user, (site, place, owns) in PEOPLE.items():
            c.ask("PUT", f"/v1/users/{user}", {"role": site})
            if place is None:
                c.ask("DELETE", f"/v1/tenants/ours/members/{user}")
            else:
                self.place("ours", user, place)
            if owns:
                c.ask("PUT", f"/v1/nodes/{self.machine}/owners/{user}", {})
        c.ask("PUT", "/v1/nodes/pc1/owners/stranger", {})
        for i, tenant_name in enumerate(("ours", "theirs")):
            c.ask("PUT", f"/v1/reservations/of-{tenant_name}", {"tenant": tenant_name, "nodes": [self.machine], "for": "1h",
                                                                "from_ms": now_ms() + (1 + i) * 86400_000})
        for number in self.job.values():
            c.wait_state(number, "running")

    def place(self, tenant, user, role):
        self.c.ask("PUT", f"/v1/tenants/{tenant}/members/{user}", {"role": role})

    def make_token(self, user, scopes=("read", "jobs", "manage", "report"), tenants=None, name="test"):
        body = {"user": user, "name": name, "scopes": list(scopes)}
        if tenants:
            body["tenants"] = tenants
        return self.c.ask("POST", "/v1/tokens", body)["token"]

    def submit(self, user, tenant):
        return self.c.ask("POST", "/v1/jobs", {"command": ["sleep", "600"], "tenant": tenant,
                                               "resources": {"cpus": 1, "mem": "64Mi"}}, token=self.token[user])["id"]

    def fresh(self, prefix):
        self.serial += 1
        return f"{prefix}{self.serial}"

    def ask(self, token, operation, request):
        """The status of a call over the network."""
        method, path, _ = self.calls[operation]
        for name, value in request.get("path", {}).items():
            path = path.replace("{" + name + "}", str(value))
        assert "{" not in path, f"{operation}: {path} has no value in its example"
        if operation == "token_give_up" and token:  # one like it: it itself is needed again
            status, me = self.c.call("GET", "/v1/whoami", token=token)
            token = self.make_token(me["user"], me["scopes"], name=self.fresh("spare")) if status == 200 else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = request.get("body")
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            body, headers["Content-Type"] = json.dumps(body), "application/json"
        key = "endless" if operation in ENDLESS else "kept"
        conn = self.conn.setdefault(key, http.client.HTTPConnection("127.0.0.1", self.port, timeout=120))
        conn.request(method, path + request.get("query", ""), body, headers)
        answer = conn.getresponse()
        if operation in ENDLESS:
            conn.close()
        else:
            self.said = answer.read()
        return answer.status


def now_ms():
    return int(time.time() * 1000)


# ---- examples: operation -> (what it is about, request of that thing) ----

def job(**more):
    return lambda w, who, thing: {"path": {"id": w.job[who if thing == "own" else thing]}, **more}


def tenant(**more):
    return lambda w, who, thing: {"path": {"name": thing}, **more}


def plain(**more):
    return lambda w, who, thing: more


def new_tenant(w, who, thing):
    """One below ours or theirs that is there to be removed; the lead of the upper one leads it too."""
    name = w.fresh("below")
    w.c.ask("PUT", f"/v1/tenants/{name}", {"parent": thing})
    return {"path": {"name": name}}


def new_member(w, who, thing):
    name = w.fresh("guest")
    w.place(thing, name, "member")
    return {"path": {"name": thing, "user": name}}


def new_user(w, who, thing):
    if thing == "own":
        return {"path": {"user": who}}
    name = w.fresh("guest")
    w.c.ask("PUT", f"/v1/users/{name}", {})
    return {"path": {"user": name}}


def new_token(w, who, thing):
    owner, name = who if thing == "own" else "mate", w.fresh("t")
    w.make_token(owner, name=name)
    return {"path": {"name": name}, "query": "" if thing == "own" else "?user=mate"}


def make_token(w, who, thing):
    return {"body": {"name": w.fresh("t"), "scopes": ["manage"], **({} if thing == "own" else {"user": "mate"})}}


def new_owner(w, who, thing):
    w.c.ask("PUT", f"/v1/nodes/{w.machine}/owners/mate", {})
    return {"path": {"name": w.machine, "user": "mate"}}


def a_pool(**more):
    def make(w, who, thing):
        name = w.fresh("pool")
        w.c.ask("PUT", f"/v1/pools/{name}", {"nodes": []})
        return {"path": {"name": name}, **more}
    return make


def a_reservation(w, who, thing):
    name = w.fresh("res")
    w.c.ask("PUT", f"/v1/reservations/{name}", {"tenant": "theirs", "nodes": [w.machine], "for": "1h",
                                                "from_ms": now_ms() + (200 + w.serial) * 3600_000})
    return {"path": {"name": name}}


def a_session(w, who, thing):
    return {"body": {"token": w.token[who or "mate"]}}


def a_login(**more):
    """A command line that waits for somebody's yes."""
    def make(w, who, thing):
        begun = w.c.ask("POST", "/v1/login", {"name": "laptop"})
        return {"path": {"code": begun["user_code"]}, **more}
    return make


def a_poll(w, who, thing):
    return {"body": {"device_code": w.c.ask("POST", "/v1/login", {"name": "laptop"})["device_code"]}}


URIS = {"redirect_uris": ["https://hub.example.org/back"]}


def a_client(**more):
    def make(w, who, thing):
        name = w.fresh("client")
        w.c.ask("PUT", f"/v1/clients/{name}", URIS)
        return {"path": {"client": name}, **more}
    return make


JOBS, TENANTS, PERSONS = ("own", "mate", "stranger"), ("ours", "theirs"), ("own", "mate")
SUBMIT = {"command": ["true"], "held": True, "resources": {"cpus": 1, "mem": "64Mi"}}
EXAMPLES = {
    "job_list": (None, plain()),
    "job_submit": (TENANTS, lambda w, who, thing: {"body": {**SUBMIT, "tenant": thing}}),
    "job_check": (TENANTS, lambda w, who, thing: {"body": {**SUBMIT, "tenant": thing}}),
    "job_get": (JOBS, job()), "job_why": (JOBS, job()), "job_events": (JOBS, job()), "job_history": (JOBS, job()),
    "job_log": (JOBS, job()),
    "log_search": (None, plain(query="?grep=x")),
    "job_stream": (JOBS, job(query=f"?key={KEY}")),
    # Its stream is not open: whoever may is told so by a 404 of other words.
    "job_stream_send": (JOBS, lambda w, who, thing: {"path": {"id": w.job[who if thing == "own" else thing], "key": KEY},
                                                     "query": "?n=1", "body": b"\0", "allowed": b"no such stream"}),
    "job_hold": (JOBS, job(body={})), "job_release": (JOBS, job(body={})), "job_freeze": (JOBS, job(body={})),
    "job_thaw": (JOBS, job(body={})), "job_signal": (JOBS, job(body={"signal": "CONT"})),
    "job_cancel": (JOBS, job(body={})),
    "node_list": (None, plain()),
    "clock_confirm": (None, plain(body={})),
    "node_drain": (("machine",), lambda w, who, thing: {"path": {"name": w.machine}, "body": {}}),
    "node_resume": (("machine",), lambda w, who, thing: {"path": {"name": w.machine}, "body": {}}),
    "node_load": (None, lambda w, who, thing: {"path": {"name": w.machine}}),
    "node_history": (None, lambda w, who, thing: {"path": {"name": w.machine}}),
    # Whoever may report is told that this is none.
    "node_report": (("machine",), lambda w, who, thing: {"path": {"name": w.machine}, "body": b"?"}),
    "gpu_list": (None, plain()),
    "pool_list": (None, plain()), "pool_get": (None, plain(path={"name": "desks"})),
    "pool_put": (None, a_pool(body={})), "pool_delete": (None, a_pool()),
    "pool_open": (None, a_pool(body={"for": "1h"})), "pool_close": (None, a_pool(body={"for": "1h"})),
    "pool_regular": (None, a_pool(body={})),
    "reservation_list": (None, plain()), "reservation_get": (TENANTS, lambda w, who, thing: {"path": {"name": f"of-{thing}"}}),
    "reservation_put": (None, lambda w, who, thing: {**a_reservation(w, who, thing), "body": {"for": "30m"}}),
    "reservation_delete": (None, a_reservation),
    "tenant_list": (None, plain()), "tenant_get": (TENANTS, tenant()), "tenant_put": (TENANTS, tenant(body={"help": "x"})),
    "tenant_delete": (TENANTS, new_tenant),
    "member_put": (TENANTS, lambda w, who, thing: {"path": {"name": thing, "user": "guest"}, "body": {"role": "viewer"}}),
    "member_delete": (TENANTS, new_member),
    "node_command": (("machine",), lambda w, who, thing: {"path": {"name": w.machine}, "body": {"what": "pause", "task": "0.1.0"},
                                                           "allowed": b"no task"}),
    "node_commands": (("machine",), lambda w, who, thing: {"path": {"name": w.machine}}),
    "user_list": (None, plain()), "user_get": (PERSONS, lambda w, who, thing: {"path": {"user": who if thing == "own" else thing}}),
    "user_put": (PERSONS, lambda w, who, thing: {"path": {"user": who if thing == "own" else thing}, "body": {"mail": "x@y"}}),
    "user_delete": (("mate",), new_user),
    "owner_put": (None, new_owner), "owner_delete": (None, new_owner),
    "quota": (None, plain()), "usage": (None, plain()), "profiles": (None, plain()), "events": (None, plain()),
    "journal": (None, plain()), "export": (None, plain()),
    "apply": (None, plain(body={"dry_run": True, "tenants": {"ours": {}}})),
    "token_list": (None, plain()), "token_create": (PERSONS, make_token), "token_delete": (PERSONS, new_token),
    "token_give_up": (None, plain()),
    "session_open": (None, a_session), "session_close": (None, plain()),
    "whoami": (None, plain()), "server": (None, plain()), "doctor": (None, plain()), "permissions": (None, plain()),
    "openapi": (None, plain()), "health": (None, plain()), "ready": (None, plain()), "metrics": (None, plain()),
    "audit_list": (None, plain()), "audit_verify": (None, plain()), "audit_export": (None, plain()),
    "signin": (None, plain()), "door_page": (None, plain()), "door_script": (None, plain()),
    "session_list": (None, plain()), "session_close_all": (None, plain()), "notice_accept": (None, plain(body={})),
    "notices_get": (None, plain()), "notices_put": (None, plain(body={})), "notices_log": (None, plain()),
    "notices_test": (None, plain(body={"way": "mail"})),
    "user_password": (PERSONS, lambda w, who, thing: {"path": {"user": who if thing == "own" else thing},
                                                      "body": {"password": "correct horse battery"}}),
    # Whoever comes so far is told that the code is wrong, or that there is no provider.
    "setup": (None, plain(body={"code": "x", "user": "x", "password": "correct horse battery"}, allowed=b"code")),
    "sso": (None, plain(allowed=b"sign")), "sso_back": (None, plain(query="?state=x&code=x", allowed=b"sign")),
    "login": (None, plain(body={})), "login_poll": (None, a_poll), "login_get": (None, a_login()),
    # People say yes in a browser: a token that may ask is told so.
    "login_approve": (None, a_login(body={}, allowed=b"a token cannot say yes")), "login_deny": (None, a_login(body={})),
    "fairness": (None, plain()),
    "client_list": (None, plain()), "client_put": (None, a_client(body=URIS)), "client_delete": (None, a_client()),
    # Anybody may come here; what they bring is looked at then.
    "oauth_authorize": (None, plain(query="?client_id=none&response_type=code&redirect_uri=x&code_challenge=x"
                                          "&code_challenge_method=S256&state=x", allowed=b"")),
    "oauth_token": (None, plain(body={"grant_type": "authorization_code", "code": "x", "redirect_uri": "x",
                                      "code_verifier": "x"}, allowed=b"")),
    "oauth_userinfo": (None, plain(allowed=b"a token that /oauth/token gave")), "oauth_metadata": (None, plain(allowed=b"external_url")),
    "page": (None, plain()), "page_script": (None, plain()), "page_style": (None, plain()),
}


# ---- what the table says ----

def allowed(w, operation, who, thing):
    op = w.calls[operation][2]
    if op.get("security") == [] or who is None:
        return who is not None or op.get("security") == []
    on_site, place, owns = PEOPLE[who]
    narrow, reach = who == "narrow", op["x-reach"]

    def covers(how, role_is_on_site=False):
        return how == "all" or (how == "own" and thing in (None, "own")) or \
            (how == "tenant" and (role_is_on_site or thing in (None, "own", "mate", "ours")))
    # A role in a tenant says nothing about people, their tokens and machines.
    in_tenant = place and not operation.startswith(("user_", "token_", "node_")) and thing not in ("theirs", "stranger")
    return covers(reach.get("none")) or (not narrow and covers(reach.get(on_site), True)) or \
        (not narrow and owns and reach.get("owner") == "machine") or bool(in_tenant and covers(reach.get(place)))


def tries(w, operation, who, thing, token):
    """Was it allowed?"""
    request = EXAMPLES[operation][1](w, who, thing)
    status = w.ask(token, operation, request)
    if "allowed" in request and status in REFUSED:
        return request["allowed"] in w.said, status
    return status not in REFUSED, status


# ---- cases ----

@case("every call has an example here")
def _(w):
    same(sorted(set(w.calls) ^ set(EXAMPLES)), [])


@case("every call by every role, about its own and others' things, ends as the table says")
def _(w):
    wrong, cells = [], 0
    for operation, (things, _) in EXAMPLES.items():
        for who in (None, *PEOPLE):
            for thing in things or (None,):
                if who is None and thing == "own":
                    continue
                want = allowed(w, operation, who, thing)
                got, status = tries(w, operation, who, thing, w.token[who])
                cells += 1
                if got != want or (who is None and not want and status != 401):
                    wrong.append(f"{operation} by {who} about {thing}: {status}, should be {'allowed' if want else 'refused'}")
    print(f"# {cells} cells of {len(EXAMPLES)} calls")
    assert not wrong, f"{len(wrong)} of {cells} cells:\n" + "\n".join(wrong[:40])


@case("a token's scope is what a call needs, or it is refused")
def _(w):
    wrong, cells = [], 0
    for scope in ("read", "jobs", "manage", "report"):
        token = w.make_token("admin", scopes=[scope], name=f"only-{scope}")
        for operation, (things, _) in EXAMPLES.items():
            op = w.calls[operation][2]
            want = op.get("security") == [] or op["x-scope"] in ("", scope)
            got, status = tries(w, operation, "admin", "mate" if things and "mate" in things else (things or (None,))[0], token)
            cells += 1
            if got != want:
                wrong.append(f"{operation} with {scope}: {status}, should be {'allowed' if want else 'refused'}")
    print(f"# {cells} cells")
    assert not wrong, "\n".join(wrong[:40])


# operation, who, about what, allowed
ANCHORS = """
job_get none mate no            job_get viewer mate yes         job_get watcher stranger yes    job_get member stranger no
job_log member mate no          job_log member own yes          job_log lead mate yes           job_log operator mate no
job_log viewer mate no          job_cancel viewer mate no       job_cancel member mate no       job_cancel lead mate yes
job_cancel lead stranger no     job_cancel operator stranger yes job_stream lead mate no        job_stream operator mate no
job_submit viewer ours no       job_submit member ours yes      job_submit member theirs no     job_submit operator ours no
job_submit watcher ours no      node_drain owner machine yes    node_drain member machine no    node_drain operator machine yes
member_put lead ours yes        member_put lead theirs no       member_put member ours no       member_put operator ours no
tenant_put lead ours no         tenant_put operator ours no     tenant_get member theirs no     tenant_get viewer ours yes
user_get member own yes         user_get member mate no         user_get operator mate yes      user_put operator mate no
user_put member own no          token_create member own yes     token_create operator mate no   token_delete lead mate no
token_create narrow mate no     job_get narrow stranger no      node_drain narrow machine no    node_report member machine no
node_report owner machine yes   node_report narrow machine no   gpu_list none - yes             node_load member - yes
user_list lead - no             node_report operator machine yes
user_list operator - yes        journal operator - no           apply operator - no             quota none - no
log_search none - no            log_search viewer - no          log_search operator - no        log_search member - yes
"""


@case("what matters most is refused and allowed, whatever the table says")
def _(w):
    words = ANCHORS.split()
    for operation, who, thing, want in zip(*[iter(words)] * 4):
        got, status = tries(w, operation, who, None if thing == "-" else thing, w.token[who])
        same((operation, who, thing, status, got), (operation, who, thing, status, want == "yes"))


@case("what is printed is what is tried")
def _(w):
    table = w.c.ask("GET", "/v1/permissions")
    rows = {(r["method"], r["path"]): r for r in table["calls"]}
    same(len(rows), len(w.calls))
    for method, path, op in w.calls.values():
        row = rows[(method, path.replace("{", ":").replace("}", ""))]
        same((row["reach"], row["scope"], row["public"]), (op["x-reach"], op["x-scope"], op.get("security") == []))
    same([r["name"] for r in table["roles"]], ["none", "owner", "viewer", "member", "lead", "operator", "admin"])


def make():
    c = cl.Cluster(listen="127.0.0.1:0")
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


WORLDS = []


def prepare(c):
    WORLDS.append(World(c))


if __name__ == "__main__":
    sys.exit(case.together(make=make, prepare=prepare, arguments=lambda c: (WORLDS[0],)))
