"""kube_proxy - between the daemon and the API server, to do it harm: 429, 410 inside a watch, cut connections, no answer.

  with Proxy(rig, kubeconfig) as proxy:
      KubeCluster(rig, kubeconfig=proxy.kubeconfig)
      proxy.storm(60)           429 to three of four requests until so many were refused; proxy.calm() waits for that
      proxy.cut(expired=True)   every watch ends now, with a 410 in its stream or without a word
      proxy.hold("/configmaps") writes there are not answered and not passed on until proxy.release()

It counts what it sees by request, not by time; .hasty has what came again sooner than the refusal had said.
"""
import contextlib
import hashlib
import http.client
import http.server
import json
import random
import ssl
import threading
import time

import cluster as cl

EXPIRED = json.dumps({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                                  "reason": "Expired", "code": 410,
                                                  "message": "too old resource version"}}).encode() + b"\n"
BUSY = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
                   "reason": "TooManyRequests", "message": "the rig is tired"}).encode()
AGAIN_S = 1  # what a refusal says
CLOCK_S = 0.01  # the daemon's clock has milliseconds


class Proxy:
    def __init__(self, rig, kubeconfig, seed=1):
        self.rig, self.random, self.lock = rig, random.Random(seed), threading.Lock()
        self.requests, self.to_refuse, self.refused = 0, 0, 0
        self.not_before, self.hasty = {}, []
        self.streams, self.streams_begun, self.expired = set(), 0, False
        self.held_part, self.free, self.held = None, threading.Event(), set()
        self.writes = []  # (method, path, what its body is called, a digest of the body), as they were passed on
        with open(kubeconfig, encoding="utf-8") as f:
            config = json.load(f)
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.pass_on
                raise AttributeError(name)

            def pass_on(self):
                proxy.pass_on(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        certificate, key = rig.pki.pair("apiserver")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake is in the request's thread: one that is slow holds nobody up.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.kubeconfig = f"{kubeconfig}-proxy"
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            json.dump(config, f)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.release()
        self.server.shutdown()

    # ---- harm ----

    def storm(self, refusals):
        with self.lock:
            self.to_refuse = refusals

    def calm(self):
        """Returns when the storm is over."""
        cl.wait_for("the end of the storm", lambda: self.to_refuse == 0)

    def cut(self, expired=False):
        """Returns when the watches of nodes and of pods, without which the daemon cannot be, have begun again."""
        with self.lock:
            self.expired = expired
            streams, begun = list(self.streams), self.streams_begun
        for up in streams:
            with contextlib.suppress(OSError, AttributeError):
                up.sock.shutdown(2)
        cl.wait_for("other watches", lambda: self.streams_begun >= begun + 2)

    def hold(self, part):
        self.free.clear()
        self.held_part = part

    def release(self):
        self.held_part = None
        self.free.set()

    # ---- what passes ----

    def pass_on(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else b""
        seen = (handler.command, handler.path, name_in(body), hashlib.sha256(body).hexdigest())
        if self.refuses(seen):
            answer(handler, 429, BUSY, {"Retry-After": str(AGAIN_S)})
            return
        if self.held_part and handler.command != "GET" and self.held_part in handler.path:
            self.held.add(seen[1:3])
            self.free.wait()
        if handler.command != "GET":
            self.writes.append(seen)
        watch = "watch=" in handler.path
        up = http.client.HTTPSConnection(self.rig.address, self.rig.ports["apiserver"], timeout=cl.PATIENCE_S,
                                         context=self.rig.context)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "connection")}
            up.request(handler.command, handler.path, body or None, headers)
            reply = up.getresponse()
            if watch and reply.status == 200:
                self.stream(handler, up, reply)
            else:
                answer(handler, reply.status, reply.read(), {
                    k: v for k, v in reply.headers.items() if k.lower() in ("content-type", "retry-after")})
        except (OSError, http.client.HTTPException, ValueError, AttributeError):  # the last two of a socket that is shut
            handler.close_connection = True
        finally:
            up.close()

    def refuses(self, seen):
        """The same request may come again when the refusal has said, and not before."""
        now = time.monotonic()
        with self.lock:
            self.requests += 1
            if now < self.not_before.pop(seen, 0) - CLOCK_S:
                self.hasty.append(seen[:3])
            if self.to_refuse == 0 or self.random.random() >= 0.75:
                return False
            self.to_refuse -= 1
            self.refused += 1
            self.not_before[seen] = now + AGAIN_S
            return True

    def stream(self, handler, up, reply):
        """Line by line, until either side or cut() ends it."""
        handler.send_response(reply.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        with self.lock:
            self.streams.add(up)
            self.streams_begun += 1
        left = b""
        try:
            while data := reply.read1(65536):
                whole, _, left = (left + data).rpartition(b"\n")
                if whole:
                    handler.wfile.write(whole + b"\n")
        finally:
            with self.lock:
                self.streams.discard(up)
            if self.expired:
                with contextlib.suppress(OSError):
                    handler.wfile.write(EXPIRED)


def name_in(body):
    """What the object of a request is called."""
    try:
        return json.loads(body)["metadata"]["name"]
    except (ValueError, KeyError, TypeError):
        return ""


def answer(handler, status, body, headers):
    handler.send_response(status)
    for key, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(key, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
