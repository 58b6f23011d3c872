"""tenant_cases - tenants and people: by command, by the API and by a file, on a real daemon.

A lab grows from nothing: groups, a course, an operator, the owner of a machine.  Everything that was said is there after
kill -9, what is refused has changed nothing (everything() is compared), and what was exported is applied without a change.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402

case = Cases()
SETTINGS = """
default_tenant: guests
tenants: { lab: { weight: 2, members: [boss] } }
admins: [chief]
profiles: { small: { gpus: 1 } }
pools: { desks: { nodes: [pc1] } }
"""
SMALL = {"cpus": 1, "mem": "64Mi"}


def run(c, *words, text=None, token=None):
    """(exit code, what it printed, what it complained)"""
    env = {**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", "NO_COLOR": "1"}
    if token:
        env["NIGHTSHIFT_TOKEN"], env["NIGHTSHIFT_SERVER"] = token, f"http://127.0.0.1:{c.port()}"
    done = subprocess.run([f"{cl.BUILD}/nightshift", *words], env=env, input=text, capture_output=True, text=True,
                          timeout=cl.PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


def says(c, *words, **how):
    code, out, err = run(c, *words, **how)
    assert code == 0, (words, code, out, err)
    return out


def refuses(c, code, *words, **how):
    """What it complains."""
    got, out, err = run(c, *words, **how)
    same((words, got, out), (words, code, ""))
    assert "hint: " in err, err
    return err


def tenant(c, name):
    return c.ask("GET", f"/v1/tenants/{name}")


def members(c, name):
    return {m["user"]: m["role"] for m in tenant(c, name)["members"]}


def token_of(c, user, **more):
    body = {"user": user, "name": "test", "scopes": ["read", "jobs", "manage"], **more}
    c.call("DELETE", f"/v1/tokens/{body['name']}?user={user}")
    return c.ask("POST", "/v1/tokens", body)["token"]


def everything(c):
    """What was said of tenants and people, and what the journal holds."""
    def by_name(path, what):
        rows = c.ask("GET", path)[what]
        return sorted(({k: v for k, v in row.items() if k != "used_ms"} for row in rows), key=lambda row: json.dumps(row["name"]))
    # Somebody of whom nothing is said any more is known until the next start.
    users = [u for u in by_name("/v1/users", "users")
             if u["created_ms"] or u["machines"] or u["role"] != "none" or u["tenants"] != {"guests": "member"}]
    return [c.ask("GET", "/v1/apply"), by_name("/v1/tenants", "tenants"), users,
            sorted(json.dumps({k: v for k, v in t.items() if k != "used_ms"}) for t in c.ask("GET", "/v1/tokens")["tokens"])]


def restart(c):
    c.kill_daemon()
    c.start()
    c.wait_ready()


def job(c, name, token=None, **spec):
    return c.call("POST", "/v1/jobs", {"command": ["sleep", "600"], "tenant": name, "resources": SMALL, **spec}, token=token)


# ---- by command ----

@case("a lab grows by commands, and is the same after kill -9")
def _(c):
    says(c, "tenants", "set", "ml", "--weight", "2", "--guarantee", "1")
    says(c, "tenants", "set", "course", "--parent", "ml", "--limit", "gpus=2,memory=8Gi,jobs=10", "--model-limit", "H100=1",
         "--user-limit", "gpus=1", "--budget", "1000/month", "--pools", "desks,-", "--profiles", "small", "--priority",
         "normal", "--stage", "beta", "--expires", "2037-02-28", "--group", "ml-staff=lead", "--help-text", "a course")
    same(tenant(c, "course")["spec"],
         {"help": "a course", "parent": "ml", "limit": {"gpus": 2, "memory": "8Gi", "jobs": 10, "gpus_by_model": {"H100": 1}},
          "user_limit": {"gpus": 1}, "budget": {"gpu_hours": 1000, "period": "month"}, "pools": ["desks", "-"],
          "profiles": ["small"], "priority": "normal", "stage": "beta", "expires": "2037-02-28", "groups": {"ml-staff": "lead"}})
    says(c, "tenants", "add", "ml", "ada", "grace")
    says(c, "tenants", "add", "course", "linus", "--role", "lead")
    says(c, "users", "set", "op", "--role", "operator", "--full-name", "The Operator")
    says(c, "users", "set", "ci", "--kind", "service")
    machine = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    says(c, "users", "own", "grace", machine)
    rows = [line.split() for line in says(c, "tenants", "--no-headers").splitlines()]
    same([row[0] for row in rows], ["lab", "guests", "ml", "course"])
    assert says(c, "tenants").splitlines()[4].startswith("  course "), says(c, "tenants")
    same(says(c, "tenants", "-o", "name").split(), ["lab", "guests", "ml", "course"])
    same([line.split()[:2] for line in says(c, "tenants", "members", "ml", "--no-headers").splitlines()],
         [["ada", "member"], ["grace", "member"]])
    assert "owner" in says(c, "tenants", "show", "lab"), says(c, "tenants", "show", "lab")
    before = everything(c)
    restart(c)
    same(everything(c), before)
    same(c.ask("GET", "/v1/users/op")["role"], "operator")
    same(c.ask("GET", "/v1/users/grace")["machines"], [machine])


@case("an empty value undoes one, and leaves the others")
def _(c):
    says(c, "tenants", "set", "course", "--limit", "memory=", "--model-limit", "H100=", "--expires", "", "--group", "ml-staff=",
         "--budget", "", "--pools", "", "--profiles", "", "--priority", "", "--stage", "", "--user-limit", "")
    same(tenant(c, "course")["spec"], {"help": "a course", "parent": "ml", "limit": {"gpus": 2, "jobs": 10}})
    says(c, "tenants", "set", "course", "--limit", "", "--help-text", "")
    same(tenant(c, "course")["spec"], {"parent": "ml"})


@case("what cannot be is refused, and changes nothing")
def _(c):
    before = everything(c)
    for code, *words in ((5, "tenants", "set", "lab", "--weight", "3"), (5, "tenants", "rm", "lab"),
                         (4, "tenants", "rm", "nowhere"), (4, "tenants", "show", "nowhere"),
                         (2, "tenants", "set", "x", "--parent", "nowhere"), (2, "tenants", "set", "ml", "--parent", "course"),
                         (2, "tenants", "set", "x", "--pools", "nowhere"), (2, "tenants", "set", "x", "--profiles", "nowhere"),
                         (2, "tenants", "set", "x", "--weight", "0"), (2, "tenants", "set", "x", "--weight", "two"),
                         (2, "tenants", "set", "x", "--limit", "gpu=1"), (2, "tenants", "set", "x", "--limit", "8"),
                         (2, "tenants", "set", "x", "--budget", "many/month"), (2, "tenants", "set", "x", "--budget", "1/fortnight"),
                         (2, "tenants", "set", "x", "--expires", "2027-02-30"), (2, "tenants", "set", "x", "--group", "g=owner"),
                         (2, "tenants", "set", "a|b"), (5, "tenants", "rm", "ml"), (4, "tenants", "remove", "ml", "nobody"),
                         (5, "tenants", "remove", "lab", "boss"), (5, "users", "rm", "chief"), (4, "users", "disable", "nobody"),
                         (2, "users", "set", "a b"), (4, "users", "disown", "ada", "pc1"), (2, "tenants", "what"),
                         (2, "users", "own", "ada"), (4, "tokens", "create", "x", "--tenants", "nowhere"), (4, "docs", "everything"), (2, "apply"), (2, "apply", "-f", "/")):
        refuses(c, code, *words)
    same(everything(c), before)


@case("one with living jobs is not removed; without them it is, with its places")
def _(c):
    number = job(c, "course")[1]["id"]
    assert f"has jobs that have not ended, {number} for one" in refuses(c, 5, "tenants", "rm", "course")
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    c.wait_end(number)
    says(c, "tenants", "rm", "course")
    same(c.call("GET", "/v1/tenants/course")[0], 404)
    same(c.ask("GET", "/v1/users/linus")["tenants"], {"guests": "member"})
    restart(c)
    same(c.call("GET", "/v1/tenants/course")[0], 404)
    says(c, "tenants", "set", "course", "--parent", "ml")
    same(members(c, "course"), {})


# ---- people in them ----

# ---- by a file ----

LAB = """
tenants:
  vision: {parent: ml, limit: {gpus: 2}, members: [ada, grace]}
  ml: {weight: 3, members: {linus: lead}}
  lab: {members: {visitor: viewer}}
