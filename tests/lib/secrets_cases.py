"""secrets_cases - every flow that handles a secret, on a real daemon that logs everything; then secrets are searched for.

What is searched: all files of the state and of the run folder, logs, journal, events, audit, metrics, refusals, arguments
and environments of every process that was seen meanwhile.  Each secret is searched for as it is and as it would look in
JSON, an address, hexadecimal or base64.  The search itself is tried on places where each of these is.
"""
import base64
import glob
import http.server
import json
import os
import re
import resource
import shutil
import signal
import stat
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402
from cluster import wait_for  # noqa: E402
from oauth_client import Tool, ask  # noqa: E402

SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
BACK = "https://hub.example/back"
PLANTED = {  # of people and of settings; what the daemon makes itself comes on top
    "the first password": "first/Väg+planted=01", "a wrong password": "wrong/Väg+planted=02",
    "the next password": "next/Väg+planted=03", "a wrong old password": "old/Väg+planted=04",
    "a wrong setup code": "PLAN-TEDS-ETUP-CODE", "an ldap password": "ldap/Väg+planted=05",
    "the bind password": "bind-planted-06+/=", "the client secret at the provider": "oidc-planted-07+/=",
    "the provider's code": "code-planted-08+/=", "a made-up token": "nst_" + "5ec7e7" * 10 + "abcd",
    "a made-up cookie": "nss_" + "c00c1e" * 10 + "abcd", "a made-up client secret": "nsc_planted-09",
    "a made-up device code": "nsl_" + "de71ce" * 10 + "abcd", "a secret in an address": "address-planted-10+/=",
    "a job's": "job-planted-11+/=",
}
OF_A_JOB = "a job's"
ON_THE_WAY = ("the setup code",)  # it is in its file until it is used
case = Cases()


# ---- searching ----

def forms(secret):
    """How it might look."""
    raw = secret.encode()
    yield "as it is", raw
    yield "in JSON", json.dumps(secret)[1:-1].encode()
    yield "in an address", urllib.parse.quote(secret, safe="").encode()
    yield "in a form", urllib.parse.quote_plus(secret).encode()
    yield "in hexadecimal", raw.hex().encode()
    yield "in capital hexadecimal", raw.hex().upper().encode()
    for shift in range(3):  # wherever it begins; what depends on its neighbours is left away
        text = base64.b64encode(b"\0" * shift + raw)
        whole = text[(shift * 8 + 5) // 6:(shift + len(raw)) * 8 // 6]
        yield f"in base64 from byte {shift} on", whole
        yield f"in base64url from byte {shift} on", whole.translate(bytes.maketrans(b"+/", b"-_"))


class Search:
    def __init__(self, secrets):
        found = {form: (name, how) for name, secret in secrets.items() for how, form in forms(secret)}
        self.what = found
        self.pattern = re.compile(b"|".join(re.escape(form) for form in sorted(found, key=len, reverse=True)))

    def __call__(self, data):
        """Names of the secrets in it."""
        return {self.what[m.group()] for m in self.pattern.finditer(data)}


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Watch(threading.Thread):
    """Reads arguments and environments of all processes that the daemon has, again and again."""
    def __init__(self, c):
        super().__init__(daemon=True)
        self.c, self.stop_ = c, threading.Event()
        self.seen = {}  # text: (pid, file)
        self.looks = 0

    def ours(self):
        parents = {pid: cl.process_parent(pid) for pid in cl.all_pids()}
        for pid in parents:
            at = pid
            while at in parents and at not in (self.c.daemon.pid, 1):
                at = parents[at]
            if at == self.c.daemon.pid or self.c.folder.encode() in cl.proc_file(pid, "cmdline"):
                yield pid

    def run(self):
        while not self.stop_.wait(0.005):
            for pid in self.ours():
                env = cl.proc_file(pid, "environ")
                self.seen[cl.proc_file(pid, "cmdline")] = (pid, "cmdline")
                if b"NIGHTSHIFT_JOB_ID=" not in env:  # a job has its own in its own
                    self.seen[env] = (pid, "environ")
            self.looks += 1


# ---- servers around it ----

class Provider(http.server.BaseHTTPRequestHandler):
    """One that repeats everything it is told, in its refusals too."""
    told = []

    def do_GET(self):
        here = f"http://127.0.0.1:{self.server.server_port}"
        self.answer(200, {"issuer": here, "authorization_endpoint": here + "/auth", "token_endpoint": here + "/token",
                          "jwks_uri": here + "/keys", "response_types_supported": ["code"],
                          "code_challenge_methods_supported": ["S256"],
                          "id_token_signing_alg_values_supported": ["RS256"]})

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        said = f"{text} {self.headers.get('Authorization')} {urllib.parse.unquote_plus(text)}"
        self.told.append(said)
        self.answer(400, {"error": "invalid_grant", "error_description": said})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def write_private(path, text):
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
        f.write(text)


def settings(c, issuer, ldap_url):
    write_private(f"{c.folder}/bind", PLANTED["the bind password"])
    write_private(f"{c.folder}/client", PLANTED["the client secret at the provider"])
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        json.dump({"signin": {"local": True,
                              "ldap": {"url": ldap_url, "base": "dc=lab", "bind_dn": "cn=reader,dc=lab",
                                       "bind_password_file": f"{c.folder}/bind"},
                              "oidc": {"issuer": issuer, "client_id": "nightshift",
                                       "client_secret_file": f"{c.folder}/client"}}}, f)


def make():
    c = cl.Cluster(["--log-level", "debug"], listen="127.0.0.1:0")
    shutil.copy(f"{cl.LIBEXEC}/nightshift-signin", c.libexec)
    c.provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=c.provider.serve_forever, daemon=True).start()
    # Nobody listens there: what the directory is told is tried with a real one in t0430.
    settings(c, f"http://127.0.0.1:{c.provider.server_port}", "ldap://127.0.0.1:9")
    c.secrets, c.refusals = dict(PLANTED), []
    return c


