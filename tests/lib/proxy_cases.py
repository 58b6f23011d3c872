"""proxy_cases - a real daemon behind a proxy on loopback: who is calling, cookies, requests of other sites.

The proxy is a few lines: it takes requests on one loopback address, calls the daemon from another, and adds what
proxies add.  127.0.0.2 is the trusted one; 127.0.0.3 is anybody.
"""
import http.client
import http.server
import json
import os
import sqlite3
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from oauth_client import Answer  # noqa: E402

case = Cases()
PLENTY = 2000  # tries, of which one a second is allowed; the first that is refused ends them
HOME = "https://gpu.lab.example"
TRUSTED, ANYBODY = "127.0.0.2", "127.0.0.3"
ALL = ["read", "jobs", "manage"]


class Proxy:
    """Ends TLS in the mind only: what it passes on says https."""

    def __init__(self, port, source, proto="https"):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
                headers = {k: v for k, v in self.headers.items() if k not in ("X-Forwarded-For", "Connection")}
                told = self.headers.get_all("X-Forwarded-For") or []
                headers["X-Forwarded-For"] = ", ".join([*told, self.headers.get("X-Test-Client", "198.51.100.1")])
                headers["X-Forwarded-Proto"] = proto
                answer = ask(port, self.command, self.path, body, source=source, headers=headers)
                self.send_response(answer.status)
                for key, value in answer.headers.items():
                    if key not in ("Server", "Date", "Connection", "Content-Length"):
                        self.send_header(key, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)
            do_GET = do_POST = do_PUT = do_DELETE = pass_on

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def ask(port, method, path, body=None, source="127.0.0.1", headers=None):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=cl.PATIENCE_S, source_address=(source, 0))
    headers = dict(headers or {})
    if isinstance(body, dict):
        body, headers["Content-Type"] = json.dumps(body), "application/json"
    try:
        conn.request(method, path, body, headers)
        answer = conn.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        conn.close()


def make(options=("--external-url", HOME, "--trusted-proxies", f"{TRUSTED}, 10.0.0.0/8")):
    c = cl.Cluster(["--rate", "1", "--rate-burst", "40", *options], listen="127.0.0.1:0")
    close = c.close

    def close_both(keep=False):
        for p in getattr(c, "proxies", []):
            p.close()
        close(keep)
    c.close = close_both
    return c


def prepare(c):
    c.good, c.other = Proxy(c.port(), TRUSTED), Proxy(c.port(), ANYBODY)
    c.proxies = [c.good, c.other]
    c.token = c.ask("POST", "/v1/tokens", {"name": "t", "scopes": ALL})["token"]


def client(address):
    return {"X-Test-Client": address}


def sessions(c):
    """From where each session was opened, as the store knows it."""
    with sqlite3.connect(f"file:{c.state}/nightshift.db?mode=ro", uri=True) as db:
        return [json.loads(row[0])["name"] for row in db.execute("SELECT body FROM directory WHERE kind = 'session'")]


def open_session(c, port, **headers):
    answer = ask(port, "POST", "/v1/session", {"token": c.token}, headers={k.replace("_", "-"): v for k, v in headers.items()})
    same(answer.status, 204)
    return answer


# ---- who is calling ----

@case("whom the trusted proxy names is calling; what they say of themselves is not heard")
def _(c):
    def count():
        return len([n for n in sessions(c) if n.endswith("from 203.0.113.50")])
    for told in ({}, {"X-Forwarded-For": "192.0.2.66"}, {"X-Forwarded-For": "nonsense, 10.0.0.1"}):
        before = count()
        open_session(c, c.good.port, **client("203.0.113.50"), **told)
        same(count(), before + 1)


@case("what anybody else says is not heard")
def _(c):
    answer = ask(c.port(), "POST", "/v1/session", {"token": c.token}, source=ANYBODY,
                 headers={"X-Forwarded-For": "203.0.113.99", "X-Forwarded-Proto": "https"})
    same(answer.status, 204)
    open_session(c, c.other.port, **client("203.0.113.99"))
    assert not [n for n in sessions(c) if "203.0.113.99" in n], sessions(c)
    same(len([n for n in sessions(c) if f"from {ANYBODY}:" in n]), 2)


@case("a header that cannot be read counts as the proxy, and is logged once in a while")
def _(c):
    for _ in range(3):
        open_session(c, c.good.port, **client("not-an-address"))
    assert [n for n in sessions(c) if f"from {TRUSTED}:" in n], sessions(c)
    same(c.log_tail(500).count(" http.forwarded "), 1)


