"""claims - numbers of this machine that one test has to itself: ports, ranges of addresses.

A port that the kernel gives out (bind to 0, close) is anybody's again at once: the next connection of any program may
get it before the daemon that it was meant for binds it.  Ports here lie outside of net.ipv4.ip_local_port_range, where
the kernel takes none by itself.  What one process has claimed no other gets while it lives: each claim is an abstract
socket, which is bound once in a network namespace, as ports are, and goes with its process, however that ends.

Where a daemon can be told to listen on port 0 and says which it got, that is better still.
"""
import errno
import os
import socket

LOWEST, HIGHEST = 10000, 65535  # below are the ports that programs are known by
held = {}  # sockets that stand for claims, by name; they are closed with the process


def claimed(name):
    """True when it is ours now."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(f"\0nightshift-test-{name}")
    except OSError as why:
        lock.close()
        if why.errno != errno.EADDRINUSE:
            raise
        return False
    held[name] = lock
    return True


def release(name):
    lock = held.pop(name, None)
    if lock:
        lock.close()


def ephemeral():
    """The ports that the kernel gives out by itself, first and last."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first, last = f.read().split()
    return int(first), int(last)


def is_free(port):
    """Nobody listens on it, on any address; what is left of old connections does not count, as for the daemon."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("", port))
            s.listen()
        except OSError:
            return False
    return True


def turned(values):
    """All of them; each process begins elsewhere, so that few ask for what another has."""
    at = os.getpid() * 7919 % len(values)
    return [*values[at:], *values[:at]]


def port():
    """A TCP port that is ours until we end."""
    first, last = ephemeral()
    outside = [p for p in range(LOWEST, HIGHEST + 1) if not first <= p <= last]
    if not outside:  # all are the kernel's: then the claim alone has to do
        outside = list(range(LOWEST, HIGHEST + 1))
    for number in turned(outside):
        if claimed(f"port-{number}"):
            if is_free(number):
                return number
            release(f"port-{number}")
    raise AssertionError("no port is free")


def second_octet():
    """N of 10.N.0.0/16, in which nobody else makes networks until we end; 10.200 and above are an installed one's and
    the rig's."""
    with open("/proc/net/route", encoding="ascii") as f:
        used = {int(line.split()[1][4:6], 16) for line in f.readlines()[1:] if line.split()[1].endswith("0A")}
    for number in turned(range(100, 200)):
        if number not in used and claimed(f"net-{number}"):
            return number
    raise AssertionError("no range of addresses is free")
