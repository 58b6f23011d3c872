"""fake_plugin - a device plugin for a real kubelet: GPUs with the names that it is given, and nothing behind them.

usage: fake_plugin.py FOLDER ID...      FOLDER: the kubelet's device-plugins
"""
import concurrent.futures
import os
import sys
import threading

import grpc

from fake_kubelet import field
from patience import PATIENCE_S

NAME, RESOURCE = "fake-gpu.sock", "nvidia.com/gpu"


def containers(request):
    """How many containers an AllocateRequest has: its fields 1, one after the other."""
    n, at = 0, 0
    while at < len(request):
        assert request[at] == 0x0A and request[at + 1] < 128, request
        n, at = n + 1, at + 2 + request[at + 1]
    return n


class Plugin(grpc.GenericRpcHandler):
    def __init__(self, ids):
        self.ids = ids

    def watch(self, _request, _context):
        yield b"".join(field(1, field(1, i) + field(2, "Healthy")) for i in self.ids)
        threading.Event().wait()

    def service(self, call):
        method = call.method.removeprefix("/v1beta1.DevicePlugin/")
        if method == "ListAndWatch":
            return grpc.unary_stream_rpc_method_handler(self.watch)
        answer = {"GetDevicePluginOptions": lambda _: b"", "Allocate": lambda r: field(1, b"") * containers(r),
                  "PreStartContainer": lambda _: b""}.get(method)
        return answer and grpc.unary_unary_rpc_method_handler(lambda request, _: answer(request))


def main(folder, *ids):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[Plugin(ids)])
    server.add_insecure_port(f"unix:{folder}/{NAME}")
    server.start()
    with grpc.insecure_channel(f"unix:{folder}/kubelet.sock", options=[("grpc.default_authority", "localhost")]) as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(field(1, "v1beta1") + field(2, NAME) + field(3, RESOURCE), timeout=PATIENCE_S, wait_for_ready=True)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