@case("the limit of requests is each one's own behind the proxy, and nobody escapes it by lying")
def _(c):
    for i in range(60):
        same(ask(c.good.port, "GET", "/healthz", headers=client(f"203.0.113.{100 + i}")).status, 200)
    lies = (ask(c.good.port, "GET", "/healthz", headers={**client("203.0.113.7"), "X-Forwarded-For": f"192.0.2.{i % 250}"}).status
            for i in range(PLENTY))
    same(next(lies), 200)
    assert 429 in lies, "whoever lies is never told to wait"
    same(ask(c.good.port, "GET", "/healthz", headers=client("203.0.113.8")).status, 200)
    direct = (ask(c.port(), "GET", "/healthz", source=ANYBODY, headers={"X-Forwarded-For": f"192.0.2.{i % 250}"}).status
              for i in range(PLENTY))
    assert 429 in direct, "whoever comes directly is never told to wait"


# ---- cookies ----

@case("cookies are for TLS only when people come by it")
def _(c):
    cookie = open_session(c, c.good.port, **client("203.0.113.20")).headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Secure"):
        assert f"; {part}" in cookie, cookie
    cookie = open_session(c, c.port()).headers["Set-Cookie"]  # external_url says https
    assert "; Secure" in cookie, cookie
    plain = make(["--trusted-proxies", TRUSTED])
    try:
        plain.start()
        plain.wait_ready()
        prepare(plain)
        told = {"X-Forwarded-Proto": "https"}
        assert "Secure" not in open_session(plain, plain.port(), **told).headers["Set-Cookie"]
        assert "Secure" not in open_session(plain, plain.other.port).headers["Set-Cookie"]
        assert "Secure" in open_session(plain, plain.good.port).headers["Set-Cookie"]
        same(ask(plain.port(), "GET", "/.well-known/oauth-authorization-server", headers={"Host": "evil.example"}).status, 404)
        plain.ask("PUT", "/v1/clients/x", {"redirect_uris": ["https://x.example/"]})
        answer = ask(plain.port(), "GET", "/oauth/authorize?response_type=code&client_id=x&redirect_uri=https://x.example/"
                     f"&code_challenge={'x' * 43}&code_challenge_method=S256", headers={"Host": "evil.example"})
        same((answer.status, answer.headers["Location"].startswith("/signin?next=")), (303, True))
    finally:
        plain.close()


# ---- requests of other sites ----

@case("a request of another site changes nothing, whatever the cookie says")
def _(c):
    cookie = open_session(c, c.good.port, **client("203.0.113.30")).headers["Set-Cookie"].split(";")[0]
    host = f"127.0.0.1:{c.port()}"
    js = {"Content-Type": "application/json"}
    rows = (({"Origin": HOME}, 201), ({"Origin": f"https://{host}"}, 201), ({"Origin": f"http://{host}"}, 403),
            ({"Sec-Fetch-Site": "same-origin"}, 201),
            ({"Sec-Fetch-Site": "none"}, 201), ({"Referer": HOME + "/page"}, 201), (js, 201),
            ({"Origin": "https://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": "https://evil.example", **js}, 403),
            ({"Origin": "http://gpu.lab.example"}, 403), ({"Sec-Fetch-Site": "cross-site", **js}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403), ({"Referer": "https://evil.example/"}, 403), ({}, 403),
            ({"Origin": "https://evil.example", "Authorization": "Basic eDp5"}, 403))
    for i, (headers, status) in enumerate(rows):
        body = json.dumps({"name": f"by-cookie-{i}"}) if headers.get("Content-Type") else None
        at = {**headers, "Cookie": cookie, **client(f"203.0.113.{31 + i}")}
        answer = ask(c.good.port, "POST", "/v1/tokens", body, headers={**at, "Host": host})
        same((headers, answer.status), (headers, status))
        if status == 201:
            c.ask("DELETE", f"/v1/tokens/{answer.json()['name']}")
        else:
            assert answer.json()["hint"], answer.body
    evil = {"Origin": "https://evil.example", "Cookie": cookie}
    same(ask(c.good.port, "DELETE", "/v1/session", headers={**evil, **client("203.0.113.60")}).status, 403)
    same(ask(c.good.port, "GET", "/v1/whoami", headers={**evil, **client("203.0.113.61")}).status, 200)
    bearer = {"Origin": "https://evil.example", "Authorization": f"Bearer {c.token}", **client("203.0.113.62")}
    same(ask(c.good.port, "POST", "/v1/tokens", {"name": "by-token"}, headers=bearer).status, 201)


