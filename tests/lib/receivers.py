"""receivers - a mail server and a web server on loopback that keep what they get; standard library only.

A receiver does as `mood` says: "take", "refuse" (421, 500), "hang" (says nothing until it is told otherwise).
Mail: STARTTLS with a certificate of our own, or TLS from the first byte; AUTH PLAIN when a login is given.  Webhooks: https with one.
"""
import base64
import contextlib
import email
import email.policy
import http.server
import json
import socketserver
import ssl
import subprocess
import threading

HANG_S = 600


def make_certificate(folder):
    """(certificate, key) for 127.0.0.1, its own authority."""
    cert, key = f"{folder}/receiver.crt", f"{folder}/receiver.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


def server_tls(cert, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class Receiver:
    """What both have: what they got, and how they feel."""

    def __init__(self):
        self.got, self.tries, self.mood = [], 0, "take"
        self.changed = threading.Condition()

    def feel(self, mood):
        with self.changed:
            self.mood = mood
            self.changed.notify_all()

    def try_mood(self):
        """Counts a try; what to do with it.  One that hangs waits for another mood."""
        with self.changed:
            self.tries += 1
            self.changed.wait_for(lambda: self.mood != "hang" or self.closing, HANG_S)
            return self.mood

    def keep(self, what):
        with self.changed:
            self.got.append(what)

    def clear(self):
        with self.changed:
            self.got, self.tries, self.mood = [], 0, "take"
            self.changed.notify_all()

    closing = False

    def close(self):
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def serve(self):
        self.server.daemon_threads = True
        self.server.block_on_close = False
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.port = self.server.server_address[1]


# ---- mail ----

class MailSession(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self):
        with contextlib.suppress(OSError):
            self.talk()

    def talk(self):
        of, self.secure, self.known = self.server.receiver, False, False
        sender, to = None, []
        if of.at_once:
            self.begin_tls(of)
        self.say("220 sink ESMTP")
        while line := self.rfile.readline(4096):
            word, _, rest = line.decode("latin-1").strip().partition(" ")
            word = word.upper()
            if word in ("EHLO", "HELO"):
                lines = ["sink", "8BITMIME", *([] if self.secure or not of.cert else ["STARTTLS"]), *(["AUTH PLAIN"] if of.login else [])]
                for i, text in enumerate(lines):
                    self.say(f"250{' ' if i == len(lines) - 1 else '-'}{text}")
            elif word == "STARTTLS" and of.cert:
                self.say("220 go on")
                self.begin_tls(of)
            elif word == "AUTH":
                self.authenticate(of, rest)
            elif word == "MAIL":
                mood = of.try_mood()
                if mood == "refuse" or (of.login and not self.known):
                    self.say("421 not now" if mood == "refuse" else "530 who are you")
                    return
                sender, to = rest, []
                self.say("250 ok")
            elif word == "RCPT":
                to.append(rest.partition("<")[2].partition(">")[0])
                self.say("250 ok")
            elif word == "DATA":
                self.say("354 go on")
                of.keep_mail(sender, to, self.read_data(), self.secure)
                self.say("250 taken")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok" if word in ("RSET", "NOOP") else "502 unknown")

    def begin_tls(self, of):
        self.request = server_tls(of.cert, of.key).wrap_socket(self.request, server_side=True)
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
        self.secure = True

    def authenticate(self, of, rest):
        how, _, text = rest.partition(" ")
        if how.upper() == "PLAIN" and not text:
            self.say("334 ")
            text = self.rfile.readline(4096).decode().strip()
        self.known = base64.b64decode(text).split(b"\0")[1:] == [part.encode() for part in of.login]
        self.say("235 welcome" if self.known else "535 no")

    def read_data(self):
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        return b"".join(lines)


class MailServer(Receiver):
    """got: {"from", "to": [...], "raw": bytes, "mail": EmailMessage, "tls": bool}"""

    def __init__(self, folder=None, login=None, at_once=False):
        super().__init__()
        self.login, self.at_once = login, at_once
        self.cert, self.key = make_certificate(folder) if folder else (None, None)
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailSession)
        self.server.receiver = self
        self.serve()

    def keep_mail(self, sender, to, raw, tls):
        self.keep({"from": sender, "to": to, "raw": raw, "mail": email.message_from_bytes(raw, policy=email.policy.default), "tls": tls})

    def subjects(self):
        return [one["mail"]["Subject"] for one in list(self.got)]


# ---- webhooks ----

class HookSession(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        of = self.server.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mood = of.try_mood()
        if mood == "take":
            of.keep({"path": self.path, "headers": dict(self.headers.items()), "raw": body, "event": json.loads(body)})
        with contextlib.suppress(OSError):
            self.send_response({"take": 200, "refuse": 500, "redirect": 302}.get(mood, 503))
            if mood == "redirect":
                self.send_header("Location", f"http://127.0.0.1:{of.port}/elsewhere")
            self.end_headers()

    def log_message(self, *_):
        pass


class HookServer(Receiver):
    """got: {"path", "headers", "raw": bytes, "event"}"""

    def __init__(self, folder=None):
        super().__init__()
        self.cert, key = make_certificate(folder) if folder else (None, None)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HookSession)
        if self.cert:
            self.server.socket = server_tls(self.cert, key).wrap_socket(self.server.socket, server_side=True)
        self.server.receiver = self
        self.serve()

    def url(self, path="/hook"):
        return f"{'https' if self.cert else 'http'}://127.0.0.1:{self.port}{path}"

    def subjects(self):
        return [one["event"]["data"]["summary"] for one in list(self.got)]
