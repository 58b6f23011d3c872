"""oauth_client - an OAuth 2 client in a few lines, sharing nothing with the daemon; and a browser without a screen."""
import base64
import hashlib
import http.client
import json
import secrets
import urllib.parse

from patience import PATIENCE_S


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def location(self):
        return self.headers["Location"]

    def back(self):
        """(the address without its query, the query's pairs) that a redirect goes to."""
        where = urllib.parse.urlsplit(self.location())
        pairs = urllib.parse.parse_qsl(where.query, keep_blank_values=True, strict_parsing=True)
        assert len(dict(pairs)) == len(pairs), self.location()
        return urllib.parse.urlunsplit(where._replace(query="")), dict(pairs)


def ask(port, method, path, body=None, **headers):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        conn.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
        answer = conn.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        conn.close()


def sign_in(port, token):
    """The cookie of a session that is opened with a token."""
    answer = ask(port, "POST", "/v1/session", json.dumps({"token": token}), Content_Type="application/json")
    assert answer.status == 204, answer.body
    return answer.headers["Set-Cookie"].split(";")[0]


def make_verifier():
    """(verifier, its challenge)"""
    verifier = secrets.token_urlsafe(48)
    return verifier, base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Tool:
    """A registered client, with the steps of the dance; what a step is given replaces what would be right."""

    def __init__(self, port, client, redirect, secret=None):
        self.port, self.client, self.redirect, self.secret = port, client, redirect, secret
        self.verifier, self.challenge = make_verifier()

    def authorize_path(self, **other):
        query = {"response_type": "code", "client_id": self.client, "redirect_uri": self.redirect, "state": "s t&=é",
                 "scope": "groups", "code_challenge": self.challenge, "code_challenge_method": "S256", **other}
        return "/oauth/authorize?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})

    def authorize(self, cookie, **other):
        return ask(self.port, "GET", self.authorize_path(**other), **({"Cookie": cookie} if cookie else {}))

    def code(self, cookie, **other):
        answer = self.authorize(cookie, **other)
        assert answer.status == 303, (answer.status, answer.body)
        return answer.back()[1]["code"]

    def token(self, code, basic=False, **other):
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect,
                "code_verifier": self.verifier, "client_id": self.client}
        headers = {"Content_Type": "application/x-www-form-urlencoded"}
        if basic:
            pair = f"{self.client}:{other.pop('client_secret', self.secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
            del form["client_id"]
        elif self.secret:
            form["client_secret"] = self.secret
        form = {k: v for k, v in {**form, **other}.items() if v is not None}
        return ask(self.port, "POST", "/oauth/token", urllib.parse.urlencode(form), **headers)

    def userinfo(self, token):
        return ask(self.port, "GET", "/oauth/userinfo", Authorization=f"Bearer {token}")
