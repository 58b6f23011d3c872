"""signin_cases - the real nightshift-signin against a real slapd, real PAM and a real OpenID provider.

PAM's accounts and services are those of a mount namespace with its own /etc/passwd, shadow, group and pam.d: the
machine is not changed.  No answer to any request here may hold a secret of that request.
"""
import http.server
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oidc  # noqa: E402
from cases import Skip, Tap, same  # noqa: E402
from oidc import Provider, SignIn, make_keys, type_device_code  # noqa: E402
from patience import PATIENCE_S, wait_for  # noqa: E402
from slapd import READER, READER_PASSWORD, Slapd, make_certificate, missing  # noqa: E402

PROGRAM = os.path.join(os.environ["NIGHTSHIFT_BUILD"], "nightshift-signin")
STRICT = os.environ.get("NIGHTSHIFT_STRICT")
SECRETS = ("password", "bind_password", "client_secret", "code", "verifier", "refresh_token", "device_code")
WRONG = "the user name or the password is wrong"
CASES = []


def case(sentence, needs=None):
    """needs: which part of the room it is tried in."""
    def keep(fn):
        CASES.append((sentence, needs, fn))
        return fn
    return keep


def ask(do, wrap=(), **fields):
    """The answer of the program; what was secret in the question must not be in it."""
    request = {"do": do, **fields}
    done = subprocess.run([*wrap, PROGRAM], input=json.dumps(request), text=True, capture_output=True, timeout=PATIENCE_S,
                          check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    answer = json.loads(done.stdout)
    said = json.dumps({**answer, "refresh_token": ""}) + done.stderr  # a provider may give the same again
    for name in SECRETS:
        secret = fields.get(name)
        assert not secret or len(secret) < 4 or secret not in said, f"{do}: {name} is in the answer: {said}"
    return answer


def refused(answer, reason, code="denied"):
    same((answer["ok"], answer.get("reason"), answer.get("code")), (False, reason, code))
    assert answer["message"], answer


def needs_or_skip(why):
    if why and STRICT:
        raise AssertionError(why)
    if why:
        raise Skip(why)


# ---- the program itself ----

def core_limit(here):
    with open(here + "limits", encoding="utf-8") as f:
        return [line.split()[4:6] for line in f if line.startswith("Max core file size")][0]


def text_of(path):
    """What it cannot be made to dump is closed to its own user too; only root can look."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except PermissionError:
        return b""


@case("secrets leave no core dump, and are in no argument and no environment")
def _(room):
    def unlimited():
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a shell starts what runs in the background deaf to it
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=unlimited) as child:
        child.stdin.write(b'{"do":"hash","password":"planted-secret')
        child.stdin.flush()
        here = f"/proc/{child.pid}/"
        wait_for("it shuts itself in", lambda: core_limit(here) == ["0", "0"])
        for place in ("cmdline", "environ"):
            same(text_of(here + place).count(b"planted"), 0)
        child.send_signal(signal.SIGQUIT)  # dumps a core like a crash; sanitizers leave it alone
        child.stdin.close()
        _, status = os.waitpid(child.pid, 0)
        child.returncode = -1
        assert os.WIFSIGNALED(status) and not os.WCOREDUMP(status), status


@case("a request that is too large is refused")
def _(room):
    refused(ask("hash", password="x" * 70000), "bad_request", "invalid")


@case("its help names every verb, and what it does not know ends it with an error")
def _(room):
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    for verb in ("hash", "password", "pam", "pam_look", "ldap", "ldap_look", "oidc_discover", "oidc_code", "oidc_refresh",
                 "oidc_device_start", "oidc_device_poll"):
        assert f"\n{verb}: " in done.stdout, verb
    same(subprocess.run([PROGRAM, "x"], capture_output=True, check=False).returncode, 2)


# ---- PAM ----

PAM_SERVICES = {
    "nightshift": "auth required pam_unix.so\naccount required pam_unix.so\n",
    "twice": "auth required pam_unix.so\nauth required pam_userdb.so db=/none\naccount required pam_unix.so\n",
    "broken": "auth required pam_no_such_module.so\naccount required pam_no_such_module.so\n",
    "places": "auth required pam_unix.so\naccount required pam_access.so accessfile={folder}/access nodefgroup\n",
    "nullok": "auth required pam_unix.so nullok\naccount required pam_unix.so\n",
}
# name: the fields of shadow behind the password (last change, min, max, warn, inactive, expires)
PAM_PEOPLE = {"ana": "20000:0:99999:7::", "gone": "20000:0:99999:7::1", "stale": "10000:0:30:7::", "fresh": "0:0:99999:7::"}


class Accounts:
    """A machine's accounts, for whoever is started with `wrap`."""

    def __init__(self, folder):
        self.folder, self.log_path = folder, os.path.join(folder, "none")
        os.makedirs(os.path.join(folder, "pam.d"))
        for name, text in PAM_SERVICES.items():
            self._write(f"pam.d/{name}", text.format(folder=folder))
        self._write("access", "- : ana : 10.9.8.7\n+ : ALL : ALL\n")
        self._write("nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\n")
        self._write("group", "root:x:0:\nlab:x:7000:\nvision:x:7001:ana,gone\nothers:x:7002:gone\n")
        self.put(PAM_PEOPLE)
        files = ("passwd", "shadow", "group", "nsswitch.conf", "pam.d")
        binds = " && ".join(f"mount --bind '{folder}/{f}' /etc/{f}" for f in files)
        self.wrap = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{binds} && exec "$@"', "sh"]

    def put(self, people):
        hashed = subprocess.run(["openssl", "passwd", "-6", "right-pw"], capture_output=True, text=True,
                                check=True).stdout.strip()
        self._write("passwd", "root:x:0:0:root:/root:/bin/sh\nempty:x:7009:7000::/:/bin/sh\n" + "".join(
            f"{name}:x:{7000 + i}:7000:{name.capitalize()} Test,room 1:/home/{name}:/bin/sh\n"
            for i, name in enumerate(people)))
        self._write("shadow", "root:*:20000::::::\nempty::20000:0:99999:7:::\n" +
                    "".join(f"{name}:{hashed}:{rest}:\n" for name, rest in people.items()))

    def ask(self, do, **fields):
        return ask(do, self.wrap, **fields)

    def stop(self):
        pass

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)