# ---- flows ----

def say(c, method, path, body=None, status=None, **headers):
    """Over TCP, as a browser does it; refusals are kept."""
    text = None if body is None else json.dumps(body)
    answer = ask(c.port(), method, path, text, **({"Content_Type": "application/json"} if text else {}), **headers)
    if answer.status >= 400:
        c.refusals.append(f"{method} {path.split('?')[0]} {answer.headers}".encode() + answer.body)
    assert status is None or answer.status == status, (method, path, answer.status, answer.body)
    return answer


def cookie_of(c, name, answer):
    cookie = [v.split(";")[0] for v in answer.headers.get_all("Set-Cookie") if v.startswith("nightshift=")][0]
    c.secrets[name] = cookie.split("=", 1)[1]
    return cookie


def sign_in(c, name, password, status=204, user="carla"):
    answer = say(c, "POST", "/v1/session", {"user": user, "password": password}, status)
    return cookie_of(c, name, answer) if status == 204 else None


def flow_setup(c):
    path = f"{c.state}/setup-code"
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    c.secrets["the setup code"] = read(path).decode().strip()
    for code in (PLANTED["a wrong setup code"], {"code": PLANTED["a wrong setup code"]}):
        say(c, "POST", "/v1/setup", {"code": code, "user": "carla", "password": PLANTED["the first password"]})
    say(c, "POST", "/v1/setup", {"code": c.secrets["the setup code"], "user": "carla", "password": "short"}, 400)
    say(c, "POST", "/v1/setup", {"code": c.secrets["the setup code"], "user": "carla",
                                 "password": PLANTED["the first password"]})
    assert not os.path.exists(path), "the code is used, and its file is there"


