"""registry - a registry of container images on loopback: what it is given, over HTTPS, and how often each part was asked for."""
import collections
import gzip
import hashlib
import http.server
import io
import json
import re
import ssl
import subprocess
import tarfile
import threading

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<what>[^/]+)")


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    """Of {name: text}, with the folders that every image has."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as t:
        for name in ("proc", "sys", "dev", "etc", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            t.addfile(folder)
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(data.getvalue(), mtime=0)


class Registry:
    def __init__(self, folder):
        self.parts, self.tags, self.asked = {}, {}, collections.Counter()
        self.ca = f"{folder}/registry.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/registry.key",
                        "-out", self.ca], check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.ca, f"{folder}/registry.key")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"registry": self}))
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.at = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def keep(self, kind, data):
        self.parts[digest_of(data)] = (kind, data)
        return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}

    def put(self, name, tag, layers):
        """An image of these layers; what to name it."""
        config = {"architecture": "amd64", "os": "linux",
                  "rootfs": {"type": "layers", "diff_ids": [digest_of(gzip.decompress(data)) for data in layers]}}
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": self.keep("application/vnd.oci.image.config.v1+json", json.dumps(config).encode()),
                    "layers": [self.keep("application/vnd.oci.image.layer.v1.tar+gzip", data) for data in layers]}
        self.tags[name, tag] = self.keep(MANIFEST, json.dumps(manifest).encode())["digest"]
        return f"docker://{self.at}/{name}:{tag}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry = None

    def log_message(self, *_):
        pass

    def answer(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status == 200 and data:
            self.send_header("Docker-Content-Digest", digest_of(data))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def do_GET(self):
        r, found = self.registry, PATH.fullmatch(self.path)
        if self.path == "/v2/":
            self.answer(200, "application/json", b"{}")
            return
        what = found and r.tags.get((found["name"], found["what"]), found["what"])
        if what not in r.parts:
            self.answer(404, "application/json", b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
            return
        r.asked[what] += self.command == "GET"
        self.answer(200, *r.parts[what])

    do_HEAD = do_GET