# ---- limits on people ----

@case("a user has one allowance with all tokens and on the socket, others have theirs, root has no limit")
def _(_c):
    c = make(["--rate-user", "1", "--rate-user-burst", "20", "--rate", "100000", "--rate-burst", "100000"])
    try:
        c.start()
        c.wait_ready()
        ana = [c.ask("POST", "/v1/tokens", {"name": f"t{i}", "user": "uid-70001"})["token"] for i in range(2)]
        ben = c.ask("POST", "/v1/tokens", {"name": "t", "user": "ben"})["token"]

        def whoami(token):
            return ask(c.port(), "GET", "/v1/whoami", headers={"Authorization": f"Bearer {token}"})
        same([whoami(ana[i % 2]).status for i in range(20)], [200] * 20)
        answer = next(a for a in (whoami(ana[i % 2]) for i in range(PLENTY)) if a.status == 429)
        same((answer.headers["Content-Type"], answer.json()["code"]), ("application/problem+json", "unavailable"))
        assert int(answer.headers["Retry-After"]) >= 1 and "uid-70001" in answer.json()["detail"], answer.body
        assert 429 in (c.call("GET", "/v1/whoami", uid=70001)[0] for _ in range(PLENTY)), "on the socket there is another allowance"
        same(whoami(ben).status, 200)
        same({c.call("GET", "/v1/whoami")[0] for _ in range(60)}, {200})
    finally:
        c.close()


@case("a user has at most a hundred tokens, and fifty sessions: one more ends the oldest")
def _(_c):
    c = make(["--rate", "100000", "--rate-burst", "100000"])
    try:
        c.start()
        c.wait_ready()
        tokens = [c.ask("POST", "/v1/tokens", {"name": f"t{i}", "user": "ana"})["token"] for i in range(100)]
        status, answer = c.call("POST", "/v1/tokens", {"name": "t100", "user": "ana"})
        same((status, "100" in answer["detail"], bool(answer["hint"])), (409, True, True))
        c.ask("POST", "/v1/tokens", {"name": "t100", "user": "ben"})
        c.ask("DELETE", "/v1/tokens/t99?user=ana")
        c.ask("POST", "/v1/tokens", {"name": "t100", "user": "ana"})
        c.token = tokens[0]
        cookies = [open_session(c, c.port()).headers["Set-Cookie"].split(";")[0] for _ in range(52)]

        def living():
            return [i for i, k in enumerate(cookies) if ask(c.port(), "GET", "/v1/whoami", headers={"Cookie": k}).status == 200]
        same(len(living()), 50)
        assert 51 in living() and 50 in living(), living()
        same(len(sessions(c)), 50)
    finally:
        c.close()


@case("settings that are not addresses are refused, with their line")
def _(c):
    for key, value in (("external_url", "gpu.lab.example"), ("external_url", "https://a/?x"), ("external_url", "https://a@b/"),
                       ("trusted_proxies", "lab"), ("trusted_proxies", "[127.0.0.1, 10.0.0.1/8]")):
        with open(f"{c.folder}/wrong.yaml", "w", encoding="utf-8") as f:
            f.write(f"rate: 5\n{key}: {value}\n")
        done = cl.subprocess.run([c.program, "--config", f"{c.folder}/wrong.yaml", "--print-config"], capture_output=True,
                                 text=True, timeout=cl.PATIENCE_S, check=False)
        same((key, value, done.returncode), (key, value, 2))
        assert f"line 2: {key}" in done.stderr and "hint" in done.stderr, done.stderr
    with open(f"{c.folder}/right.yaml", "w", encoding="utf-8") as f:
        f.write("external_url: https://a.example/x/\ntrusted_proxies: [127.0.0.1, 'fd00::/8']\n")
    done = cl.subprocess.run([c.program, "--config", f"{c.folder}/right.yaml", "--print-config"], capture_output=True,
                             text=True, timeout=cl.PATIENCE_S, check=True)
    assert "external_url: https://a.example/x\n" in done.stdout, done.stdout
    assert "trusted_proxies: 127.0.0.1, fd00::/8\n" in done.stdout, done.stdout


if __name__ == "__main__":
    sys.exit(case.together(make, prepare))
