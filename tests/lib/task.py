"""task - runs the real nightshift-init as the keeper would, and speaks the frames of wire/stream.h.

A Task is one supervisor with its files in a folder of its own.  Waiting is for a condition and has a
bound, never for a time to pass.
"""
import fcntl
import os
import shutil
import signal
import socket
import struct
import tempfile

from patience import PATIENCE_S, wait_for

WATCH, ATTACH, EXEC, STDIN, STDOUT, STDERR, RESIZE, SIGNAL, STARTED, EXIT, ERROR, LOGGED = range(1, 13)
INIT = os.path.join(os.environ["NIGHTSHIFT_BUILD"], "nightshift-init")
PID_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--"]


def frame(kind, payload=b""):
    return bytes([kind]) + len(payload).to_bytes(3, "big") + payload


def exec_frame(argv, env=(), cwd="", tty=False, rows=0, cols=0):
    head = struct.pack(">BHHHH", tty, rows, cols, len(argv), len(env))
    return frame(EXEC, head + b"".join(w.encode() + b"\0" for w in (cwd, *argv, *env)))


def resize_frame(rows, cols):
    return frame(RESIZE, struct.pack(">HH", rows, cols))


class Client:
    """One connection.  `out` and `err` grow as frames are read; `exit` is (code, signal)."""

    def __init__(self, sock, first):
        self.sock = sock
        self.pending = b""
        self.out = self.err = b""
        self.started = self.exit = self.error = self.place = None
        self.over = False
        self.sock.sendall(first)

    def send(self, data):
        self.sock.sendall(data)

    def type(self, text):
        self.send(frame(STDIN, text))

    def read_frame(self):
        """False at the end of the connection."""
        while len(self.pending) < 4 or len(self.pending) < 4 + int.from_bytes(self.pending[1:4], "big"):
            piece = self.sock.recv(1 << 16)
            if not piece:
                assert not self.pending, "the connection ended within a frame"
                self.over = True
                return False
            self.pending += piece
        size = 4 + int.from_bytes(self.pending[1:4], "big")
        kind, payload, self.pending = self.pending[0], self.pending[4:size], self.pending[size:]
        if kind == STDOUT:
            self.out += payload
        elif kind == STDERR:
            self.err += payload
        elif kind == STARTED:
            self.started = int.from_bytes(payload, "big")
        elif kind == LOGGED:
            self.place = struct.unpack(">IQQ", payload)
        elif kind == EXIT:
            self.exit = (payload[1], 0) if payload[0] == 0 else (0, payload[1])
        elif kind == ERROR:
            self.error = payload.decode()
        else:
            raise AssertionError(f"a frame of type {kind} from the supervisor")
        return True

    def read_until(self, what, condition):
        while not condition(self):
            assert self.read_frame(), f"the connection ended before: {what}; out {self.out[-200:]!r}"
        return self

    def ready(self):
        return self.read_until("started", lambda c: c.started is not None)

    def see(self, text):
        return self.read_until(f"see {text!r}", lambda c: text in c.out)

    def read_all(self):
        while self.read_frame():
            pass
        return self

    def close(self):
        self.sock.close()


