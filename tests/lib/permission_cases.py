"""permission_cases - who may do what, on a real daemon: the cells that matter most, over the network.

Every call by every role about every kind of thing is tried in one process (src/api/permissions_test.c).  A cell is one
call by one person about one thing: their own, of their tenant, or of others.  Allowed is every answer but 401, 403 and
404; refused is one of these.
"""
import http.client
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

case = Cases()
SETTINGS = """
default_tenant: ""
"""
REFUSED = (401, 403, 404)
KEY = "0123456789abcdef"
# They go on until somebody leaves: their status is enough.
ENDLESS = {"job_stream", "journal"}


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


# ---- examples: operation -> request of a thing ----

def job(**more):
    return lambda w, who, thing: {"path": {"id": w.job[who if thing == "own" else thing]}, **more}


def tenant(**more):
    return lambda w, who, thing: {"path": {"name": thing}, **more}


def plain(**more):
    return lambda w, who, thing: more


def new_token(w, who, thing):
    owner, name = who if thing == "own" else "mate", w.fresh("t")
    w.make_token(owner, name=name)
    return {"path": {"name": name}, "query": "" if thing == "own" else "?user=mate"}


def make_token(w, who, thing):
    return {"body": {"name": w.fresh("t"), "scopes": ["manage"], **({} if thing == "own" else {"user": "mate"})}}


SUBMIT = {"command": ["true"], "held": True, "resources": {"cpus": 1, "mem": "64Mi"}}
EXAMPLES = {
    "job_submit": lambda w, who, thing: {"body": {**SUBMIT, "tenant": thing}},
    "job_get": job(), "job_log": job(), "job_stream": job(query=f"?key={KEY}"), "job_cancel": job(body={}),
    "log_search": plain(query="?grep=x"), "gpu_list": plain(), "quota": plain(), "user_list": plain(), "journal": plain(),
    "node_drain": lambda w, who, thing: {"path": {"name": w.machine}, "body": {}},
    "node_load": lambda w, who, thing: {"path": {"name": w.machine}},
    # Whoever may report is told that this is none.
    "node_report": lambda w, who, thing: {"path": {"name": w.machine}, "body": b"?"},
    "tenant_get": tenant(), "tenant_put": tenant(body={"help": "x"}),
    "member_put": lambda w, who, thing: {"path": {"name": thing, "user": "guest"}, "body": {"role": "viewer"}},
    "user_get": lambda w, who, thing: {"path": {"user": who if thing == "own" else thing}},
    "user_put": lambda w, who, thing: {"path": {"user": who if thing == "own" else thing}, "body": {"mail": "x@y"}},
    "apply": plain(body={"dry_run": True, "tenants": {"ours": {}}}),
    "token_create": make_token, "token_delete": new_token,
}


def tries(w, operation, who, thing, token):
    """Was it allowed?"""
    status = w.ask(token, operation, EXAMPLES[operation](w, who, thing))
    return status not in REFUSED, status


# ---- cases ----

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
