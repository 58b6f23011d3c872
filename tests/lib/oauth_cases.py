"""oauth_cases - tools sign their people in through us: what works, and everything that must not.

The client is oauth_client.py; sessions are opened with tokens, as a browser may.
"""
import json
import os
import sys
import time
import urllib.parse

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


@case("roles on the site are groups of their own, and no tenant can look like one")
def _(c):
    t = tool(c)
    for user, group in (("root", "role:admin"), ("oda", "role:operator")):
        told = t.userinfo(dance(c, t, session(c, user))["access_token"]).json()
        assert group in told["groups"], told
    told = t.userinfo(dance(c, t, c.ana)["access_token"]).json()
    assert not [g for g in told["groups"] if g.startswith("role:")], told


@case("a public client does it with PKCE alone, and has no secret")
def _(c):
    t = public_tool(c)
    same(t.userinfo(dance(c, t, c.ana)["access_token"]).json()["sub"], "ana")
    refused(t.token(t.code(c.ana), client_secret="nsc_made-up"), 401, "invalid_client")


@case("state comes back as it was, and the query of the registered address stays")
def _(c):
    t = tool(c)
    for state in ("s t&=é", "x" * 1000, "%41+b", "\"<script>"):
        where, pairs = t.authorize(c.ana, state=state).back()
        same((where, pairs["tool"], pairs["state"], pairs["code"][:4]), (HUB.split("?")[0], "1", state, "nsa_"))
    assert "state" not in t.authorize(c.ana, state=None).back()[1]


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


@case("parameters that are not known are let be")
def _(c):
    t = tool(c)
    same(t.token(t.code(c.ana, nonce="1", colour="red"), resource="x").status, 200)


@case("the places are told at the well-known address")
def _(c):
    told = ask(c.port(), "GET", "/.well-known/oauth-authorization-server").json()
    same((told["issuer"], told["authorization_endpoint"], told["token_endpoint"], told["userinfo_endpoint"]),
         (HOME, HOME + "/oauth/authorize", HOME + "/oauth/token", HOME + "/oauth/userinfo"))
    same((told["code_challenge_methods_supported"], told["response_types_supported"]), (["S256"], ["code"]))


# ---- nobody is sent where nobody registered ----

@case("a wrong client or address is shown, and nobody is sent anywhere")
def _(c):
    t = tool(c)
    tries = [{"client_id": "nobody"}, {"client_id": None}, {"client_id": ""}, {"redirect_uri": None}, {"redirect_uri": ""}]
    tries += [{"redirect_uri": uri} for uri in (
        HUB + "&x=1", HUB.upper(), HUB.split("?")[0], HUB + "#x", "https://hub.example", "https://evil.example/",
        "https://hub.example.evil.example/hub/oauth_callback?tool=1", "https://hub.example@evil.example/", "//evil.example",
        "/", HUB + "/../x", " " + HUB, HUB + " ", "javascript:alert(1)", APP)]
    for other in tries:
        for more in ({}, {"response_type": "token"}, {"prompt": "none"}):
            for cookie in (c.ana, None):
                answer = t.authorize(cookie, **other, **more)
                same((other, answer.status, answer.headers["Location"], answer.headers["Content-Type"]),
                     (other, 400, None, "text/plain; charset=utf-8"))
    for name in ("client_id", "redirect_uri"):
        answer = ask(c.port(), "GET", t.authorize_path() + "&" + urllib.parse.urlencode({name: "x"}), Cookie=c.ana)
        same((answer.status, answer.headers["Location"]), (400, None))


@case("other errors go back to the tool, with its state and without a code")
def _(c):
    t = tool(c)
    for other, error in (({"response_type": "token"}, "unsupported_response_type"),
                         ({"response_type": "code token"}, "unsupported_response_type"),
                         ({"response_type": None}, "invalid_request"), ({"code_challenge": None}, "invalid_request"),
                         ({"code_challenge_method": None}, "invalid_request"),
                         ({"code_challenge_method": "plain"}, "invalid_request"),
                         ({"code_challenge": "short"}, "invalid_request"),
                         ({"code_challenge": "x" * 44}, "invalid_request"),
                         ({"code_challenge": "!" * 43}, "invalid_request")):
        for cookie in (c.ana, None):
            answer = t.authorize(cookie, **other)
            where, pairs = answer.back()
            same((other, answer.status, where, pairs["error"], pairs["state"], "code" in pairs),
                 (other, 303, HUB.split("?")[0], error, "s t&=é", False))
    where, pairs = ask(c.port(), "GET", t.authorize_path() + "&scope=x", Cookie=c.ana).back()
    same((where, pairs["error"]), (HUB.split("?")[0], "invalid_request"))