class Task:
    alive = []  # so that a case that fails leaves nothing behind

    def __init__(self, argv, options=(), wrap=(), uid=None, log_dir=None, env=None):
        self.dir = tempfile.mkdtemp(dir=".")
        self.log_dir = log_dir or self.dir
        self.sock = os.path.join(self.dir, "ctl.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.sock)
        listener.listen(64)
        append = os.O_RDWR | os.O_APPEND | os.O_CREAT
        status = os.open(os.path.join(self.dir, "status"), append, 0o600)
        fcntl.flock(status, fcntl.LOCK_EX)
        logs = [os.open(os.path.join(self.log_dir, f"log.{i}"), append, 0o600) for i in range(4)]
        fds = [listener.fileno(), status, *logs]
        init = INIT
        if uid is not None:  # who may not be able to reach the build folder, as one below /root
            os.chmod(self.dir, 0o755)
            init = shutil.copy(INIT, self.dir)
        self.pid = os.fork()
        if self.pid == 0:
            self._become([*wrap, init, *options, "--", *argv], fds, uid, env)
        for fd in [status, *logs]:
            os.close(fd)
        listener.close()
        self.code = None
        self.wrapped = bool(wrap)
        Task.alive.append(self)

    def _become(self, argv, fds, uid, env):
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            text = os.open(os.path.join(self.dir, "stderr"), os.O_WRONLY | os.O_CREAT, 0o600)
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 200) for fd in [null, text, text, *fds]]
            for to, fd in enumerate(high):
                os.dup2(fd, to, inheritable=True)
            os.closerange(9, 1024)
            if uid is not None:
                os.setgid(uid)
                os.setuid(uid)
            os.execvpe(argv[0], argv, env or os.environ)
        finally:
            os._exit(99)

    def connect(self, first):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(PATIENCE_S)
        sock.connect(self.sock)
        return Client(sock, first)

    def attach(self):
        return self.connect(frame(ATTACH)).ready()

    def exec(self, argv, **how):
        return self.connect(exec_frame(argv, **how))

    def init_pid(self):
        """The supervisor's own number, also when unshare(1) stands before it."""
        if not self.wrapped:
            return self.pid
        path = f"/proc/{self.pid}/task/{self.pid}/children"

        def child():
            with open(path, encoding="ascii") as f:
                pids = f.read().split()
            return int(pids[0]) if pids else 0
        pid = wait_for("the supervisor's process", child)
        wait_for("the supervisor's program", lambda: comm(pid) == "nightshift-init")
        return pid

    def wait(self):
        """The exit code as a shell would say it."""
        def ended():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return pid
        if self.code is None:
            wait_for("the supervisor's end", ended)
        return self.code if self.code >= 0 else 128 - self.code

    def status(self):
        with open(os.path.join(self.dir, "status"), encoding="utf-8") as f:
            return [line.split(" ") for line in f.read().splitlines()]

    def locked(self):
        with open(os.path.join(self.dir, "status"), "rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def segments(self):
        """[(number, [(stream, full, text)])], oldest first."""
        found = []
        for i in range(4):
            with open(os.path.join(self.log_dir, f"log.{i}"), "rb") as f:
                data = f.read()
            if self.code is None:  # it may be writing just now
                data = data[:data.rfind(b"\n") + 1]
            if not data:
                continue
            assert data.endswith(b"\n"), "a segment ends within a record"
            records = []
            for line in data.split(b"\n")[:-1]:
                _, stream, kind, text = line.split(b" ", 3)
                assert kind in (b"F", b"P")
                records.append((stream.decode(), kind == b"F", text))
            assert records[0][2].startswith(b"segment "), "a segment begins with its number"
            found.append((int(records[0][2].split()[1]), records[1:]))
        return sorted(found)

    def log(self, stream):
        return b"".join(text + (b"\n" if full else b"")
                        for _, records in self.segments()
                        for name, full, text in records if name == stream)

    def kill(self, signo=signal.SIGTERM):
        os.kill(self.init_pid(), signo)

    def end(self):
        try:
            self.connect(frame(SIGNAL, bytes([signal.SIGKILL]))).close()
        except OSError:
            pass  # it has ended, or is about to
        self.wait()

    @classmethod
    def end_all(cls):
        tasks, Task.alive = Task.alive, []
        for task in tasks:
            if task.code is None:
                task.end()


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def running(mark):
    """Processes (not zombies) with this word on their command line."""
    pids = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except (NotADirectoryError, FileNotFoundError, ProcessLookupError):
            continue
        if name.isdigit() and mark.encode() in words:
            pids.append(int(name))
    return pids
