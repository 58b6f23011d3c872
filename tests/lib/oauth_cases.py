"""oauth_cases - tools sign their people in through us: one case of each kind on a real daemon.

Everything that must not work is tried in one process (src/api/oauth_test.c).  The client is oauth_client.py; sessions are
opened with tokens, as a browser may.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from oauth_client import Tool, ask, sign_in  # noqa: E402

case = Cases()
HUB = "https://hub.example/hub/oauth_callback?tool=1"
APP = "http://127.0.0.1:9/back"
ALL = ["read", "jobs", "manage"]
HOME = "https://gpu.lab.example/ns"


def make():
    c = cl.Cluster(["--external-url", HOME + "/", "--log-level", "debug"], listen="127.0.0.1:0")
    c.env["NIGHTSHIFT_TEST_CLOCK"] = f"{c.folder}/ahead"
    turn(c, 0)
    return c


def turn(c, ahead_ms):
    with open(f"{c.folder}/ahead.new", "w", encoding="utf-8") as f:
        f.write(str(ahead_ms))
    os.rename(f"{c.folder}/ahead.new", f"{c.folder}/ahead")


def prepare(c):
    c.secrets = []  # what must never be in a log
    c.ask("PUT", "/v1/tenants/vision", {})
    c.ask("PUT", "/v1/tenants/vision/members/ana", {"role": "lead"})
    c.ask("PUT", "/v1/tenants/role", {})
    c.ask("PUT", "/v1/tenants/role/members/ana", {"role": "viewer"})
    c.ask("PUT", "/v1/users/ana", {"full_name": "Ana Bø", "mail": "ana@lab.example"})
    c.ask("PUT", "/v1/users/oda", {"role": "operator"})
    c.ana = session(c, "ana")


def session(c, user, scopes=tuple(ALL), **more):
    token = c.ask("POST", "/v1/tokens", {"name": f"t{time.monotonic_ns()}", "user": user, "scopes": list(scopes), **more})
    c.secrets.append(token["token"])
    cookie = sign_in(c.port(), token["token"])
    c.secrets.append(cookie.split("=")[1])
    return cookie


def tool(c, client="hub", redirect=HUB, **body):
    made = c.ask("PUT", f"/v1/clients/{client}", {"redirect_uris": [redirect], "new_secret": True, **body})
    c.secrets.append(made["secret"])
    return Tool(c.port(), client, redirect, made["secret"])


def public_tool(c):
    c.ask("PUT", "/v1/clients/app", {"redirect_uris": [APP], "secret": False})
    return Tool(c.port(), "app", APP)


def refused(answer, status, error):
    same((answer.status, answer.json()["error"], answer.headers["Content-Type"], answer.headers["Cache-Control"]),
         (status, error, "application/json", "no-store"))
    assert answer.json()["error_description"]


def dance(c, t, cookie, **more):
    code = t.code(cookie)
    answer = t.token(code, **more)
    same((answer.status, answer.headers["Content-Type"], answer.headers["Cache-Control"]),
         (200, "application/json", "no-store"))
    told = answer.json()
    c.secrets += [code, told["access_token"]]
    return told


# ---- what works ----

@case("a tool learns who has signed in: name, mail, groups; the secret in the form or in a header")
def _(c):
    t = tool(c)
    for basic in (False, True):
        told = dance(c, t, c.ana, basic=basic)
        same((told["token_type"], told["expires_in"], told["scope"]), ("Bearer", 600, "profile email groups"))
        who = t.userinfo(told["access_token"]).json()
        who["groups"].sort()
        same(who, {"sub": "ana", "preferred_username": "ana", "name": "Ana Bø", "email": "ana@lab.example",
                   "groups": ["role", "vision", "vision:lead"]})


@case("a public client does it with PKCE alone, and has no secret")
def _(c):
    t = public_tool(c)
    same(t.userinfo(dance(c, t, c.ana)["access_token"]).json()["sub"], "ana")
    refused(t.token(t.code(c.ana), client_secret="nsc_made-up"), 401, "invalid_client")


@case("who is not signed in is sent to sign in, and comes back with the same request")
def _(c):
    t = tool(c)
    for cookie in (None, "nightshift=nss_wrong", "nightshift="):
        where, pairs = t.authorize(cookie).back()
        same(where, HOME + "/signin")
        assert pairs["next"].startswith("/oauth/authorize?"), pairs
        answer = ask(c.port(), "GET", pairs["next"], Cookie=c.ana)
        where, pairs = answer.back()
        same((where, pairs["state"]), (HUB.split("?")[0], "s t&=é"))
        same(t.token(pairs["code"]).status, 200)
    where, pairs = t.authorize(None, prompt="none").back()
    same((where, pairs["error"], pairs["state"]), (HUB.split("?")[0], "login_required", "s t&=é"))


# ---- codes ----

@case("a code that comes twice is refused, and what it gave is void")
def _(c):
    t = tool(c)
    code = t.code(c.ana)
    token = t.token(code).json()["access_token"]
    same(t.userinfo(token).status, 200)
    refused(t.token(code), 400, "invalid_grant")
    refused(t.userinfo(token), 401, "invalid_token")


# ---- tokens ----

@case("such a token is good for userinfo alone, and an API token is none")
def _(c):
    t = tool(c)
    token = dance(c, t, session(c, "root"))["access_token"]
    paths = c.ask("GET", "/v1/openapi.json")["paths"]
    tried = 0
    for path, methods in paths.items():
        for method, operation in methods.items():
            if operation.get("security") == []:
                continue
            call = path.replace("{id}", "1").replace("{", "").replace("}", "")
            answer = ask(c.port(), method.upper(), call, Authorization=f"Bearer {token}")
            same((method, path, answer.status), (method, path, 401))
            tried += 1
    assert tried > 40, tried
    answer = ask(c.port(), "GET", "/v1/whoami", Cookie=f"nightshift={token}")
    same(answer.status, 401)
    answer = ask(c.port(), "POST", "/v1/session", json.dumps({"token": token}), Content_Type="application/json")
    same(answer.status, 403)
    key = c.ask("POST", "/v1/tokens", {"name": "key", "user": "ana"})["token"]
    for wrong in (key, c.ana.split("=")[1], "", "nso_" + "0" * 64):
        refused(t.userinfo(wrong), 401, "invalid_token")
    same(ask(c.port(), "GET", "/oauth/userinfo", Cookie=c.ana).status, 401)


# ---- clients ----

@case("clients survive a restart, codes and tokens do not; what is deleted is gone with its tokens")
def _(c):
    t = tool(c)
    token, code = dance(c, t, c.ana)["access_token"], t.code(c.ana)
    c.daemon.terminate()
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    c.start()
    c.wait_ready()
    t.port = c.port()
    refused(t.userinfo(token), 401, "invalid_token")
    refused(t.token(code), 400, "invalid_grant")
    token = dance(c, t, c.ana)["access_token"]
    c.ask("DELETE", "/v1/clients/hub")
    refused(t.userinfo(token), 401, "invalid_token")
    same(t.authorize(c.ana).status, 400)


@case("no code, token, secret or session is in the log or in the store")
def _(c):
    c.daemon.terminate()
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    assert len(c.secrets) > 10
    with open(c.log_path, "rb") as f:
        text = f.read()
    for name in os.listdir(c.state):
        if name.startswith("nightshift.db"):
            with open(f"{c.state}/{name}", "rb") as f:
                text += f.read()
    assert b"oauth.refused" in text
    same([s[:8] for s in c.secrets if s.encode() in text], [])


if __name__ == "__main__":
    sys.exit(case.together(make, prepare))