@case("PAM: the right password gives the account, its name and its groups", "pam")
def _(pam):
    answer = pam.ask("pam", user="ana", password="right-pw", **{"from": "10.0.0.1"})
    same(answer, {"ok": True, "user": "ana", "uid": 7000, "name": "Ana Test", "groups": ["lab", "vision"]})


@case("PAM: a wrong password and an unknown user are the same words", "pam")
def _(pam):
    wrong = pam.ask("pam", user="ana", password="wrong-pw")
    refused(wrong, "wrong_password")
    same(wrong["message"], WRONG)
    same(pam.ask("pam", user="nobody-here", password="wrong-pw"), wrong)


@case("PAM: an empty password is refused, even where PAM would take it", "pam")
def _(pam):
    refused(pam.ask("pam", user="ana", password=""), "empty_password")
    refused(pam.ask("pam", user="empty", password="", service="nullok"), "empty_password")
    refused(pam.ask("pam", user="empty", password="guessed", service="nullok"), "wrong_password")


@case("PAM: an expired account and an expired password are told apart", "pam")
def _(pam):
    refused(pam.ask("pam", user="gone", password="right-pw"), "account_expired")
    refused(pam.ask("pam", user="stale", password="right-pw"), "password_expired")
    refused(pam.ask("pam", user="fresh", password="right-pw"), "password_expired")
    refused(pam.ask("pam", user="gone", password="wrong-pw"), "wrong_password")


@case("PAM: a service that is missing, broken or wants more says so", "pam")
def _(pam):
    refused(pam.ask("pam", user="ana", password="right-pw", service="none"), "pam_broken", "unavailable")
    refused(pam.ask("pam", user="ana", password="right-pw", service="broken"), "pam_broken", "unavailable")
    refused(pam.ask("pam", user="ana", password="right-pw", service="twice"), "more_factors", "unavailable")
    refused(pam.ask("pam", user="ana", password="right-pw", service="../passwd"), "bad_request", "invalid")


@case("PAM: it is told where somebody comes from", "pam")
def _(pam):
    refused(pam.ask("pam", user="ana", password="right-pw", service="places", **{"from": "10.9.8.7"}), "not_allowed")
    same(pam.ask("pam", user="ana", password="right-pw", service="places", **{"from": "10.9.8.6"})["ok"], True)


