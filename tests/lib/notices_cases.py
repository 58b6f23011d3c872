"""notices_cases - what people are told by mail and webhook, on a real daemon with real jobs and real receivers."""
import base64
import fcntl
import glob
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import receivers  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

NIGHTSHIFT = f"{cl.BUILD}/nightshift"
SMALL = {"cpus": 1, "mem": "64Mi"}
PEOPLE = {"ada": ("ours", "member"), "bob": ("ours", "member"), "lena": ("ours", "lead"), "eve": ("theirs", "lead")}
GATHER_S = 1  # of the setting notice_gather
IDLE_S = 2  # of the setting notice_idle
LOGIN = ("nightshift", "s3cret word")
case = Cases()


class World:
    def __init__(self, c):
        self.c, self.token = c, {}
        for tenant in ("ours", "theirs"):
            c.ask("PUT", f"/v1/tenants/{tenant}", {})
        for user, (tenant, role) in PEOPLE.items():
            c.ask("PUT", f"/v1/users/{user}", {})
            c.ask("PUT", f"/v1/tenants/{tenant}/members/{user}", {"role": role})
            self.make_token(user)

    def make_token(self, user):
        self.token[user] = c_token = self.c.ask("POST", "/v1/tokens", {"user": user, "name": "test", "scopes": ["read", "jobs", "manage"]})["token"]
        return c_token

    def choose(self, user, **what):
        return self.c.ask("PUT", "/v1/notices", what, token=self.token[user])

    def log(self, user):
        return self.c.ask("GET", "/v1/notices/log", token=self.token[user])["notices"]

    def begin(self, user, line, **spec):
        return self.c.ask("POST", "/v1/jobs", {"command": ["sh", "-c", line], "tenant": PEOPLE[user][0], "resources": SMALL, **spec},
                          token=self.token[user])["id"]

    def run(self, user, line, **spec):
        number = self.begin(user, line, **spec)
        self.c.wait_end(number)
        return number

    def restart(self):
        self.c.kill_daemon()
        self.c.start()
        self.c.wait_ready()

    def metric(self, name):
        text = self.c.ask("GET", "/metrics")
        return int(next(line for line in text.splitlines() if line.startswith(f"nightshift_{name} ")).split()[1])

    def quiet(self):
        """Nobody is told anything any more."""
        for user in PEOPLE:
            self.choose(user, mail=None, webhook=None, log=True,
                        kinds={kind: {"mail": kind != "job_cancelled", "webhook": kind != "job_cancelled"}
                               for kind in self.c.ask("GET", "/v1/notices")["kinds"]})
        wait_for("nothing to wait", lambda: self.metric("notices_waiting") == 0)
        self.mail.clear()
        self.hook.clear()

    def type(self, user, *words):
        env = {**os.environ, "NIGHTSHIFT_SERVER": f"unix:{self.c.run}/api.sock", "NIGHTSHIFT_TOKEN": self.token[user], "HOME": self.c.folder}
        done = subprocess.run([NIGHTSHIFT, "notices", *map(str, words)], capture_output=True, text=True, check=False, env=env,
                              timeout=cl.PATIENCE_S)
        return done.returncode, done.stdout, done.stderr


def wait_got(receiver, n=1):
    wait_for(f"{n} to arrive", lambda: len(receiver.got) >= n)
    return list(receiver.got)


def text_of(mail):
    return mail["mail"].get_content().replace("\r\n", "\n")


def wait_over(w, user, n=1):
    """So many of theirs are over; none waits."""
    wait_for(f"{n} of {user} to be over",
             lambda: (log := w.log(user)) and all(one["state"] != "waiting" for one in log) and len(log) >= n)
    return w.log(user)


def few_since(began):
    """How many notices of one kind there may be at most: one in each span of gathering, on however busy a machine."""
    return int((time.monotonic() - began) / GATHER_S) + 3


def doctor_mail(w):
    return next(x for x in w.c.ask("GET", "/v1/doctor")["checks"] if x["name"] == "mail")


# ---- what arrives ----