@case("a line end in state is no header")
def _(c):
    t = tool(c)
    answer = t.authorize(c.ana, state="x\r\nSet-Cookie: nightshift=evil")
    same((answer.status, answer.headers["Set-Cookie"]), (303, None))
    same(answer.back()[1]["state"], "x\r\nSet-Cookie: nightshift=evil")


@case("a session with less than its owner's rights vouches for nobody")
def _(c):
    t = tool(c)
    for cookie in (session(c, "ana", ["read", "jobs"]), session(c, "root", ["read"]),
                   session(c, "root", ALL, tenants=["vision"])):
        _where, pairs = t.authorize(cookie).back()
        same((pairs["error"], "code" in pairs), ("access_denied", False))


# ---- codes ----

@case("a code that comes twice is refused, and what it gave is void")
def _(c):
    t = tool(c)
    code = t.code(c.ana)
    token = t.token(code).json()["access_token"]
    same(t.userinfo(token).status, 200)
    refused(t.token(code), 400, "invalid_grant")
    refused(t.userinfo(token), 401, "invalid_token")


@case("a verifier that is missing, wrong or the challenge itself is refused, and uses the code up")
def _(c):
    t = tool(c)
    for verifier, error in ((None, "invalid_request"), ("", "invalid_request"), ("x" * 64, "invalid_grant"),
                            (t.challenge, "invalid_grant"), (t.verifier + "x", "invalid_grant"),
                            (t.verifier[:42], "invalid_grant"), ("é" * 43, "invalid_grant")):
        code = t.code(c.ana)
        refused(t.token(code, code_verifier=verifier), 400, error)
        if error == "invalid_grant":
            refused(t.token(code), 400, "invalid_grant")


@case("a code is bound to its address and to its client")
def _(c):
    t, other, app = tool(c), tool(c, "other"), public_tool(c)
    refused(t.token(t.code(c.ana), redirect_uri=HUB + "&x"), 400, "invalid_grant")
    code = t.code(c.ana)
    other.verifier = app.verifier = t.verifier
    refused(other.token(code), 400, "invalid_grant")
    refused(app.token(code, redirect_uri=HUB), 400, "invalid_grant")
    refused(t.token("nsa_" + "0" * 64), 400, "invalid_grant")
    same(t.token(code).status, 200)  # the right one still can


