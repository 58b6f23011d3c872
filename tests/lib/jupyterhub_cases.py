"""jupyterhub_cases - a real JupyterHub signs people in through us, with the lines that docs/ops/oauth.md shows.

JupyterHub and oauthenticator come from PyPI into a virtual environment below the build folder.  The hub is asked
directly: the proxy before it has no part in signing in, so this needs none.  The browser is ours: it follows
redirects and keeps cookies.
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import claims  # noqa: E402
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from oauth_client import sign_in  # noqa: E402
from pypi import install  # noqa: E402

case = Cases()
SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
VENV = f"{cl.BUILD}/jupyterhub-venv"
PACKAGES = ("jupyterhub==6.1.1", "oauthenticator==17.4.0")
STEPS_MAX = 20

HUB_ONLY = """
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    routes = {{}}

    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {{"routespec": routespec, "target": target, "data": data}}

    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)

    async def get_all_routes(self):
        return self.routes

c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {port}
c.JupyterHub.db_url = "sqlite:///:memory:"
c.JupyterHub.default_url = "/hub/home"  # nothing is started here
"""


class Browser:
    def __init__(self):
        self.cookies, self.trail = {}, []

    def get(self, url):
        """The last page of a chain of redirects: (status, address, text)."""
        for _ in range(STEPS_MAX):
            where = urllib.parse.urlsplit(url)
            conn = http.client.HTTPConnection(where.hostname, where.port, timeout=cl.PATIENCE_S)
            cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            conn.request("GET", urllib.parse.urlunsplit(("", "", where.path or "/", where.query, "")), headers={"Cookie": cookies})
            answer = conn.getresponse()
            text = answer.read().decode()
            conn.close()
            self.trail.append((answer.status, where.path))
            for line in answer.headers.get_all("Set-Cookie") or []:
                name, _, value = line.split(";")[0].partition("=")
                self.cookies[name] = value
            if answer.status not in (301, 302, 303, 307):
                return answer.status, url, text
            url = urllib.parse.urljoin(url, answer.headers["Location"])
        raise AssertionError(f"too many redirects: {self.trail}")


def documented_lines(c, secret):
    """What the documentation says, with the addresses of this test."""
    with open(f"{SOURCE}/docs/ops/oauth.md", encoding="utf-8") as f:
        text = re.search(r"```python\n(.*?)```", f.read(), re.S).group(1)
    for old, new in (("https://hub.lab.example", c.hub), ("https://gpu.lab.example", f"http://127.0.0.1:{c.port()}"),
                     ("nsc_…", secret)):
        assert old in text, old
        text = text.replace(old, new)
    return text


def start_hub(c):
    port = claims.port()
    c.hub = f"http://127.0.0.1:{port}"
    made = c.ask("PUT", "/v1/clients/jupyterhub", {"redirect_uris": [f"{c.hub}/hub/oauth_callback"]})
    folder = f"{c.folder}/hub"
    os.mkdir(folder)
    with open(f"{folder}/jupyterhub_config.py", "w", encoding="utf-8") as f:
        f.write(documented_lines(c, made["secret"]) + HUB_ONLY.format(port=port))
    with open(f"{folder}/log", "wb") as log:
        c.hub_process = subprocess.Popen([f"{VENV}/bin/python", "-m", "jupyterhub", "-f", "jupyterhub_config.py"], cwd=folder,
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def is_up():
        if c.hub_process.poll() is not None:
            raise AssertionError(f"the hub has ended:\n{hub_log(c)}")
        try:
            return Browser().get(f"{c.hub}/hub/health")[0] == 200
        except OSError:
            return False
    cl.wait_for("the hub", is_up)


def hub_log(c):
    with open(f"{c.folder}/hub/log", encoding="utf-8", errors="replace") as f:
        return f.read()[-3000:]


def make():
    c = cl.Cluster(listen="127.0.0.1:0")
    close = c.close

    def close_both(keep=False):
        if getattr(c, "hub_process", None) and c.hub_process.poll() is None:
            os.killpg(c.hub_process.pid, signal.SIGTERM)
            c.hub_process.wait()
        close(keep)
    c.close = close_both
    return c


def prepare(c):
    for tenant, user in (("vision", "ana"), ("speech", "sam")):
        c.ask("PUT", f"/v1/tenants/{tenant}", {})
        c.ask("PUT", f"/v1/tenants/{tenant}/members/{user}", {})
    c.ask("PUT", "/v1/users/ada", {"role": "admin"})
    c.ask("PUT", "/v1/tenants/vision/members/ada", {})
    start_hub(c)


def sign_in_to_hub(c, user):
    """Somebody who clicks on 'Sign in': the browser, and what they see at last."""
    c.call("DELETE", f"/v1/tokens/browser?user={user}")  # of the last time
    token = c.ask("POST", "/v1/tokens", {"name": "browser", "user": user, "scopes": ["read", "jobs", "manage"]})["token"]
    b = Browser()
    status, url, _ = b.get(f"{c.hub}/hub/oauth_login")
    where = urllib.parse.urlsplit(url)
    same((where.port, where.path), (c.port(), "/signin"))
    assert status in (200, 404), status  # the page is not this test's matter
    following = urllib.parse.parse_qs(where.query)["next"][0]
    name, _, value = sign_in(c.port(), token).partition("=")
    b.cookies[name] = value
    return b, b.get(f"http://127.0.0.1:{c.port()}{following}")


@case("a member of an allowed tenant is signed in, and sees her own page")
def _(c):
    b, (status, url, _text) = sign_in_to_hub(c, "ana")
    assert status == 200 and url.startswith(c.hub), (status, url, hub_log(c))
    assert (303, "/oauth/authorize") in b.trail and "/hub/oauth_callback" in [path for _, path in b.trail], b.trail
    status, _, text = b.get(f"{c.hub}/hub/home")
    same(status, 200)
    assert re.search(r"\bana\b", text), text[:2000]
    same(b.get(f"{c.hub}/hub/admin")[0], 403)


@case("an administrator here is one there, by the group")
def _(c):
    b, (status, _, _text) = sign_in_to_hub(c, "ada")
    same(status, 200)
    status, _, text = b.get(f"{c.hub}/hub/admin")
    same(status, 200)
    assert re.search(r"\bada\b", text), text[:2000]


@case("who is in no allowed tenant is turned away")
def _(c):
    b, (status, url, _text) = sign_in_to_hub(c, "sam")
    same((status, url.startswith(c.hub)), (403, True))
    status, url, _ = b.get(f"{c.hub}/hub/home")
    assert "/hub/login" in url, (status, url)


@case("a role that is taken away here is gone there at the next sign-in")
def _(c):
    c.ask("PUT", "/v1/users/ada", {"role": "none"})
    b, (status, _, _text) = sign_in_to_hub(c, "ada")
    same((status, b.get(f"{c.hub}/hub/admin")[0]), (200, 403))


def main():
    why = cl.why_not() or install(VENV, PACKAGES)
    if why and not os.environ.get("NIGHTSHIFT_STRICT"):
        print(f"1..0 # SKIP {why}")
        return 0
    if why:
        print(f"1..1\nnot ok 1 - {why}")
        return 1
    return case.together(make, prepare)


if __name__ == "__main__":
    sys.exit(main())