@case("the end of a job comes by mail, over TLS and with a login, and says who, what, where and why")
def _(w):
    w.choose("ada", mail="ada@lab.example")
    number = w.run("ada", "echo epoch 1; echo no more memory >&2; exit 3", name="train", env={"API_KEY": "sk-hidden"})
    one = wait_got(w.mail)[0]
    same((one["to"], one["tls"], "night@lab.example" in one["from"]), (["ada@lab.example"], True, True))
    mail, text = one["mail"], text_of(one)
    assert mail["Subject"].startswith(f"Job {number} 'train' failed") and mail["Subject"].endswith(": exit code 3"), mail["Subject"]
    same((mail["To"], mail["Auto-Submitted"], mail["X-Nightshift-Event"]), ("ada@lab.example", "auto-generated", "dev.nightshift.job.ended"))
    node = w.c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    for part in ("ada", "ours", "exit code 3", "epoch 1\n", "no more memory\n", node, f"https://gpu.lab.example/#/jobs/{number}"):
        assert part in text, (part, text)
    assert "sk-hidden" not in text and "API_KEY" not in text, text
    same([(n["state"], n["way"], n["tries"]) for n in wait_over(w, "ada")[:1]], [("sent", "mail", 1)])
    same(mail["Message-ID"], f"<{w.log('ada')[0]['id']}@lab.example>")
    wait_for("the count", lambda: w.metric("notices_sent_total") >= 1)