@case("PAM: a look without a password sees who is gone and whose groups changed", "pam")
def _(pam):
    same(pam.ask("pam_look", user="ana")["groups"], ["lab", "vision"])
    refused(pam.ask("pam_look", user="gone"), "account_expired")
    refused(pam.ask("pam_look", user="nobody-here"), "unknown_user")
    pam._write("group", "lab:x:7000:\nothers:x:7002:ana\n")
    same(pam.ask("pam_look", user="ana")["groups"], ["lab", "others"])
    pam.put({})
    refused(pam.ask("pam_look", user="ana"), "unknown_user")


# ---- LDAP ----

def person(uid):
    return f"uid={uid},ou=people,dc=lab"


def group(cn):
    return f"cn={cn},ou=groups,dc=lab"


class Directory(Slapd):
    def __init__(self, folder):
        super().__init__(folder)
        self.add_person("ana", "ana-pw")
        self.add_person("bob", "bob-pw")
        self.add_person("twin", "twin-pw")
        self.add_person("twin", "twin-pw", where="guests")
        self.add_person("late", "late-pw", "shadowExpire: 1")
        self.add_group("vision", person("ana"))
        self.add_group("research", group("vision"), person("bob"))
        self.add_group("all", group("research"))
        self.set_members("vision", person("ana"), group("all"))  # a loop
        self.change(f"dn: {group('unix')}\nobjectClass: posixGroup\ncn: unix\ngidNumber: 7\nmemberUid: ana\n", "-a")

    def fields(self, **fields):
        return {"url": self.url, "base": "dc=lab", "bind_dn": READER, "bind_password": READER_PASSWORD, **fields}

    def sign_in(self, user="ana", password="ana-pw", **fields):
        return ask("ldap", user=user, password=password, **self.fields(**fields))

    def look(self, user="ana", **fields):
        return ask("ldap_look", user=user, **self.fields(**fields))


@case("LDAP: the right password gives the person and the groups", "ldap")
def _(d):
    same(d.sign_in(), {"ok": True, "user": "ana", "dn": person("ana"), "name": "Ana Test", "mail": "ana@lab.example",
                       "groups": ["vision"]})
    same(d.sign_in("ANA")["user"], "ana")  # as the directory writes it
    same(d.sign_in(group_filter="(memberUid=%u)", nested="yes")["groups"], ["unix"])


@case("LDAP: a wrong password and an unknown user are the same words", "ldap")
def _(d):
    wrong = d.sign_in(password="wrong-pw")
    refused(wrong, "wrong_password")
    same(d.sign_in("nobody-here", "wrong-pw"), wrong)
    same(wrong["message"], WRONG)


@case("LDAP: an empty password is refused, though the server would take it", "ldap")
def _(d):
    refused(d.sign_in(password=""), "empty_password")
    refused(d.sign_in(bind_password=""), "bad_request", "invalid")


@case("LDAP: no user name changes what is searched", "ldap")
def _(d):
    for name in ("*", "a*", "*)(uid=*", "ana)(|(uid=*", "ana\\2a", "*))%00", "%u", "(ana)"):
        refused(d.sign_in(name, "ana-pw"), "wrong_password")
        refused(d.look(name), "unknown_user")


@case("LDAP: two entries are nobody", "ldap")
def _(d):
    refused(d.sign_in("twin", "twin-pw"), "ambiguous_user")
    same(d.sign_in("twin", "twin-pw", base="ou=people,dc=lab")["ok"], True)
    refused(d.sign_in(user_filter="(objectClass=posixAccount)"), "bad_request", "invalid")


@case("LDAP: groups in groups are followed, also in a circle", "ldap")
def _(d):
    same(sorted(d.sign_in(nested="yes")["groups"]), ["all", "research", "vision"])
    same(sorted(d.sign_in(nested="memberof")["groups"]), ["all", "research", "vision"])
    same(sorted(d.sign_in("bob", "bob-pw", nested="yes")["groups"]), ["all", "research", "vision"])
    same(d.sign_in("bob", "bob-pw", nested="no")["groups"], ["research"])
    refused(d.sign_in(nested="maybe"), "bad_request", "invalid")


@case("LDAP: StartTLS and ldaps with a certificate that is checked", "ldap")
def _(d):
    same(d.sign_in(starttls=True, ca_file=d.cert)["ok"], True)
    same(d.sign_in(url=d.tls_url, ca_file=d.cert)["ok"], True)
    refused(d.sign_in(starttls=True, ca_file=d.other), "certificate", "unavailable")
    refused(d.sign_in(starttls=True), "certificate", "unavailable")
    refused(d.sign_in(url=d.tls_url, starttls=True), "bad_request", "invalid")
    answer = d.sign_in(url=d.tls_url, ca_file=d.other)
    assert answer["reason"] in ("certificate", "unreachable") and answer["code"] == "unavailable", answer