users:
  ada: {role: operator, full_name: Ada, machines: [pc1]}
  ci: {kind: service}
"""


@case("a file makes all of it, in an order that works, and again there is nothing to do")
def _(c):
    code, out, _ = run(c, "diff", "-f", "-", text=LAB)
    same((code, out.splitlines()[-1]), (1, "2 to create, 2 to change, 0 to remove"))
    before = everything(c)
    says(c, "apply", "-f", "-", "--dry-run", text=LAB)
    same(everything(c), before)
    out = says(c, "apply", "-f", "-", text=LAB)
    assert "+ tenant vision" in out and "    weight: 2 -> 3" in out and "    members.grace: member" in out, out
    same((says(c, "apply", "-f", "-", text=LAB), run(c, "diff", "-f", "-", text=LAB)[0]), ("nothing to change\n", 0))
    same((members(c, "vision")["ada"], members(c, "lab"), tenant(c, "ml")["spec"]["weight"]),
         ("member", {"boss": "member", "visitor": "viewer"}, 3))
    after = everything(c)
    restart(c)
    same(everything(c), after)


@case("what is exported is applied without a change, also on the way back from another state")
def _(c):
    exported, before = says(c, "apply", "--export"), everything(c)[0]
    same(run(c, "diff", "-f", "-", "--prune", text=exported)[:2], (0, "nothing to change\n"))
    says(c, "tenants", "set", "ml", "--weight", "7", "--help-text", "changed")
    says(c, "tenants", "set", "new", "--parent", "vision")
    says(c, "tenants", "add", "vision", "newcomer")
    says(c, "users", "set", "somebody", "--role", "viewer")
    says(c, "users", "rm", "ci")
    code, out, _ = run(c, "diff", "-f", "-", "--prune", text=exported)
    same((code, out.splitlines()[-1]), (1, "1 to create, 2 to change, 2 to remove"))
    says(c, "apply", "-f", "-", "--prune", text=exported)
    same(everything(c)[0], before)


WRONG = [  # one item of each is refused; the others would do
    ("tenants: {good: {}, bad: {parent: nowhere}}\nusers: {evil: {role: admin}}", 2, "there is no tenant 'nowhere'"),
    ("tenants: {good: {}, a1: {parent: b1}, b1: {parent: a1}}", 2, "parent"),
    ("tenants: {good: {}, lab: {weight: 9}}", 5, "settings file"),
    ("tenants: {good: {}, x: {pools: [nowhere]}}", 2, "there is no pool"),
    ("tenants: {good: {}, x: {profiles: [nowhere]}}", 2, "there is no profile"),
    ("tenants: {good: {}, x: {weight: heavy}}", 2, "weight"),
    ("tenants: {good: {}, 'a|b': {}}", 2, "a|b"),
    ("tenants: {good: {members: [ada, 'a/b']}}", 2, "a/b"),
    ("tenants: {good: {members: {ada: owner}}}", 2, "owner"),
    ("users: {evil: {role: admin}, b: {role: lead}}", 2, "lead"),
    ("users: {evil: {role: admin}, b: {kind: alien}}", 2, "alien"),
    ("users: {evil: {role: admin}, b: {machines: pc1}}", 2, "machines"),
    ("users: {evil: {role: admin}}\nthings: {}", 2, "things"),
    ("tenants: {d1: {}, d2: {parent: d1}, d3: {parent: d2}, d4: {parent: d3}, d5: {parent: d4}, d6: {parent: d5}, "
     "d7: {parent: d6}, d8: {parent: d7}, d9: {parent: d8}, d10: {parent: d9}, d11: {parent: d10}, d12: {parent: d11}, "
     "d13: {parent: d12}, d14: {parent: d13}, d15: {parent: d14}, d16: {parent: d15}, d17: {parent: d16}}", 2, "deeper"),
    ("just words", 2, "tenants"), ("[]", 2, "tenants"), ("tenants: [", 2, ""),
]


@case("when one item is refused nothing is applied, whatever else is in the file")
def _(c):
    before, lines = everything(c), len(c.ask("GET", "/v1/journal").splitlines())
    for text, code, words in WRONG:
        for prune in ((), ("--prune",)):
            got, out, err = run(c, "apply", "-f", "-", *prune, text=text)
            same((text, got, out), (text, code, ""))
            assert words in err, (text, err)
            same((text, everything(c)), (text, before))
    same(len(c.ask("GET", "/v1/journal").splitlines()), lines)
    restart(c)
    same(everything(c), before)


@case("pruning spares whoever asks, refuses a tenant with living jobs by name, and then applies nothing")
def _(c):
    number = job(c, "vision")[1]["id"]
    before = everything(c)
    text = "tenants: {other: {}}\nusers: {}"
    err = run(c, "apply", "-f", "-", "--prune", text=text)
    same((err[0], err[1]), (5, ""))
    assert "vision" in err[2] and "has jobs that have not ended" in err[2], err
    same(everything(c), before)
    c.ask("POST", f"/v1/jobs/{number}/cancel", {})
    c.wait_end(number)
    says(c, "users", "set", "me", "--role", "admin")
    mine = token_of(c, "me")
    refuses(c, 5, "apply", "-f", "-", text="users: {me: {}}", token=mine)
    says(c, "apply", "-f", "-", "--prune", text=text, token=mine)
    state = c.ask("GET", "/v1/apply")
    same((sorted(state["tenants"]), sorted(state["users"])), (["lab", "other"], ["me"]))
    same(c.call("GET", "/v1/whoami", token=mine)[0], 200)
    same(sorted(t["name"] for t in c.ask("GET", "/v1/tenants")["tenants"]), ["guests", "lab", "other"])


@case("who changed what is in the audit")
def _(c):
    rows = c.ask("GET", "/v1/audit?limit=1000")["rows"]
    done = {(r["what"], r["subject"]) for r in rows}
    for row in (("tenant.set", "ml"), ("tenant.delete", "ml"), ("member.set", "ada"), ("user.set", "op"),
                ("user.delete", "ci"), ("tenant.set", "vision"), ("tenant.delete", "vision")):
        assert row in done, (row, sorted(done))
    same(c.ask("GET", "/v1/audit/verify")["ok"], True)


def make():
    c = cl.Cluster(listen="127.0.0.1:0")
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


if __name__ == "__main__":
    sys.exit(case.together(make=make))
