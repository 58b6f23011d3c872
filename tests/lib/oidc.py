"""oidc - a real OpenID provider (npm's oidc-provider) on loopback, and somebody who signs in at it.

The packages come from npm once, into the build folder; without node and npm there is no provider.
"""
import base64
import hashlib
import html.parser
import http.cookiejar
import json
import os
import secrets
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import claims
import npm
from patience import PATIENCE_S, wait_for

BACK = "http://127.0.0.1:1/back"  # where the provider sends people; nobody listens there
CLIENT, SECRET = "nightshift", "client-s3cret:/+"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SCOPES = "openid profile email groups offline_access"


def install():
    """The folder with the provider's packages; raises OSError with why it cannot be had."""
    return npm.install("oidc", "test-provider")


def make_keys(folder, kid, kind="RS256"):
    """A JWKS with one fresh private key."""
    script = ("import * as jose from 'jose';"
              f"const {{ privateKey }} = await jose.generateKeyPair('{kind}', {{ extractable: true }});"
              f"const key = {{ ...await jose.exportJWK(privateKey), kid: '{kid}', alg: '{kind}', use: 'sig' }};"
              "console.log(JSON.stringify({ keys: [key] }));")
    done = subprocess.run(["node", "--input-type=module", "-e", script], cwd=folder, capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def client(**more):
    """What the provider knows of us; a value of None is left out."""
    known = {"client_id": CLIENT, "client_secret": SECRET, "redirect_uris": [BACK], "response_types": ["code"],
             "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT], **more}
    return {key: value for key, value in known.items() if value is not None}


class Provider:
    def __init__(self, packages, folder, keys, **settings):
        os.makedirs(folder)
        self.packages, self.folder, self.log_path = packages, folder, os.path.join(folder, "log")
        self.port = claims.port()
        self.issuer = f"{'https' if 'cert' in settings else 'http'}://127.0.0.1:{self.port}"
        self.settings = {"issuer": self.issuer, "port": self.port, "keys": keys, "clients": [client()], **settings}
        self.people, self.process = {}, None
        self.put_people(ana={"name": "Ana Test", "email": "ana@lab.example", "email_verified": True,
                             "groups": ["vision", "all"]})
        self.start()

    def start(self):
        self._write("settings.json", self.settings)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["node", "provider.mjs", self.folder], cwd=self.packages,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        assert line == b"ready\n", f"the provider says {line!r}: {open(self.log_path, encoding='utf-8').read()[-500:]}"

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=PATIENCE_S)
            self.process.stdout.close()
            self.process = None

    def restart(self, **settings):
        self.stop()
        self.settings.update(settings)
        self.start()

    def put_people(self, **people):
        self.people = people
        self._write("people.json", people)

    def bend(self, **how):
        """How the provider is to lie from now on; nothing: not at all."""
        self._write("bend.json", how)

    def _write(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path + "~", "w", encoding="utf-8") as f:
            json.dump(value, f)
        os.rename(path + "~", path)


class SignIn:
    """One person's way through the provider's pages, until it sends them back with a code."""

    def __init__(self, provider, **params):
        self.provider = provider
        self.verifier, self.nonce = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {"client_id": CLIENT, "response_type": "code", "redirect_uri": BACK, "scope": SCOPES, "prompt": "consent",
                 "nonce": self.nonce, "state": "s", "code_challenge": challenge, "code_challenge_method": "S256",
                 **params}
        self.url = f"{provider.issuer}/auth?" + urllib.parse.urlencode({k: v for k, v in asked.items() if v is not None})
        self.browser = Browser()

    def code(self, user="ana"):
        """Signs in and agrees; returns the code, or the error that the provider sends back."""
        end = self.browser.walk(self.url, lambda form: {"login": user, "password": "any"} if "login" in form else {})
        assert end.startswith(BACK), end
        back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(end).query))
        return back.get("code") or back["error"]


def type_device_code(start, user="ana", agree=True):
    """What a person does with the code that the command line showed."""
    verdict = [{}, {"confirm": "yes"} if agree else {"abort": "yes"}]  # the code's page, then the question

    def fill(form):
        if "login" in form:
            return {"login": user, "password": "any"}
        if "xsrf" in form:
            return verdict.pop(0) if verdict else None
        return {}
    Browser().walk(start["verification_uri_complete"], fill)


class Forms(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.action, self.inputs = None, {}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form" and self.action is None:
            self.action = attrs.get("action")
        if tag == "input" and attrs.get("name"):
            self.inputs[attrs["name"]] = attrs.get("value") or ""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Browser:
    """Follows redirects and sends forms until there is neither, or nothing to fill in."""

    def __init__(self):
        self.opener = urllib.request.build_opener(NoRedirect, urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def walk(self, url, fill, end=BACK):
        body = None
        for _ in range(20):
            if url.startswith(end):
                return url
            location, page = self._get(url, body)
            body = None
            if location:
                url = urllib.parse.urljoin(url, location)
                continue
            forms = Forms()
            forms.feed(page)
            filled = fill(forms.inputs) if forms.action else None
            if filled is None:
                return url
            url = urllib.parse.urljoin(url, forms.action)
            body = urllib.parse.urlencode({**forms.inputs, **filled}).encode()
        raise AssertionError(f"no end at {url}")

    def _get(self, url, body):
        try:
            with self.opener.open(urllib.request.Request(url, data=body), timeout=PATIENCE_S) as answer:
                return None, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                if answer.code in (302, 303):
                    return answer.headers["Location"], ""
                raise AssertionError(f"{url}: {answer.code} {answer.read()[:300]}") from None


__all__ = ["Browser", "Provider", "SignIn", "install", "make_keys", "type_device_code"]
