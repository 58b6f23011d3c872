"""kube_proxy - between the daemon and the API server, to do it harm: 429, 410 inside a watch, cut connections.

  with Proxy(rig, kubeconfig) as proxy:
      KubeCluster(rig, kubeconfig=proxy.kubeconfig)
      proxy.storm(10)       429 to three of four requests for so many seconds
      proxy.cut(expired=True)   every watch ends now, with a 410 in its stream or without a word
"""
import collections
import http.client
import http.server
import json
import random
import ssl
import threading
import time

EXPIRED = json.dumps({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                                  "reason": "Expired", "code": 410,
                                                  "message": "too old resource version"}}).encode() + b"\n"
BUSY = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
                   "reason": "TooManyRequests", "message": "the rig is tired"}).encode()


class Proxy:
    def __init__(self, rig, kubeconfig, seed=1):
        self.rig, self.random = rig, random.Random(seed)
        self.storm_until, self.cuts, self.expired = 0, 0, False
        self.counts = collections.Counter()
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
        self.server.shutdown()

    def storm(self, seconds):
        self.storm_until = time.monotonic() + seconds

    def cut(self, expired=False):
        self.expired = expired
        self.cuts += 1

    def pass_on(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        watch = "watch=" in handler.path
        storm = time.monotonic() < self.storm_until
        self.counts["storm" if storm else "calm"] += 1
        if storm and self.random.random() < 0.75:
            self.counts["refused"] += 1
            answer(handler, 429, BUSY, {"Retry-After": "1"})
            return
        cuts = self.cuts
        up = http.client.HTTPSConnection(self.rig.address, self.rig.ports["apiserver"], timeout=1 if watch else 60,
                                         context=self.rig.context)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "connection")}
            up.request(handler.command, handler.path, body, headers)
            reply = up.getresponse()
            if watch:
                self.stream(handler, reply, cuts)
            else:
                answer(handler, reply.status, reply.read(), {
                    k: v for k, v in reply.headers.items() if k.lower() in ("content-type", "retry-after")})
        except (OSError, http.client.HTTPException):
            handler.close_connection = True
        finally:
            up.close()

    def stream(self, handler, reply, cuts):
        """Line by line; looks once a second whether it is to be cut."""
        handler.send_response(reply.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        left = b""
        while True:
            if self.cuts != cuts:
                if self.expired:
                    handler.wfile.write(EXPIRED)
                return
            try:
                data = reply.read1(65536)
            except TimeoutError:
                reply.fp.raw._timeout_occurred = False  # a socket's file is not read again after one
                continue
            if not data:
                handler.wfile.write(left)
                return
            whole, _, left = (left + data).rpartition(b"\n")
            if whole:
                handler.wfile.write(whole + b"\n")


def answer(handler, status, body, headers):
    handler.send_response(status)
    for key, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(key, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