def flow_passwords(c):
    first, wrong = PLANTED["the first password"], PLANTED["a wrong password"]
    sign_in(c, "", wrong, 403)
    c.cookie = sign_in(c, "the first cookie", first)
    for body in ({"user": "carla", "password": [wrong]}, {"user": "carla", "password": wrong * 100},
                 {"user": wrong, "password": wrong}, {"user": "carla", "password": wrong, "token": wrong},
                 {"user": "carla", "pass": wrong}):
        say(c, "POST", "/v1/session", body)
    ask(c.port(), "POST", "/v1/session", '{"password": "' + wrong, Content_Type="application/json")
    change = {"password": PLANTED["the next password"]}
    headers = {"Cookie": c.cookie, "Sec_Fetch_Site": "same-origin"}
    say(c, "POST", "/v1/users/carla/password", {**change, "old": PLANTED["a wrong old password"]}, **headers)
    wait_for("it may be tried again", lambda: say(c, "POST", "/v1/users/carla/password", {**change, "old": first},
                                                  **headers).status == 204)
    c.cookie = wait_for("the next password opens", lambda: say(
        c, "POST", "/v1/session", {"user": "carla", "password": PLANTED["the next password"]}).status == 204 and
        sign_in(c, "the next cookie", PLANTED["the next password"]))
    say(c, "GET", "/v1/whoami", Cookie="nightshift=" + PLANTED["a made-up cookie"], status=401)


def flow_tokens(c):
    headers = {"Cookie": c.cookie, "Sec_Fetch_Site": "same-origin"}
    made = say(c, "POST", "/v1/tokens", {"name": "laptop", "scopes": ["read", "jobs", "manage"]}, **headers).json()
    c.token = c.secrets["a token"] = made["token"]
    say(c, "GET", "/v1/whoami", Authorization=f"Bearer {c.token}", status=200)
    for text in (PLANTED["a made-up token"], f"{PLANTED['a made-up token']} {PLANTED['a made-up token']}"):
        say(c, "GET", "/v1/whoami", Authorization=f"Bearer {text}", status=401)
    hidden = urllib.parse.quote(PLANTED["a secret in an address"], safe="")
    for path in (f"/v1/jobs?token={hidden}", f"/v1/whoami?access_token={hidden}"):
        say(c, "GET", path, Authorization=f"Bearer {c.token}")
    cookie_of(c, "the cookie of a token", say(c, "POST", "/v1/session", {"token": c.token}, 204))
    say(c, "POST", "/v1/session", {"token": PLANTED["a made-up token"]})


def flow_login(c):
    begun = say(c, "POST", "/v1/login", {"name": "desk"}, 200).json()
    c.secrets["a device code"] = begun["device_code"]
    say(c, "POST", "/v1/login/poll", {"device_code": PLANTED["a made-up device code"]})
    headers = {"Cookie": c.cookie, "Sec_Fetch_Site": "same-origin"}
    say(c, "POST", f"/v1/login/{begun['user_code']}/approve", {}, 204, **headers)
    told = say(c, "POST", "/v1/login/poll", {"device_code": begun["device_code"]}, 200).json()
    c.secrets["a token by login"] = told["token"]


def flow_oauth(c):
    made = c.ask("PUT", "/v1/clients/hub", {"redirect_uris": [BACK], "new_secret": True})
    c.secrets["a client secret"] = made["secret"]
    tool = Tool(c.port(), "hub", BACK, made["secret"])
    code = c.secrets["a code"] = tool.code(c.cookie)
    for more in ({"client_secret": PLANTED["a made-up client secret"]}, {"code_verifier": "x" * 50}):
        answer = tool.token(c.secrets.setdefault("another code", tool.code(c.cookie)), **more)
        c.refusals.append(answer.body)
    answer = tool.token(code)
    c.secrets["an access token"] = answer.json()["access_token"]
    c.secrets["a verifier"] = tool.verifier
    same(tool.userinfo(c.secrets["an access token"]).status, 200)
    c.refusals.append(tool.token(code).body)


