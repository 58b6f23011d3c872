"""parts - the programs that a rig is made of: started, waited for, signalled, and never left behind."""
import http.client
import os
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib"))
import claims  # noqa: E402
from patience import PATIENCE_S  # noqa: E402

MARK = "NIGHTSHIFT_RIG"  # in the environment of whatever a rig starts
# Dies with the thread that started it: start a rig in one that lives as long as the rig.
UNTIL_WE_DIE = ["setpriv", "--pdeathsig", "KILL", "--"]


class Refused(Exception):
    """The API server said no: .status is 404 and the like, .body what it said."""

    def __init__(self, method, path, status, body):
        self.status, self.body = status, body
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{method} {path}: {status} {message}")


class Failed(Exception):
    """Something did not come about; says what and where to look."""


def wait(fn, what, seconds=PATIENCE_S, alive=None):
    """fn's value, once it is true; an answer that is not there yet or a refusal means not yet."""
    until = time.monotonic() + seconds
    while True:
        why, asked = "", time.monotonic()
        try:
            value = fn()
            if value:
                return value
        except (OSError, http.client.HTTPException, Refused) as e:
            why = f": {e}"
        if alive:
            alive()
        if time.monotonic() > until:
            raise Failed(f"waited {seconds} s and still not: {what}{why}")
        # Asking is work too, and must not be most of what a busy machine does.
        time.sleep(max(0.02, 2 * (time.monotonic() - asked)))


def free_ports(count):
    """Ports that nobody has and nobody gets while we live, all different."""
    return [claims.port() for _ in range(count)]


def pids_of(folder):
    """Processes that a rig in this folder started, by the mark in their environment."""
    mark, found = f"{MARK}={folder}".encode(), []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            pass  # it has ended
    return found


class Part:
    """One program of the rig; argv may be a function that makes it at each start."""

    def __init__(self, name, argv, ready, folder):
        self.name, self.argv, self.ready = name, argv, ready
        self.log = f"{folder}/{name}.log"
        self.environment = {**os.environ, MARK: folder}
        self.process, self.started = None, 0

    def start(self):
        """Returns at once; wait_ready() waits for it."""
        self.started = time.time()
        argv = UNTIL_WE_DIE + (self.argv() if callable(self.argv) else self.argv)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True, env=self.environment)

    def wait_ready(self):
        wait(self.ready, f"{self.name} is ready; see {self.log}", alive=self.check)

    def check(self):
        if self.process and self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")

    def tail(self, lines=12):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-lines:])

    def send(self, number):
        os.killpg(self.process.pid, number)

    def pause(self):
        """It does nothing any more.  A thread that waits for the disk stops when that is over, and the others after it."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self, number=signal.SIGKILL):
        if not self.process:
            return
        if self.process.poll() is None:
            self.send(number)
            self.send(signal.SIGCONT)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.send(signal.SIGKILL)
                self.process.wait(PATIENCE_S)
        self.process = None
