"""quiet_net - a program in a network of its own, from which some ports of this machine's loopback are reached.

Chromium gives up what it is loading whenever an interface of the machine comes or goes, and here they do: every network of
a job is one.  In a network of its own it sees none of that; nor does it reach anything else.  Needs root.

  popen(argv, ports, folder, **more)     like subprocess.Popen
"""
import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
CHUNK = 1 << 16


async def pump(reader, writer):
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


def relay(connect):
    """What to do with a connection: pass on what comes, both ways, to the one that connect() makes."""
    async def on(reader, writer):
        try:
            there, back = await connect()
        except OSError:
            writer.close()  # nobody listens: whoever asks is to see a connection that ends
            return
        await asyncio.gather(pump(reader, back), pump(there, writer))
        for w in (writer, back):
            w.close()
    return on


def sockets(folder, ports):
    return {port: f"{folder}/relay-{port}" for port in ports}


def outside(folder, ports):
    """A thread of ours that leads from sockets in the folder to the ports."""
    ready = threading.Event()

    async def serve():
        for port, path in sockets(folder, ports).items():
            await asyncio.start_unix_server(relay(lambda p=port: asyncio.open_connection("127.0.0.1", p)), path)
        ready.set()
        await asyncio.Event().wait()
    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    assert ready.wait(60), "the relay did not start"


def inside(folder, ports, argv):
    """In the new network: a child leads from the ports to those sockets; we become the program."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    told, tell = os.pipe()

    async def serve():
        for port, path in sockets(folder, ports).items():
            await asyncio.start_server(relay(lambda p=path: asyncio.open_unix_connection(p)), "127.0.0.1", port)
        os.write(tell, b"x")
        os.close(tell)
        await asyncio.Event().wait()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(told)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        asyncio.run(serve())
    os.close(tell)
    assert os.read(told, 1) == b"x", "the relay inside did not start"
    os.close(told)
    os.execvp(argv[0], argv)


def popen(argv, ports, folder, **more):
    outside(folder, ports)
    return subprocess.Popen(["unshare", "--net", sys.executable, os.path.abspath(__file__), folder,
                             ",".join(map(str, ports)), *argv], **more)


if __name__ == "__main__":
    inside(sys.argv[1], [int(p) for p in sys.argv[2].split(",")], sys.argv[3:])