def flow_elsewhere(c):
    for _ in range(2):
        say(c, "POST", "/v1/session", {"user": "ana", "password": PLANTED["an ldap password"]})
    answer = ask(c.port(), "GET", "/v1/signin/sso")
    same(answer.status, 303)
    where = urllib.parse.urlsplit(answer.headers["Location"])
    state = dict(urllib.parse.parse_qsl(where.query))["state"]
    cookies = "; ".join(v.split(";")[0] for v in answer.headers.get_all("Set-Cookie") or [])
    query = urllib.parse.urlencode({"state": state, "code": PLANTED["the provider's code"]})
    c.refusals.append(ask(c.port(), "GET", f"/v1/signin/sso/back?{query}", Cookie=cookies).body)
    assert any(PLANTED["the provider's code"] in said for said in Provider.told), "the provider was not asked"


def flow_job(c):
    secret = PLANTED[OF_A_JOB]
    c.number = c.submit(["sh", "-c", "test -n \"$MINE\""], env={"MINE": secret}, resources={"cpus": 1, "mem": "64Mi"})
    same(c.wait_end(c.number)["state"], "succeeded")
    for env in ({"MINE": [secret]}, {"MI=NE": secret}, {"MINE": secret + "\0"}):
        status, problem = c.call("POST", "/v1/jobs", {"command": ["true"], "env": env})
        assert status == 400, problem
        c.refusals.append(json.dumps(problem).encode())


FLOWS = (flow_setup, flow_passwords, flow_tokens, flow_login, flow_oauth, flow_elsewhere, flow_job)


@case("passwords, codes, tokens and keys go through every flow, and none of them is left anywhere")
def _(c):
    watch = Watch(c)
    watch.start()
    for flow in FLOWS:
        flow(c)
    say(c, "DELETE", "/v1/sessions", status=None, Cookie=c.cookie, Sec_Fetch_Site="same-origin")
    watch.stop_.set()
    watch.join()
    assert watch.looks > 20, watch.looks
    search = Search(c.secrets)
    texts = {"refusals": b"\n".join(c.refusals), "log": read(c.log_path)}
    for path in ("/v1/journal", "/v1/audit/export", "/v1/audit?limit=1000", "/metrics", "/v1/users", "/v1/tokens",
                 "/v1/clients", "/v1/nodes"):
        text = c.ask("GET", path)
        texts[path] = text.encode() if isinstance(text, str) else json.dumps(text).encode()
    texts |= {f"{file} of {pid}": text for text, (pid, file) in watch.seen.items()}
    assert len(texts["log"]) > 1000 and len(texts) > 15, texts.keys()
    for name, text in texts.items():
        same((name, search(text)), (name, set()))
    c.search = search


@case("in the store are hashes and no texts; a job's environment is in its own specification alone")
def _(c):
    store = glob.glob(f"{c.state}/nightshift.db*")
    whole = b"".join(read(path) for path in store)
    assert b"$argon2id$" in whole, "it was not read"
    same({name for name, _ in c.search(whole)}, {OF_A_JOB})
    for root in (c.state, c.run):
        for folder, _, names in os.walk(root):
            for name in names:
                path = f"{folder}/{name}"
                if path in store or not os.path.isfile(path) or os.path.islink(path):
                    continue
                allowed = {OF_A_JOB} if f"/tasks/{c.number}." in path else set()
                found = {name for name, _ in c.search(read(path))}
                assert found <= allowed, f"{path}: {found}"
    since = os.stat(f"{c.folder}/bind").st_mtime
    same([p for p in glob.glob("/tmp/*") if is_new(p, since) and c.search(read(p))], [])


def is_new(path, since):
    """A file of root's that is not too large to be read; others come and go meanwhile."""
    try:
        told = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(told.st_mode) and told.st_uid == 0 and told.st_mtime > since and told.st_size < 1 << 24


@case("the search finds each secret in each of its forms")
def _(c):
    for name, secret in c.secrets.items():
        for how, form in forms(secret):
            assert c.search(b"before " + form + b" after"), (name, how)
        for shift in range(3):
            assert c.search(base64.b64encode(b"x" * shift + secret.encode() + b"yz")), (name, shift)
    same({n for n, _ in c.search(cl.proc_file(os.getpid(), "cmdline"))}, set())