@case("the end of a job comes to a webhook as a signed CloudEvent")
def _(w):
    said = w.choose("ada", webhook=w.hook.url("/hook?x=1"))
    number = w.run("ada", "echo fine", name="tr<b>ain \U0001f600")
    got = wait_got(w.hook)[0]
    event, headers = got["event"], got["headers"]
    same((got["path"], headers["Content-Type"]), ("/hook?x=1", "application/cloudevents+json; charset=utf-8"))
    same((event["specversion"], event["type"], event["source"], event["subject"], event["datacontenttype"]),
         ("1.0", "dev.nightshift.job.ended", "https://gpu.lab.example", f"job/{number}", "application/json"))
    job = event["data"]["jobs"][0]
    same((job["id"], job["name"], job["user"], job["tenant"], job["state"]), (number, "tr<b>ain \U0001f600", "ada", "ours", "succeeded"))
    same((event["data"]["count"], event["data"]["succeeded"], event["data"]["log"]), (1, 1, ["fine"]))
    key = base64.b64decode(said["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + got["raw"]
    same(headers["webhook-signature"], "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode())
    same((headers["webhook-id"], event["id"]), (event["id"], wait_over(w, "ada")[0]["id"]))
    shown = json.dumps([w.c.ask("GET", "/v1/notices", token=w.token["ada"]), w.choose("ada", log=False), w.c.ask("GET", "/v1/audit")])
    assert said["secret"] not in shown and "whsec_" not in shown, shown
    assert said["secret"] not in cl.read_file(w.c.log_path).decode()


@case("a freeze is told with its reason, and so is going on to the end")
def _(w):
    w.choose("ada", webhook=w.hook.url())
    number = w.begin("ada", "trap 'exit 85' USR1; while :; do sleep 0.1; done",
                     freeze={"mode": "signal", "signal": "USR1", "grace": "5m"}, name="long")
    w.c.wait_state(number, "running")
    wait_for("its trap", lambda: w.c.call("POST", f"/v1/jobs/{number}/freeze")[0] == 200)
    w.c.wait_state(number, "frozen")
    got = wait_got(w.hook)[0]["event"]
    same((got["type"], got["subject"], got["data"]["jobs"][0]["state"]), ("dev.nightshift.job.frozen", f"job/{number}", "frozen"))
    assert got["data"]["summary"].startswith(f"Job {number} 'long' is frozen"), got["data"]["summary"]
    w.choose("ada", kinds={"job_cancelled": {"webhook": True}})
    w.c.ask("POST", f"/v1/jobs/{number}/cancel", {"reason": "enough"})
    got = wait_got(w.hook, 2)[1]["event"]
    same((got["data"]["jobs"][0]["state"], got["data"]["cancelled"]), ("cancelled", 1))


# ---- who hears of what ----

@case("what is not chosen is not sent, and nobody hears of another's job")
def _(w):
    w.choose("ada", mail="ada@lab.example", webhook=w.hook.url("/ada"),
             kinds={"job_succeeded": {"mail": False, "webhook": False}, "job_failed": {"mail": False}})
    for user in ("bob", "lena", "eve"):
        w.choose(user, mail=f"{user}@lab.example", webhook=w.hook.url(f"/{user}"))
    before = w.metric("notices_sent_total")
    w.run("ada", "true")
    number = w.run("ada", "false")
    got = wait_got(w.hook)
    same([(one["path"], one["event"]["subject"]) for one in got], [("/ada", f"job/{number}")])
    wait_over(w, "ada")
    # The one that was wanted came last: what was made before it would have been sent before it.
    same((w.mail.got, len(w.hook.got), w.metric("notices_sent_total") - before), ([], 1, 1))
    same([w.log(user) and [n for n in w.log(user) if n["subject"].startswith(f"Job {number}")] for user in ("bob", "lena", "eve")], [[], [], []])


@case("nothing is sent to those who were locked out, and nothing is left of those who were removed")
def _(w):
    w.c.ask("PUT", "/v1/users/zoe", {})
    w.c.ask("PUT", "/v1/tenants/ours/members/zoe", {"role": "member"})
    PEOPLE["zoe"] = ("ours", "member")
    try:
        w.make_token("zoe")
        w.choose("zoe", webhook=w.hook.url("/zoe"))
        w.hook.feel("refuse")
        w.run("zoe", "true")
        wait_for("a try", lambda: w.hook.tries >= 1)
        w.c.ask("DELETE", "/v1/users/zoe")
        w.hook.feel("take")
        wait_for("nothing to wait", lambda: w.metric("notices_waiting") == 0)
        same(w.hook.got, [])
        w.c.ask("PUT", "/v1/users/zoe", {})
        same((w.c.ask("GET", "/v1/notices", token=w.make_token("zoe"))["webhook"], w.log("zoe")), (None, []))
    finally:
        del PEOPLE["zoe"]
        w.c.call("DELETE", "/v1/users/zoe")


@case("leads hear of their tenant's budget at 80 % and when it is used up, and nobody else does")
def _(w):
    w.c.ask("PUT", "/v1/tenants/poor", {"budget": {"gpu_hours": 0.002, "period": "month"}})
    for user, role in (("ada", "member"), ("lena", "lead")):
        w.c.ask("PUT", f"/v1/tenants/poor/members/{user}", {"role": role})
    for user in ("ada", "lena", "eve"):
        w.choose(user, webhook=w.hook.url(f"/{user}"))
    number = w.c.ask("POST", "/v1/jobs", {"command": ["sleep", "600"], "tenant": "poor", "resources": {**SMALL, "gpus": 2}},
                     token=w.token["ada"])["id"]
    got = wait_got(w.hook, 2)
    same([(one["path"], one["event"]["type"], one["event"]["subject"], one["event"]["data"]["percent"]) for one in got],
         [("/lena", "dev.nightshift.tenant.budget", "tenant/poor", p) for p in (80, 100)])
    wait_over(w, "lena", 2)
    w.restart()
    w.choose("lena", mail="lena@lab.example", kinds={"budget": {"mail": False}})
    w.c.ask("POST", f"/v1/jobs/{number}/cancel")
    w.c.wait_end(number)
    w.run("lena", "true")  # behind which nothing is on its way
    wait_got(w.mail)
    wait_over(w, "lena", 4)
    same(len([one for one in w.hook.got if one["event"]["type"] == "dev.nightshift.tenant.budget"]), 2)


# ---- crashes and receivers that do not take it ----

@case("what was committed when the daemon was killed is sent after it came back, once")
def _(w):
    w.choose("ada", webhook=w.hook.url(), mail="ada@lab.example")
    w.c.kill_daemon()
    w.c.start(failpoint="notice.durable")  # on the disk, and not sent
    w.c.wait_ready()
    number = w.begin("ada", "exit 7")
    w.c.daemon.wait(cl.PATIENCE_S)
    same((w.hook.tries, w.mail.tries), (0, 0))
    w.c.start()
    w.c.wait_ready()
    got = wait_got(w.hook)
    wait_got(w.mail)
    log = wait_over(w, "ada", 2)
    w.restart()  # what was told as sent is not sent again
    same((len(w.hook.got), len(w.mail.got), [n["state"] for n in log[:2]]), (1, 1, ["sent", "sent"]))
    same(got[0]["event"]["subject"], f"job/{number}")


@case("one that was sent when the daemon was killed comes again under the same id, or not at all")
def _(w):
    w.choose("ada", webhook=w.hook.url())
    w.hook.feel("hang")
    w.run("ada", "true")
    wait_for("a try", lambda: w.hook.tries >= 1)
    w.c.kill_daemon()
    w.hook.feel("take")
    w.c.start()
    w.c.wait_ready()
    wait_over(w, "ada")
    ids = {one["event"]["id"] for one in w.hook.got}
    assert len(ids) == 1 and 1 <= len(w.hook.got) <= 2, w.hook.got


@case("a receiver that fails is tried again until it takes it")
def _(w):
    w.choose("ada", webhook=w.hook.url(), mail="ada@lab.example")
    w.hook.feel("refuse")
    w.mail.feel("refuse")
    number = w.run("ada", "true")
    wait_for("two tries each", lambda: w.hook.tries >= 2 and w.mail.tries >= 2)
    found = doctor_mail(w)
    same((found["ok"], "did not take the last letter" in found["found"]), (False, True))
    log = {n["way"]: n for n in w.log("ada")[:2]}
    same({n["state"] for n in log.values()}, {"waiting"})
    same(log["webhook"]["why"], "the webhook answered 500")
    assert "421" in log["mail"]["why"], log
    w.hook.feel("take")
    w.mail.feel("take")
    got = wait_got(w.hook)[0]["event"]
    wait_got(w.mail)
    same((got["subject"], got["id"]), (f"job/{number}", log["webhook"]["id"]))
    assert wait_over(w, "ada", 2)[0]["tries"] >= 3
    assert w.metric("notices_failed_total") >= 4
    same(doctor_mail(w)["ok"], True)


@case("a redirect is not followed")
def _(w):
    w.choose("ada", webhook=w.hook.url())
    w.hook.feel("redirect")
    w.run("ada", "true")
    wait_for("two tries", lambda: w.hook.tries >= 2)
    same((w.hook.got, w.log("ada")[0]["why"]), ([], "the webhook answered 302"))
    w.hook.feel("take")
    same([one["path"] for one in wait_got(w.hook)], ["/hook"])


@case("a receiver that hangs holds up neither the daemon nor anybody else")
def _(w):
    slow = receivers.HookServer()
    try:
        slow.feel("hang")
        w.choose("ada", webhook=slow.url(), mail="ada@lab.example")
        w.choose("bob", webhook=w.hook.url())
        for user in ("ada", "ada", "ada"):
            w.run(user, "true")
        wait_for("it to hang", lambda: slow.tries >= 1)
        number = w.run("bob", "true")
        same(wait_got(w.hook)[0]["event"]["subject"], f"job/{number}")
        wait_got(w.mail)
        same((slow.got, w.c.is_ready()), ([], True))
        wait_for("it to be given up for now", lambda: any("did not answer within" in n["why"] for n in w.log("ada")))
        slow.feel("take")
        wait_over(w, "ada")
        assert slow.got
    finally:
        slow.close()


# ---- many ----

@case("an array of 200 jobs that fail is few notices that tell of all")
def _(w):
    w.choose("ada", webhook=w.hook.url(), mail="ada@lab.example")
    began = time.monotonic()
    number = w.begin("ada", "exit 1", array="0-199", name="sweep", resources={"cpus": 0.1, "mem": "16Mi"})
    wait_for("all to fail", lambda: len(w.c.ask("GET", f"/v1/jobs?array={number}&state=failed&limit=1000")["jobs"]) == 200)
    wait_for("all to be told", lambda: sum(one["event"]["data"]["failed"] for one in list(w.hook.got)) == 200)
    wait_over(w, "ada")
    most = few_since(began)
    assert len(w.hook.got) <= most and len(w.mail.got) <= most, (most, w.hook.subjects())
    several = next(one["event"] for one in w.hook.got if one["event"]["data"]["count"] > 1)
    same((several["subject"], several["data"]["array"]), (f"array/{number}", number))
    assert len(several["data"]["jobs"]) <= 20 and f"of array {number} 'sweep' ended: " in several["data"]["summary"], several
    same(sum(one["event"]["data"]["count"] for one in w.hook.got), 200)


@case("many jobs one after the other are few notices too")
def _(w):
    w.choose("ada", webhook=w.hook.url())
    began = time.monotonic()
    numbers = [w.begin("ada", "true", name=f"n{i}", resources={"cpus": 0.1, "mem": "16Mi"}) for i in range(60)]
    for number in numbers:
        w.c.wait_end(number)
    wait_for("all to be told", lambda: sum(one["event"]["data"]["count"] for one in list(w.hook.got)) == 60)
    wait_over(w, "ada")
    assert len(w.hook.got) <= few_since(began), w.hook.subjects()


# ---- machines ----

class Machine:
    """What an agent would tell."""

    def __init__(self, c):
        self.c, self.number, self.t_ms = c, 0, 0
        self.node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
        self.uuids = [gpu["uuid"] for gpu in c.ask("GET", "/v1/gpus")["gpus"]]

    def report(self, util, findings=()):
        self.number += 1
        self.t_ms = max(int(time.time() * 1000), self.t_ms + 1)  # two of one moment are one that was sent again
        lines = ["nightshift-report 1", f"from {self.node} boot-{os.getpid()} {self.number} 1 0.1.0"]
        lines += [f"gpu {i} {uuid} 81920 400000 A100" for i, uuid in enumerate(self.uuids)]
        lines += [f"s {self.t_ms}", "n " + " ".join("-" * 10)]
        lines += [f"g {i} {util} " + " ".join("-" * 10) for i in range(len(self.uuids))]
        lines += ["T", "H", *(f"h {rule} - {text}" for rule, text in findings)]
        return self.c.ask("POST", f"/v1/nodes/{self.node}/report", ("\n".join(lines) + "\n").encode(), kind="application/octet-stream")


@case("a job that leaves its GPU idle is told to its user, once, and one that works is not")
def _(w):
    machine = Machine(w.c)
    for user in ("ada", "bob", "lena"):
        w.choose(user, webhook=w.hook.url(f"/{user}"))
    machine.report(500)
    number = w.begin("ada", "sleep 600", resources={**SMALL, "gpus": 1}, name="notebook")
    w.begin("bob", "sleep 600")  # it has no GPU
    w.c.wait_state(number, "running")
    until = time.monotonic() + 2 * IDLE_S  # longer than it would take, and it works
    wait_for("a while of work", lambda: machine.report(500) and time.monotonic() > until)
    same(w.hook.got, [])
    wait_for("the notice", lambda: machine.report(0) and w.hook.got)
    event = w.hook.got[0]["event"]
    same((w.hook.got[0]["path"], event["type"], event["subject"], event["data"]["node"]),
         ("/ada", "dev.nightshift.gpu.idle", f"job/{number}", machine.node))
    assert f"Job {number} 'notebook' leaves a GPU idle" in event["data"]["summary"] and event["data"]["idle_ms"] >= IDLE_S * 1000, event
    wait_over(w, "ada")
    w.restart()
    until = time.monotonic() + 2 * IDLE_S
    wait_for("a while more", lambda: machine.report(0) and time.monotonic() > until)
    same(len(w.hook.got), 1)
    for one in w.c.ask("GET", "/v1/jobs")["jobs"]:
        w.c.ask("POST", f"/v1/jobs/{one['id']}/cancel")
        w.c.wait_end(one["id"])


@case("operators hear of a machine that was drained because something is wrong with it, and others do not")
def _(w):
    machine = Machine(w.c)
    w.c.ask("PUT", "/v1/users/olga", {"role": "operator"})
    PEOPLE["olga"] = ("ours", "member")
    try:
        w.make_token("olga")
        for user in ("ada", "lena", "olga"):
            w.choose(user, webhook=w.hook.url(f"/{user}"))
        machine.report(0)
        machine.report(0, [("gpu_lost", "GPU 3: it does not answer")])
        got = wait_got(w.hook)
        event = got[0]["event"]
        same((got[0]["path"], event["type"], event["subject"]), ("/olga", "dev.nightshift.node.drained", f"node/{machine.node}"))
        assert "it does not answer" in event["data"]["summary"], event
        w.c.ask("POST", f"/v1/nodes/{machine.node}/resume", {})
        machine.report(0)
        wait_over(w, "olga")
        same(len(w.hook.got), 1)
    finally:
        w.c.call("DELETE", "/v1/users/olga")
        del PEOPLE["olga"]


# ---- hostile ----

@case("a job's name begins no header, and a job's output no other part")
def _(w):
    w.choose("ada", mail="ada@lab.example")
    name = "x\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script> ü"
    status, said = w.c.call("POST", "/v1/jobs", {"command": ["sh", "-c", "printf 'a\\r\\n.\\r\\nMAIL FROM:<eve@x>\\r\\nlast\\n'; exit 1"],
                                                 "tenant": "ours", "resources": SMALL, "name": name}, token=w.token["ada"])
    if status != 201:  # it has to be refused, or to be harmless
        assert status == 400, said
        name = "Bcc: eve@evil.example =?utf-8?B?DQpCY2M6IGU=?= <b> ü"
        number = w.begin("ada", "printf 'a\\r\\n.\\r\\nMAIL FROM:<eve@x>\\r\\nlast\\n'; exit 1", name=name)
        w.c.wait_end(number)
    one = wait_got(w.mail)[0]
    wait_over(w, "ada")
    same((len(w.mail.got), one["to"], one["mail"]["Bcc"]), (1, ["ada@lab.example"], None))
    assert "Bcc: eve@evil.example" in one["mail"]["Subject"] and "\n" not in one["mail"]["Subject"], one["mail"]["Subject"]
    assert "last\n" in text_of(one) and all(byte < 0x80 for byte in one["raw"]), one["raw"]


def own_address():
    """One in a local network, or None."""
    for name in glob.glob("/sys/class/net/*"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                packed = fcntl.ioctl(s, 0x8915, os.path.basename(name).encode().ljust(256, b"\0"))  # SIOCGIFADDR
            except OSError:
                continue
        address = socket.inet_ntoa(packed[20:24])
        if address.startswith(("10.", "192.168.")):
            return address
    return None


@case("addresses that are not allowed are refused, also behind a name")
def _(w):
    other = cl.Cluster(["--webhooks", "network", "--notice-gather", "1s"], name="other")
    shutil.copy(f"{cl.LIBEXEC}/nightshift-send", other.libexec)
    try:
        other.start()
        other.wait_ready()
        for url in (w.hook.url(), "http://localhost/", "http://[::1]/", "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.1]/"):
            status, said = other.call("PUT", "/v1/notices", {"webhook": url})
            same((url, status), (url, 403))
        for url in ("ftp://lab.example/", "https://user:word@lab.example/", "nonsense"):
            same((url, other.call("PUT", "/v1/notices", {"webhook": url})[0]), (url, 400))
        # A name of this machine that no list of ours has.
        other.ask("PUT", "/v1/notices", {"webhook": f"http://2130706433:{w.hook.port}/hook"})
        said = other.ask("POST", "/v1/notices/test", {"way": "webhook"})
        same((said["ok"], said["error"], w.hook.tries), (False, "the webhook's address is not allowed here", 0))
        own = own_address()
        if own:  # in a local network by its look, and yet this machine
            other.ask("PUT", "/v1/notices", {"webhook": f"http://{own}:{w.hook.port}/hook"})
            said = other.ask("POST", "/v1/notices/test", {"way": "webhook"})
            same((said["ok"], said["error"], w.hook.tries), (False, "the webhook's address is not allowed here", 0))
        status, said = other.call("PUT", "/v1/notices", {"mail": "ada@lab.example"})
        assert status == 409 and "mail_server" in said["hint"], (status, said)
    finally:
        other.close()


@case("smtps and https webhooks reach servers with certificates of their own, and no others")
def _(w):
    others = f"{w.c.folder}/others"
    os.mkdir(others)
    foreign, _ = receivers.make_certificate(others)
    folder = f"{w.c.folder}/secure"
    os.mkdir(folder)
    mail, hook = receivers.MailServer(folder, LOGIN, at_once=True), receivers.HookServer(folder)
    other = cl.Cluster(["--webhooks", "any", "--mail-from", "night@lab.example", "--mail-login", LOGIN[0],
                        "--mail-password-file", f"{w.c.folder}/password", "--mail-server", f"smtps://127.0.0.1:{mail.port}"], name="secure")
    shutil.copy(f"{cl.LIBEXEC}/nightshift-send", other.libexec)
    options = list(other.options)

    def told(authority):
        """What a test of each way says with this authority."""
        other.options = [*options, "--mail-ca", authority, "--webhook-ca", authority]
        other.start()
        other.wait_ready()
        other.ask("PUT", "/v1/notices", {"mail": "ada@lab.example", "webhook": hook.url()})
        said = [other.ask("POST", "/v1/notices/test", {"way": way}) for way in ("mail", "webhook")]
        other.kill_daemon()
        return said
    try:
        for said in told(foreign):
            assert not said["ok"] and "certificate" in said["error"], said
        same((mail.got, hook.got), ([], []))
        same([said["ok"] for said in told(mail.cert)], [True, True])
        same((len(mail.got), mail.got[0]["tls"], mail.got[0]["to"], len(hook.got)), (1, True, ["ada@lab.example"], 1))
    finally:
        other.close()
        mail.close()
        hook.close()


@case("what is wrong is refused by its name")
def _(w):
    for body, field, status in (({"mail": "a b@x"}, "mail", 400), ({"mail": "x@y.example\r\nBcc: e@x"}, "mail", 400),
                                ({"mail": "me"}, "mail", 400), ({"mail": "x@elsewhere.example"}, "mail", 403),
                                ({"kinds": {"nonsense": {}}}, "kinds", 400), ({"kinds": {"budget": {"mail": "yes"}}}, "kinds", 400)):
        got, said = w.c.call("PUT", "/v1/notices", body, token=w.token["ada"])
        same((body, got, said.get("field")), (body, status, field))
    same(w.c.call("POST", "/v1/notices/test", {"way": "pigeon"}, token=w.token["ada"])[0], 400)
    same(w.c.call("POST", "/v1/notices/test", {"way": "mail"}, token=w.token["ada"])[0], 409)


# ---- the command line ----

@case("the command line shows, sets, tries and lists, and the address may be that of one's record")
def _(w):
    code, said, _ = w.type("ada")
    assert code == 0 and "mail     off" in said and "job_failed" in said, said
    w.c.ask("PUT", "/v1/users/ada", {"mail": "ada@lab.example"})
    code, said, notes = w.type("ada", "set", "--mail", "me", "--webhook", w.hook.url(), "--off", "job_succeeded:mail", "--on", "job_cancelled")
    assert code == 0 and "ada@lab.example" in said and "whsec_" in said and "shown this once" in notes, (said, notes)
    kinds = w.c.ask("GET", "/v1/notices", token=w.token["ada"])["kinds"]
    same((kinds["job_succeeded"], kinds["job_cancelled"]), ({"mail": False, "webhook": True}, {"mail": True, "webhook": True}))
    same(w.type("ada", "test")[:2], (0, "mail: it was taken\nwebhook: it was taken\n"))
    same((w.mail.got[0]["mail"]["Subject"], w.hook.got[0]["event"]["type"]), ("A trial notice for ada", "dev.nightshift.trial"))
    w.hook.feel("refuse")
    code, _, notes = w.type("ada", "test", "webhook")
    assert code != 0 and "the webhook answered 500" in notes, (code, notes)
    w.hook.feel("take")
    number = w.run("ada", "exit 4", name="shown")
    wait_got(w.hook, 2)
    wait_over(w, "ada")
    code, said, _ = w.type("ada", "log")
    assert code == 0 and f"Job {number} 'shown' failed" in said and " sent " in said, said
    assert w.type("ada", "set", "--mail", "off", "--webhook", "off")[0] == 0
    same(w.type("ada", "set", "--on", "job_failed:pigeon")[0], 2)
    same(w.type("ada", "test")[0] != 0, True)


def main():
    def make():
        c = cl.Cluster(["--webhooks", "any", "--notice-gather", f"{GATHER_S}s", "--notice-retry", "200ms", "--notice-timeout", "30s", "--notice-idle", f"{IDLE_S}s",
                        "--mail-from", "night@lab.example", "--external-url", "https://gpu.lab.example", "--mail-domains", "lab.example"])
        shutil.copy(f"{cl.LIBEXEC}/nightshift-send", c.libexec)
        c.mail, c.hook = receivers.MailServer(c.folder, LOGIN), receivers.HookServer()
        with open(f"{c.folder}/password", "w", encoding="utf-8") as f:
            f.write(LOGIN[1] + "\n")
        os.chmod(f"{c.folder}/password", 0o600)
        c.options += ["--mail-server", f"smtp://127.0.0.1:{c.mail.port}", "--mail-login", LOGIN[0],
                      "--mail-password-file", f"{c.folder}/password", "--mail-ca", c.mail.cert]
        return c

    def prepare(c):
        c.world = World(c)
        c.world.mail, c.world.hook = c.mail, c.hook

    def arguments(c):
        c.world.quiet()
        return (c.world,)
    return case.together(make, prepare, arguments)


sys.exit(main())
