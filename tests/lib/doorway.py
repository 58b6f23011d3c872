"""doorway - a real daemon with every way to sign in, its servers around it on loopback, and browsers without a screen."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
import urllib.parse

import claims
import cluster as cl
import oidc
from cases import Skip
from oauth_client import Answer
from signin_cases import Accounts
from slapd import READER, READER_PASSWORD, Slapd, missing

NOTICE, TITLE = "alpha: keep your own backup", "Lab ID"
RIGHT_AWAY_S = 1  # signin.recheck
PAM_PASSWORD = "right-pw"
SETTINGS = """
external_url: http://127.0.0.1:{port}
notice: "{notice}"
tenants:
  vision: {{groups: {{vision: member, vision-leads: lead}}}}
  robotics: {{groups: {{robotics: member}}}}
  course: {{groups: {{lab: viewer}}}}
signin:
  recheck: {recheck}s
  ldap: {{url: "{ldap}", base: "ou=people,dc=lab", group_base: "dc=lab", bind_dn: "{reader}", bind_password_file: "{folder}/bind"}}
  pam: {{}}
  oidc: {{issuer: "{issuer}", client_id: nightshift, client_secret_file: "{folder}/client", title: "{title}",
         scopes: "openid profile email groups offline_access", prompt: consent}}
  groups: {{gpu-admins: admin}}
"""


class Browser:
    """Keeps cookies as a browser does; `source` is where it comes from."""

    def __init__(self, port, source="127.0.0.1"):
        self.port, self.source, self.cookies = port, source, {}

    def ask(self, method, path, body=None, **headers):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=cl.PATIENCE_S, source_address=(self.source, 0))
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        if body is not None:
            body, sent["Content-Type"] = json.dumps(body), "application/json"
        elif method != "GET":
            sent["Sec-Fetch-Site"] = "same-origin"
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        try:
            conn.request(method, path, body, sent)
            answer = conn.getresponse()
            told = Answer(answer.status, answer.headers, answer.read())
        finally:
            conn.close()
        self._keep(told.headers.get_all("Set-Cookie") or [])
        return told

    def _keep(self, lines):
        for line in lines:
            pair, *attributes = [part.strip() for part in line.split(";")]
            name, _, value = pair.partition("=")
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    def password(self, user, password, **more):
        return self.ask("POST", "/v1/session", {"user": user, "password": password, **more})

    def enter(self, user, password):
        """Signs in and accepts the notice."""
        answer = self.password(user, password)
        assert answer.status == 204, (answer.status, answer.body)
        self.accept()
        return self

    def accept(self):
        if self.whoami()["notice"]:
            assert self.ask("POST", "/v1/notice").status == 204

    def whoami(self):
        answer = self.ask("GET", "/v1/whoami")
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json()

    def is_in(self):
        return self.ask("GET", "/v1/whoami").status == 200


class Doorway(cl.Cluster):
    """The daemon; .ldap, .accounts and .provider are what it asks."""

    def __init__(self, recheck_s=RIGHT_AWAY_S):
        port = claims.port()
        super().__init__(["--rate", "100000", "--rate-burst", "100000"], listen=f"127.0.0.1:{port}")
        self.http, self.servers = port, []
        self.back = f"http://127.0.0.1:{port}/v1/signin/sso/back"
        try:
            self._start_servers()
        except OSError as why:
            self.close()
            raise Skip(str(why)) from why
        self._write("bind", READER_PASSWORD, 0o600)
        self._write("client", oidc.SECRET, 0o600)
        self._write("settings.yaml", SETTINGS.format(port=port, notice=NOTICE, title=TITLE, recheck=recheck_s, ldap=self.ldap.url, reader=READER,
                                                     folder=self.folder, issuer=self.provider.issuer))
        self.env["NIGHTSHIFT_TEST_CLOCK"] = f"{self.folder}/ahead"
        self.turn(0)
        self._write("x/nightshift-signin", "#!/bin/sh\nexec " + " ".join(f"'{word}'" if "&&" not in word else
                    '"' + word.replace('"', '\\"').replace("$", "\\$") + '"' for word in self.accounts.wrap) +
                    f" '{cl.LIBEXEC}/nightshift-signin'\n", 0o755)

    def _start_servers(self):
        why = missing()
        if why:
            raise OSError(why)
        packages = oidc.install()
        self.keys, self.other_keys = oidc.make_keys(packages, "k1"), oidc.make_keys(packages, "k2", "ES256")
        self.ldap = Slapd(f"{self.folder}/slapd")
        self.servers.append(self.ldap)
        self.accounts = Accounts(f"{self.folder}/accounts")
        self.provider = oidc.Provider(packages, f"{self.folder}/provider", self.keys,
                                      clients=[oidc.client(redirect_uris=[self.back])])
        self.servers.append(self.provider)

    def _write(self, name, text, mode=0o644):
        path = f"{self.folder}/{name}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def turn(self, ahead_ms):
        """Its clock, so many milliseconds ahead."""
        self.ahead_ms = ahead_ms
        self._set_clock(str(ahead_ms))

    @contextlib.contextmanager
    def standing(self):
        """Its clock stands meanwhile: what somebody has to wait for does not come, however long our tries take."""
        self._set_clock(f"={int(time.time() * 1000) + self.ahead_ms}")
        try:
            yield
        finally:
            self.turn(self.ahead_ms)

    def _set_clock(self, text):
        self._write("ahead.new", text)
        os.rename(f"{self.folder}/ahead.new", f"{self.folder}/ahead")

    def browser(self, source="127.0.0.1"):
        return Browser(self.http, source)

    def restart(self):
        self.daemon.send_signal(signal.SIGTERM)
        ended = self.daemon.wait(timeout=cl.PATIENCE_S)
        assert ended == 0, f"nightshiftd ended with {ended}"
        self.start()
        self.wait_ready()

    def audit(self, what, **more):
        query = urllib.parse.urlencode({"what": what, **more})
        return self.ask("GET", f"/v1/audit?{query}")["rows"]

    def token_of(self, user, name="t"):
        return self.ask("POST", "/v1/tokens", {"name": name, "user": user, "scopes": ["read", "jobs"]})["token"]

    def token_works(self, token):
        return self.browser().ask("GET", "/v1/whoami", Authorization=f"Bearer {token}").status == 200

    # ---- single sign-on ----

    def go(self, browser, next_path="/"):
        """Where the browser is sent: the provider's page."""
        answer = browser.ask("GET", "/v1/signin/sso?next=" + urllib.parse.quote(next_path, safe=""))
        assert answer.status == 303 and answer.location().startswith(self.provider.issuer), (answer.status, answer.headers)
        return answer.location()

    def at_provider(self, url, user):
        """What somebody does there; the path at which they come back."""
        end = oidc.Browser().walk(url, lambda form: {"login": user, "password": "any"} if "login" in form else {}, self.back)
        assert end.startswith(self.back), end
        return end.removeprefix(f"http://127.0.0.1:{self.http}")

    def sso(self, browser, user, next_path="/"):
        """The whole way; the last answer, a redirect."""
        answer = browser.ask("GET", self.at_provider(self.go(browser, next_path), user))
        assert answer.status == 303, (answer.status, answer.body)
        return answer

    def close(self, keep=False):
        super().close(keep=True)
        for server in self.servers:
            server.stop()
        subprocess.run(["rm", "-rf", self.folder], check=True)


def why_of(answer):
    """What the page to sign in on is to say."""
    where = urllib.parse.urlsplit(answer.location())
    assert where.path == "/signin" and not where.netloc, answer.location()
    return dict(urllib.parse.parse_qsl(where.query))["why"]