@case("files of the state folder are root's alone, and secrets in files that others can read are refused")
def _(c):
    for folder, _, names in os.walk(c.state):
        if "/homes" in folder or "/scratch" in folder:
            continue
        others = 0o027 if "/tasks/" in folder else 0o077  # the daemon reads output by the keeper's group
        for name in names:
            if name == "instance":  # what ours is called on this machine: the agent reads it, and it is no secret
                continue
            mode = stat.S_IMODE(os.lstat(f"{folder}/{name}").st_mode)
            assert not mode & others, f"{folder}/{name} has mode {mode:04o}"
    same(stat.S_IMODE(os.stat(f"{c.run}/api.sock").st_mode), 0o666)
    for path in glob.glob(f"{c.run}/*.sock"):
        if not path.endswith("/api.sock"):
            assert not stat.S_IMODE(os.stat(path).st_mode) & 0o007, path
    for name in ("bind", "client"):
        os.chmod(f"{c.folder}/{name}", 0o644)
        c.kill_daemon()
        c.start()
        same(c.daemon.wait(cl.PATIENCE_S), 2)
        assert f"{name} can be read by others (mode 0644)" in c.log_tail(), c.log_tail()
        os.chmod(f"{c.folder}/{name}", 0o600)
        c.start()
        c.wait_ready()
    same(c.search(read(c.log_path)), set())


def dumps_core(pid, signal_):
    os.kill(pid, signal_)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), status
    return os.WCOREDUMP(status)


def may_dump(folder):
    """Called in a new process: nothing but itself keeps it from leaving a core."""
    def before():
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        os.chdir(folder)
    return before


@case("a daemon that dies by a signal leaves no core, where any other program would")
def _(c):
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise Skip("cores are forbidden here")
    folder = f"{c.folder}/cores"
    os.mkdir(folder)
    pid = os.fork()
    if pid == 0:
        may_dump(folder)()
        signal.pause()
    wait_for("it is there", lambda: os.readlink(f"/proc/{pid}/cwd") == folder)  # it is our child: it does not vanish
    if not dumps_core(pid, signal.SIGABRT):
        raise Skip("this machine keeps no cores")
    shutil.rmtree(folder)
    os.mkdir(folder)
    c.kill_daemon()
    c.start(before=may_dump(folder))
    c.wait_ready()
    same(dumps_core(c.daemon.pid, signal.SIGABRT), False)  # not SEGV: a sanitizer would catch that
    same(os.listdir(folder), [])
    c.daemon.returncode = -signal.SIGABRT
    c.start()
    c.wait_ready()


# ---- comparing ----

SECRET_WORDS = re.compile(r"hash|secret|token\b|cookie|device|verifier|challenge|password|mac\b|\bcode\b|state\b", re.I)
COMPARES = re.compile(r"(?<![_a-z])(memcmp|strcmp|strncmp|strcasecmp|bcmp|str_eq|str_is)\(([^;]*?)\)")
PUBLIC = (  # words that only look like secrets, or are compared with what the same person said
    'strcmp(type, "code")', 'strcmp(why->field, "wrong_password")', "str_is(password, r->user)",
    "str_is(word, job_state_name((enum job_state)")


@case("nothing secret is compared byte by byte: in src/auth and src/api all of it is hashed or takes constant time")
def _(c):
    checked, found = 0, []
    for path in sorted(glob.glob(f"{SOURCE}/src/auth/*.c") + glob.glob(f"{SOURCE}/src/api/*.c")):
        if path.endswith("_test.c"):
            continue
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                for m in COMPARES.finditer(line):
                    checked += 1
                    if SECRET_WORDS.search(m.group(2)) and not m.group().startswith(PUBLIC):
                        found.append(f"{os.path.relpath(path, SOURCE)}:{number}: {line.strip()}")
    assert checked > 50, checked
    same(found, [])
    assert SECRET_WORDS.search(COMPARES.search("if (memcmp(k->hash, hash, 32) == 0)").group(2)), "it finds nothing"


if __name__ == "__main__":
    sys.exit(case.together(make))