@case("LDAP: passwords do not go readable over a network", "ldap")
def _(d):
    refused(d.sign_in(url="ldap://192.0.2.1"), "insecure", "invalid")
    refused(d.sign_in(url=f"{d.url} ldap://192.0.2.1"), "insecure", "invalid")


@case("LDAP: a server that is away and settings that are wrong are told apart", "ldap")
def _(d):
    refused(d.sign_in(url="ldap://127.0.0.1:1"), "unreachable", "unavailable")
    refused(d.sign_in(bind_password="not-it"), "service_bind", "unavailable")
    refused(d.sign_in(user_filter="(uid=%u"), "directory", "unavailable")
    refused(d.sign_in(user_attr="employeeNumber"), "directory", "unavailable")
    refused(d.sign_in(bind_dn=None, bind_password=None), "wrong_password")  # anonymous sees nobody


@case("LDAP: an account that has expired is refused", "ldap")
def _(d):
    refused(d.sign_in("late", "late-pw"), "account_expired")
    refused(d.look("late"), "account_expired")


@case("LDAP: a look without a password sees changed groups and who is gone", "ldap")
def _(d):
    same(d.look("bob")["groups"], ["research"])
    d.set_members("vision", person("ana"), person("bob"))
    same(sorted(d.look("bob")["groups"]), ["research", "vision"])
    d.set_members("research", group("vision"))
    same(d.look("bob")["groups"], ["vision"])
    d.remove(person("bob"))
    refused(d.look("bob"), "unknown_user")
    refused(d.sign_in("bob", "bob-pw"), "wrong_password")


# ---- OpenID Connect ----

class Provided:
    """The provider, and what a daemon would send about it."""

    def __init__(self, folder):
        packages = oidc.install()
        self.packages, self.folder = packages, folder
        self.keys, self.other_keys = make_keys(packages, "k1"), make_keys(packages, "k2", "ES256")
        self.provider = Provider(packages, os.path.join(folder, "first"), self.keys)
        self.log_path = self.provider.log_path

    def fields(self, **fields):
        return {"issuer": self.provider.issuer, "client_id": oidc.CLIENT, "client_secret": oidc.SECRET, **fields}

    def exchange(self, way, code, **fields):
        sent = {"redirect_uri": oidc.BACK, "code": code, "verifier": way.verifier, "nonce": way.nonce, **fields}
        return ask("oidc_code", **self.fields(**sent))

    def sign_in(self, **fields):
        way = SignIn(self.provider)
        return self.exchange(way, way.code(), **fields)

    def refresh(self, token, **fields):
        return ask("oidc_refresh", **self.fields(refresh_token=token, subject="ana", **fields))

    def stop(self):
        self.provider.stop()


def with_bend(p, reason, fields=(), **how):
    p.provider.bend(**how)
    try:
        refused(p.sign_in(**dict(fields)), reason)
    finally:
        p.provider.bend()


@case("OIDC: what the provider offers is found, if it calls itself as we do", "oidc")
def _(p):
    found = ask("oidc_discover", issuer=p.provider.issuer)
    same((found["ok"], found["token_endpoint"]), (True, p.provider.issuer + "/token"))
    assert found["authorization_endpoint"] and found["device_authorization_endpoint"], found
    refused(ask("oidc_discover", issuer=p.provider.issuer + "/"), "wrong_issuer")
    refused(ask("oidc_discover", issuer=p.provider.issuer.replace("127.0.0.1", "localhost")), "wrong_issuer")
    refused(ask("oidc_discover", issuer=p.provider.issuer + "/x"), "provider", "unavailable")
    refused(ask("oidc_discover", issuer="http://127.0.0.1:1"), "unreachable", "unavailable")


@case("OIDC: a code becomes a person with groups", "oidc")
def _(p):
    answer = p.sign_in()
    assert answer.pop("refresh_token")
    same(answer, {"ok": True, "subject": "ana", "user": "ana", "name": "Ana Test", "mail": "ana@lab.example",
                  "groups": ["vision", "all"]})
    same(p.sign_in(user_claim="email")["user"], "ana@lab.example")
    refused(p.sign_in(user_claim="upn"), "no_claim")


