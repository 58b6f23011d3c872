"""fake_kubelet - a real gRPC server on a socket, which answers as the kubelet's pod-resources API (v1) does.

usage: fake_kubelet.py SOCKET FILE

FILE is JSON and read for every answer: {"pods": [{"namespace", "name", "containers": [{"name", "devices": {RESOURCE: [ID]}}]}],
"allocatable": {RESOURCE: [ID]}, "says": "hang" | "refuse" | "garbage"}.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import threading

from patience import PATIENCE_S

PREFIX = "/v1.PodResourcesLister/"


def python_with_grpc():
    """One that has it, or None: Debian's package is for Debian's Python."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import grpc"], check=False, capture_output=True).returncode == 0:
            return python
    return None


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def devices(number, by_resource):
    topology = field(3, field(1, b"\x08\x00"))
    return b"".join(field(number, field(1, resource) + b"".join(field(2, i) for i in ids) + topology)
                    for resource, ids in by_resource.items())


def list_answer(world):
    out = b""
    for pod in world["pods"]:
        containers = b"".join(field(3, field(1, c["name"]) + devices(2, c.get("devices", {})) + b"\x18\x03")
                              for c in pod["containers"])
        out += field(1, field(1, pod["name"]) + field(2, pod["namespace"]) + containers)
    return out


def serve(path, file):
    import grpc

    def answer(method, context):
        with open(file, encoding="utf-8") as f:
            world = json.load(f)
        says = world.get("says")
        if says == "hang":
            threading.Event().wait()
        if says == "refuse":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        if says == "garbage":
            return b"\x0a\xff\xff\xff\xff"
        return list_answer(world) if method == "List" else devices(1, world.get("allocatable", {}))

    class Handler(grpc.GenericRpcHandler):
        def service(self, call):
            method = call.method.removeprefix(PREFIX)
            if method not in ("List", "GetAllocatableResources"):
                return None
            return grpc.unary_unary_rpc_method_handler(lambda _, context: answer(method, context))

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[Handler()])
    server.add_insecure_port(f"unix:{path}")
    server.start()
    print("ready", flush=True)
    sys.stdin.read()  # until whoever started it is gone
    os._exit(0)


class Kubelet:
    """One that runs beside a test."""

    def __init__(self, folder, python):
        self.socket, self.file = f"{folder}/kubelet.sock", f"{folder}/kubelet.json"
        self.says()
        self.process = subprocess.Popen([python, os.path.abspath(__file__), self.socket, self.file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def says(self, pods=(), allocatable=None, says=None):
        """pods: (namespace, pod, container, device ids)"""
        world = {"says": says, "allocatable": {"nvidia.com/gpu": allocatable or []}, "pods": [
            {"namespace": space, "name": pod, "containers": [{"name": name, "devices": {"nvidia.com/gpu": list(ids)} if ids else {}}]}
            for space, pod, name, ids in pods]}
        with open(f"{self.file}.new", "w", encoding="utf-8") as f:
            json.dump(world, f)
        os.rename(f"{self.file}.new", self.file)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)


if __name__ == "__main__":
    serve(*sys.argv[1:])
