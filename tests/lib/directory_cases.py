"""directory_cases - a directory of accounts that hangs or is away, below a real daemon with its keeper.

The directory is a source of accounts of our own (tests/fakes/nss.c), which only this daemon sees: in a namespace of mounts
of its own nsswitch.conf names it.  All cases share one cluster.
"""
import ctypes
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

ANA, NOBODY = 60005, 60006
SMALL = {"cpus": 1, "mem": "64Mi"}
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
case = Cases()


class Directory:
    """How it is, and what makes a daemon see it."""

    def __init__(self, folder):
        self.file, self.switch = f"{folder}/directory", f"{folder}/nsswitch.conf"
        with open(self.switch, "w", encoding="utf-8") as f:
            f.write("passwd: files nsfake\ngroup: files\n")
        self.set("ana 60005")

    def set(self, word):
        with open(f"{self.file}.new", "w", encoding="utf-8") as f:
            f.write(word)
        os.rename(f"{self.file}.new", self.file)

    def enter(self):
        """In the child that becomes the daemon."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) or \
           libc.mount(self.switch.encode(), b"/etc/nsswitch.conf", None, MS_BIND, None):
            raise OSError(ctypes.get_errno(), "no view of its own")


def make():
    c = cl.Cluster()
    c.directory = Directory(c.folder)
    c.env |= {"NIGHTSHIFT_FAKE_NSS": c.directory.file, "LD_LIBRARY_PATH": f"{cl.BUILD}/tests/fakes"}
    plain = c.start
    c.start = lambda failpoint=None, before=c.directory.enter: plain(failpoint, before)
    return c


def restart(c):
    """The next daemon knows nobody yet, and its keeper is a new one: both see the directory."""
    c.kill_daemon()
    c.end_keeper()
    c.start()
    c.wait_ready()


def member(c):
    c.ask("PUT", "/v1/tenants/lab", {})
    c.ask("PUT", "/v1/tenants/lab/members/ana", {"role": "member"})


def status(c, uid):
    """A client in a process of its own, because it may have to wait."""
    return subprocess.Popen([f"{cl.BUILD}/nightshift", "status", "-o", "json"], user=uid, group=uid, extra_groups=[],
                            env={"NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock", "HOME": "/nonexistent"},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def looks(c):
    """Copies of the daemon that look somebody up."""
    with open(f"/proc/{c.daemon.pid}/task/{c.daemon.pid}/children", encoding="utf-8") as f:
        return [pid for pid in map(int, f.read().split()) if cl.proc_file(pid, "comm") == cl.proc_file(c.daemon.pid, "comm")]


def said_too_early(client):
    assert client.poll() is None, said(client)


def said(client):
    out, err = client.communicate(timeout=cl.PATIENCE_S)
    return client.returncode, out, err


@case("who is in the directory is known by name, and who is not by number")
def _(c):
    same(c.ask("GET", "/v1/whoami", uid=ANA)["user"], "ana")
    same(c.ask("GET", "/v1/whoami", uid=NOBODY)["user"], f"uid-{NOBODY}")


@case("a directory that hangs holds up whoever is looked up, and nobody else")
def _(c):
    restart(c)
    c.directory.set("hangs")
    client = status(c, ANA)
    wait_for("the look-up", lambda: looks(c) or said_too_early(client))
    same(c.ask("GET", "/v1/whoami")["user"], "root")
    number = c.submit(["true"], resources=SMALL)
    same(c.wait_end(number)["state"], "succeeded")
    said_too_early(client)
    c.directory.set("ana 60005")
    code, out, err = said(client)
    assert code == 0 and '"ana"' in out, f"{code} {out} {err}"
    wait_for("no look-up to be left", lambda: not looks(c))


@case("while the directory is away nobody becomes a new person")
def _(c):
    restart(c)
    c.directory.set("away")
    status, answer = c.call("GET", "/v1/whoami", uid=ANA)
    same((status, answer["code"]), (503, "unavailable"))
    assert "accounts cannot be looked up" in answer["detail"], answer
    same(c.ask("GET", "/v1/whoami")["user"], "root")
    c.directory.set("ana 60005")
    wait_for("the directory to be asked again", lambda: c.call("GET", "/v1/whoami", uid=ANA)[0] == 200)
    same(c.ask("GET", "/v1/whoami", uid=ANA)["user"], "ana")


@case("a job that was accepted waits for the directory, and runs as who submitted it")
def _(c):
    number = c.submit(["sh", "-c", "id -u"], uid=ANA, resources=SMALL, held=True)
    c.directory.set("away")
    restart(c)
    c.ask("POST", f"/v1/jobs/{number}/release", {})
    def waits():
        told = c.job(number)["message"]
        return "looked up" in told and told.endswith("; trying again")  # no count: it is no failed try
    wait_for("its start to be tried", waits)
    c.directory.set("ana 60005")
    same(c.wait_end(number)["state"], "succeeded")
    same(c.text_of(number), f"{ANA}\n")


if __name__ == "__main__":
    sys.exit(case.together(make, prepare=member))