@case("OIDC: a code works once", "oidc")
def _(p):
    way = SignIn(p.provider)
    code = way.code()
    same(p.exchange(way, code)["ok"], True)
    refused(p.exchange(way, code), "replayed")


@case("OIDC: without the verifier, or with another, a code is worth nothing", "oidc")
def _(p):
    way = SignIn(p.provider)
    refused(p.exchange(way, way.code(), verifier=SignIn(p.provider).verifier), "replayed")
    way = SignIn(p.provider)
    refused(p.exchange(way, way.code(), verifier=""), "bad_request", "invalid")
    same(SignIn(p.provider, code_challenge=None, code_challenge_method=None).code(), "invalid_request")


@case("OIDC: a wrong client secret and a wrong way back are the settings' fault", "oidc")
def _(p):
    way = SignIn(p.provider)
    refused(p.exchange(way, way.code(), client_secret="not-the-secret"), "client", "unavailable")
    way = SignIn(p.provider)
    refused(p.exchange(way, way.code(), redirect_uri=oidc.BACK + "/x"), "replayed")


@case("OIDC: an ID token for another sign-in is refused", "oidc")
def _(p):
    way = SignIn(p.provider)
    refused(p.exchange(way, way.code(), nonce="another-nonce"), "nonce")


@case("OIDC: bent ID tokens are refused, each for its reason", "oidc")
def _(p):
    with_bend(p, "wrong_audience", claims={"aud": "grafana"})
    with_bend(p, "wrong_audience", claims={"aud": ["nightshift", "grafana"]})
    with_bend(p, "wrong_issuer", claims={"iss": "https://elsewhere.example"})
    with_bend(p, "expired", claims={"exp": 1700000000})
    with_bend(p, "not_yet", claims={"nbf": 4000000000})
    with_bend(p, "bad_signature", how="tamper")
    with_bend(p, "algorithm", how="none")
    with_bend(p, "algorithm", how="hmac")
    with_bend(p, "unknown_key", keys={"keys": [{k: v for k, v in p.other_keys["keys"][0].items() if k != "d"}]})
    with_bend(p, "wrong_subject", userinfo={"sub": "root"})
    same(p.sign_in()["ok"], True)


@case("OIDC: the device flow: not yet, then somebody, then used up", "oidc")
def _(p):
    start = ask("oidc_device_start", **p.fields(scopes=oidc.SCOPES))
    assert start["ok"] and start["user_code"] and start["expires_in"] > 0 and start["interval"] > 0, start
    poll = p.fields(device_code=start["device_code"])
    refused(ask("oidc_device_poll", **poll), "pending", "unavailable")
    type_device_code(start)
    answer = ask("oidc_device_poll", **poll)
    same((answer["ok"], answer["user"], answer["groups"]), (True, "ana", ["vision", "all"]))
    refused(ask("oidc_device_poll", **poll), "expired")
    start = ask("oidc_device_start", **p.fields(scopes=oidc.SCOPES))
    type_device_code(start, agree=False)
    refused(ask("oidc_device_poll", **p.fields(device_code=start["device_code"])), "declined")
    refused(ask("oidc_device_poll", **p.fields(device_code="never-given")), "expired")


@case("OIDC: a refresh sees changed groups, and that a person is gone", "oidc")
def _(p):
    token = p.sign_in()["refresh_token"]
    ana = p.provider.people["ana"]
    p.provider.put_people(ana={**ana, "groups": ["robotics"]})
    answer = p.refresh(token)
    same((answer["ok"], answer["groups"]), (True, ["robotics"]))
    token = answer.get("refresh_token", token)
    refused(ask("oidc_refresh", **p.fields(refresh_token=token, subject="bob")), "wrong_subject")
    token = p.sign_in()["refresh_token"]
    p.provider.put_people()
    refused(p.refresh(token), "gone")
    p.provider.put_people(ana=ana)
    refused(p.refresh("never-given"), "gone")


@case("OIDC: a provider with new keys is believed, its old tokens are not", "oidc")
def _(p):
    p.provider.restart(keys=p.other_keys, clients=[oidc.client(id_token_signed_response_alg="ES256")])
    same(p.sign_in()["ok"], True)
    with_bend(p, "unknown_key", keys={"keys": [{k: p.keys["keys"][0][k] for k in ("kty", "n", "e", "kid")}]})
    p.provider.restart(keys=p.keys, clients=[oidc.client()])
    same(p.sign_in()["ok"], True)