@case("a wrong secret, none, or two ways at once are refused; the code stays good")
def _(c):
    t = tool(c)
    code = t.code(c.ana)
    for secret in ("nsc_" + "0" * 64, "", None, t.secret + "0", t.secret[:-1]):
        refused(t.token(code, client_secret=secret), 401, "invalid_client")
    answer = t.token(code, basic=True, client_secret="nsc_wrong")
    refused(answer, 401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic"), answer.headers
    refused(t.token(code, client_id="nobody"), 401, "invalid_client")
    form = {"grant_type": "authorization_code", "code": code, "client_secret": t.secret}
    refused(ask(c.port(), "POST", "/oauth/token", urllib.parse.urlencode(form), Authorization="Basic aHViOng=",
                Content_Type="application/x-www-form-urlencoded"), 400, "invalid_request")
    same(t.token(code).status, 200)


@case("a secret is shown once, stays when the client is changed, and a new one ends the old")
def _(c):
    first = tool(c)
    assert "secret" not in c.ask("PUT", "/v1/clients/hub", {"name": "The hub"})
    listed = [x for x in c.ask("GET", "/v1/clients")["clients"] if x["id"] == "hub"][0]
    same((listed["name"], listed["has_secret"], "secret" in listed), ("The hub", True, False))
    same(first.token(first.code(c.ana)).status, 200)
    second = tool(c)
    refused(first.token(first.code(c.ana)), 401, "invalid_client")
    same(second.token(second.code(c.ana)).status, 200)


@case("the form must be one, small, and say everything once")
def _(c):
    t = tool(c)
    kind = "application/x-www-form-urlencoded"
    for body, content in ((b"{}", "application/json"), (b"code=%zz", kind), (b"code=%00", kind), (b"", kind),
                          (b"x=" + b"a" * 8200, kind), (b"&".join(b"a%d=1" % i for i in range(65)), kind),
                          (b"grant_type=authorization_code&grant_type=x&code=1&redirect_uri=x&code_verifier=y", kind)):
        refused(ask(c.port(), "POST", "/oauth/token", body, Content_Type=content), 400, "invalid_request")
    refused(t.token(t.code(c.ana), grant_type="password"), 400, "unsupported_grant_type")
    refused(t.token(t.code(c.ana), grant_type="client_credentials"), 400, "unsupported_grant_type")
    refused(t.token(None), 400, "invalid_request")


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


@case("who is disabled, signed out or removed is told of no more")
def _(c):
    t = tool(c)
    c.ask("PUT", "/v1/users/tom", {})
    cookie = session(c, "tom")
    token, code = t.token(t.code(cookie)).json()["access_token"], t.code(cookie)
    c.ask("PUT", "/v1/users/tom", {"disabled": True})
    refused(t.userinfo(token), 401, "invalid_token")
    same("/signin" in t.authorize(cookie).location(), True)
    refused(t.token(code), 400, "invalid_grant")
    c.ask("PUT", "/v1/users/uma", {})
    token = t.token(t.code(session(c, "uma"))).json()["access_token"]
    c.ask("DELETE", "/v1/users/uma")
    refused(t.userinfo(token), 401, "invalid_token")


# ---- clients ----

@case("clients are for administrators, and their addresses are checked")
def _(c):
    before = len(c.ask("GET", "/v1/clients")["clients"])
    for uri in ("http://hub.example/", "https://hub.example/#x", "ftp://x/", "/x", "https://a@b/", "", 5, "javascript:x"):
        status, answer = c.call("PUT", "/v1/clients/bad", {"redirect_uris": [uri]})
        same((uri, status, answer["field"]), (uri, 400, "redirect_uris"))
    for body, field in (({}, "redirect_uris"), ({"redirect_uris": []}, "redirect_uris"),
                        ({"redirect_uris": ["https://a/"] * 17}, "redirect_uris"),
                        ({"redirect_uris": ["https://a/"], "secret": "x"}, "secret"),
                        ({"redirect_uris": ["https://a/"], "secret": False, "new_secret": True}, "new_secret"),
                        ({"redirect_uris": ["https://a/"], "name": 5}, "name"), ({"colour": 1}, "colour")):
        status, answer = c.call("PUT", "/v1/clients/bad", body)
        same((body, status, answer["field"]), (body, 400, field))
    same(c.call("PUT", "/v1/clients/a:b", {"redirect_uris": ["https://a/"]})[0], 400)
    oda = c.ask("POST", "/v1/tokens", {"name": "oda", "user": "oda", "scopes": ALL})["token"]
    for method, path in (("GET", "/v1/clients"), ("PUT", "/v1/clients/x"), ("DELETE", "/v1/clients/hub")):
        same(c.call(method, path, token=oda)[0], 403)
    same(len(c.ask("GET", "/v1/clients")["clients"]), before)
    same(c.call("DELETE", "/v1/clients/nobody")[0], 404)


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


# ---- time; last, for the clock does not go back ----

@case("a code is good for a minute, a token for ten")
def _(c):
    t = tool(c)
    late, code = t.code(c.ana), t.code(c.ana)
    turn(c, 50_000)
    token = t.token(code).json()["access_token"]
    turn(c, 61_000)
    refused(t.token(late), 400, "invalid_grant")
    same(t.userinfo(token).status, 200)
    turn(c, 50_000 + 601_000)
    refused(t.userinfo(token), 401, "invalid_token")


@case("no code, token, secret or session is in the log or in the store")
def _(c):
    c.daemon.terminate()
    same(c.daemon.wait(cl.PATIENCE_S), 0)
    assert len(c.secrets) > 20
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