@case("OIDC: a provider whose clock is an hour off is refused", "oidc")
def _(p):
    for skew, reason in ((-3600, "expired"), (3600, "not_yet")):
        p.provider.restart(skew_s=skew)
        refused(p.sign_in(), reason)
    p.provider.restart(skew_s=0)


@case("OIDC: clients without a secret, and with it in the form", "oidc")
def _(p):
    p.provider.restart(clients=[oidc.client(token_endpoint_auth_method="none", client_secret=None)])
    same(p.sign_in(client_secret=None)["ok"], True)
    p.provider.restart(clients=[oidc.client(token_endpoint_auth_method="client_secret_post")],
                       auth_methods=["client_secret_post"])
    same(p.sign_in()["ok"], True)
    p.provider.restart(clients=[oidc.client()], auth_methods=["client_secret_basic", "none"])


@case("OIDC: https with a certificate that is checked", "oidc")
def _(p):
    cert, key = make_certificate(p.folder, "https")
    other, _ = make_certificate(p.folder, "other")
    far = Provider(p.packages, os.path.join(p.folder, "https"), p.keys, cert=cert, key=key)
    try:
        same(ask("oidc_discover", issuer=far.issuer, ca_file=cert)["ok"], True)
        refused(ask("oidc_discover", issuer=far.issuer, ca_file=other), "certificate", "unavailable")
        refused(ask("oidc_discover", issuer=far.issuer), "certificate", "unavailable")
        refused(ask("oidc_discover", issuer="http://192.0.2.1"), "insecure", "invalid")
    finally:
        far.stop()


class Odd(http.server.BaseHTTPRequestHandler):
    """A provider that answers as its path says."""

    def do_GET(self):
        self.server.seen.append(self.path)
        kind = self.path.split("/")[1]
        self.send_response(302 if kind == "elsewhere" else 200)
        if kind == "elsewhere":
            self.send_header("Location", "/followed")
        self.end_headers()
        body = {"large": b" " * 600_000, "page": b"<html>", "list": b"[]", "bare": b"{}"}.get(kind, b"")
        try:
            self.wfile.write(body)
        except OSError:
            pass  # it has heard enough

    def log_message(self, *_):
        pass


@case("OIDC: a provider that sends people elsewhere, too much or nonsense is refused")
def _(room):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        for kind in ("elsewhere", "large", "page", "list"):
            refused(ask("oidc_discover", issuer=f"{base}/{kind}"), "provider", "unavailable")
        refused(ask("oidc_discover", issuer=f"{base}/bare"), "wrong_issuer")
        server.shutdown()
        same([path for path in server.seen if "followed" in path], [])
        same(len(server.seen), 5)


@case("OIDC: proxies of the environment are not used")
def _(room):
    env = {**os.environ, "http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        request = {"do": "oidc_discover", "issuer": f"http://127.0.0.1:{server.server_port}/bare"}
        subprocess.run([PROGRAM], input=json.dumps(request), text=True, capture_output=True, env=env, timeout=PATIENCE_S,
                       check=True)
        server.shutdown()
        same(len(server.seen), 1)


# ---- the run ----

def make_pam(folder):
    can = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False,
                                               capture_output=True).returncode == 0
    needs_or_skip(None if can else "needs root and a mount namespace")
    return Accounts(folder)


def make_ldap(folder):
    needs_or_skip(missing())
    d = Directory(folder)
    d.other, _ = make_certificate(folder, "other")
    return d


def make_oidc(folder):
    try:
        return Provided(folder)
    except OSError as why:
        needs_or_skip(str(why))


class Room:
    log_path = "/nonexistent"


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    home, tap = tempfile.mkdtemp(prefix="ns-signin"), Tap()
    makers, made = {"pam": make_pam, "ldap": make_ldap, "oidc": make_oidc}, {None: Room()}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def run(needs, fn):
        if needs not in made:
            os.makedirs(os.path.join(home, needs), exist_ok=True)
            made[needs] = makers[needs](os.path.join(home, needs, "it"))
        fn(made[needs])
    try:
        for sentence, needs, fn in CASES:
            if part in sentence:
                tap.run(sentence, Room(), run, needs, fn)
    finally:
        for one in made.values():
            getattr(one, "stop", lambda: None)()
        shutil.rmtree(home, ignore_errors=True)
    print(f"1..{tap.number}")
    return not tap.good


if __name__ == "__main__":
    sys.exit(main())
