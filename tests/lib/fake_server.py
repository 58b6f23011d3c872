#!/usr/bin/env python3
"""A small stand-in for nightshiftd, for the tests of the command line: the REST API of docs on a unix socket.

usage: fake_server.py SOCKET LOG [CERTIFICATE]

It runs the jobs it is given, as plain processes, and keeps every request in LOG, one JSON object a line.
What a job is called says what becomes of it: "stuck…" waits for ever, "late…" until POST /fake/start/ID, "lost…"
loses its first log connection.  It listens on TCP 127.0.0.1 as well, and with a CERTIFICATE (a PEM file with its key)
on TLS, and wants the token nst_right there.  Prints the two ports (0: none) and "ready" when it listens.
"""
import fcntl
import json
import os
import pty
import queue
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlparse

ATTACH, EXEC, STDIN, STDOUT, STDERR, RESIZE, SIGNAL, STARTED, EXIT, LOGGED = 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
ENDED = ("succeeded", "failed", "cancelled")


def frame(kind, payload=b""):
    return bytes([kind]) + len(payload).to_bytes(3, "big") + payload


def now_ms():
    return int(time.time() * 1000)


class Process:
    """A command with its output as frames; listeners get what comes from now on."""

    def __init__(self, argv, env, cwd, tty, size=(24, 80), feed=False):
        self.lock = threading.Condition()
        self.frames, self.listeners, self.ended = [], [], None
        self.master = None
        if tty:
            self.master, slave = pty.openpty()
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            self.child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
                                          start_new_session=True,
                                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(slave)
            sources = [(STDOUT, self.master)]
        else:
            self.child = subprocess.Popen(argv, env=env, cwd=cwd, start_new_session=True,
                                          stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            sources = [(STDOUT, self.child.stdout.fileno()), (STDERR, self.child.stderr.fileno())]
        self.pumps = [threading.Thread(target=self.pump, args=s, daemon=True) for s in sources]
        for t in self.pumps:
            t.start()
        threading.Thread(target=self.reap, daemon=True).start()

    def pump(self, kind, fd):
        while True:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if not data:
                return
            self.emit(frame(kind, data))

    def emit(self, f):
        with self.lock:
            self.frames.append(f)
            for out in self.listeners:
                out.put(f)
            self.lock.notify_all()

    def reap(self):
        code = self.child.wait()
        for t in self.pumps:
            t.join(20)  # what it left in the background may hold them for ever
        with self.lock:
            self.ended = code
            self.emit(frame(EXIT, bytes([1, -code] if code < 0 else [0, code])))

    def write(self, data):
        fd = self.master if self.master is not None else self.child.stdin.fileno()
        try:
            if data:
                os.write(fd, data)
            elif self.master is None:
                self.child.stdin.close()
        except (OSError, ValueError):
            pass

    def resize(self, rows, cols):
        if self.master is not None:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def kill(self, signo=signal.SIGTERM):
        try:
            os.killpg(self.child.pid, signo)
        except ProcessLookupError:
            pass


class Cluster:
    def __init__(self, log):
        self.lock = threading.Condition(threading.RLock())
        self.jobs, self.processes, self.tokens, self.events = {}, {}, [{"name": "laptop", "user": "ana"}], []
        self.answers, self.streams = {}, {}
        self.drained = "up"
        self.next = 17
        self.log = open(log, "a", encoding="utf-8")

    def note(self, **what):
        with self.lock:
            self.log.write(json.dumps(what) + "\n")
            self.log.flush()

    def event(self, job, was):
        with self.lock:
            self.events.append({"number": len(self.events) + 1, "t_ms": now_ms(), "job": job["id"], "tenant": job["tenant"],
                                "user": job["user"], "name": job["name"], "state": job["state"], "from": was})
            self.lock.notify_all()

    def check(self, spec):
        resources = spec.get("resources") or {}
        if not spec.get("command"):
            raise Problem(400, "invalid", "field 'command' is missing: what shall it run?", "give a list", "command")
        if (resources.get("gpus") or 0) > 8:
            raise Problem(400, "invalid", f"field 'resources.gpus': {resources['gpus']} is too many; the most is 8",
                          "ask for at most 8", "resources.gpus")
        if spec.get("tenant") == "nobody":
            raise Problem(404, "not_found", "there is no tenant 'nobody'", "see those there are: nightshift tenants", "tenant")
        if spec.get("tenant") == "full":
            raise Problem(409, "quota", "tenant full has no GPUs left", "ask for fewer")

    def check_all(self, body):
        """A spec, or a batch of them: whole or not at all."""
        batch = body.get("jobs")
        for i, spec in enumerate(batch or [body]):
            try:
                self.check(spec)
            except Problem as p:
                if batch:
                    p.body["detail"] = f"job {i + 1} of {len(batch)}: {p.body['detail']}"
                    p.body["field"] = f"jobs[{i}]" + (f".{p.body['field']}" if p.body["field"] else "")
                raise
            if batch and spec.get("tenant") != batch[0].get("tenant"):
                raise Problem(400, "invalid", f"job {i + 1}: field 'tenant': a batch is for one tenant", "", f"jobs[{i}].tenant")
        return batch or [body]

    def submit(self, body):
        made = [self.submit_one(spec) for spec in self.check_all(body)]
        answer = {"id": made[0][0], "count": sum(n for _, n in made), "state": "queued"}
        if "jobs" in body:
            answer["ids"] = list(range(answer["id"], answer["id"] + answer["count"]))
        return answer

    def submit_one(self, spec):
        indexes = [None]
        if spec.get("array"):
            first, last = spec["array"].split(":")[0].split("-")
            indexes = range(int(first), int(last) + 1)
        with self.lock:
            first = self.next
            for index in indexes:
                self.add(spec, first, index)
        return first, len(indexes)

    def add(self, spec, first, index):
        resources = spec.get("resources") or {}
        number, self.next = self.next, self.next + 1
        gpus = int(1000 * (resources.get("gpus") or resources.get("gpu_share") or 0))
        job = {"id": number, "name": spec.get("name", "job"), "tenant": spec.get("tenant", "default"), "user": "ana",
               "state": "held" if spec.get("held") else "queued", "priority": spec.get("priority", "normal"),
               "reason": "gpus_busy", "reason_text": f"{resources.get('gpus', 0)} GPUs asked for, 0 of 4 are free",
               "submitted_ms": now_ms() - 5000, "started_ms": None, "ended_ms": None, "run": 1,
               "replicas": spec.get("replicas", 1), "gpu_milli": gpus, "exit_code": None, "exit_signal": None,
               "end": None, "message": None, "where": [], "array": first if index is not None else None,
               "array_index": index, "spec": spec}
        self.jobs[number] = job
        if job["name"].startswith("pulling"):
            job.update(state="starting", where=[{"node": "desk1", "gpus": [], "milli": 0}], reason=None, reason_text=None,
                       message="image 'x:1': the registry 'r' does not answer; trying again (2 of 12)")
        self.event(job, None)
        if job["state"] == "queued" and not job["name"].startswith(("stuck", "late")):
            self.start(job)

    def start(self, job):
        spec, procs = job["spec"], []
        command = spec["command"] if isinstance(spec["command"], list) else ["/bin/sh", "-c", spec["command"]]
        env = {"PATH": os.environ["PATH"], "NIGHTSHIFT_JOB_ID": str(job["id"]), "SLURM_JOB_ID": str(job["id"])}
        env.update({k: str(v) for k, v in (spec.get("env") or {}).items()})
        for replica in range(job["replicas"]):
            try:
                procs.append(Process(command, dict(env, REPLICA=str(replica)), spec.get("workdir") or spec.get("cwd"), spec.get("tty"),
                                     feed=spec.get("stdin")))
            except OSError as e:
                job.update(state="failed", ended_ms=now_ms(), exit_code=127, end="exited", message="exit code 127")
                return
        was = job["state"]
        job.update(state="running", started_ms=now_ms(), reason=None, reason_text=None,
                   where=[{"node": "desk1", "gpus": list(range(job["gpu_milli"] // 1000)), "milli": 1000}])
        self.processes[job["id"]] = procs
        self.event(job, was)
        for p in procs:
            threading.Thread(target=self.finish, args=(job, p), daemon=True).start()

    def finish(self, job, process):
        with process.lock:
            process.lock.wait_for(lambda: process.ended is not None)
        with self.lock:
            if job["state"] in ENDED or any(p.ended is None for p in self.processes[job["id"]]):
                return
            code = max((p.ended for p in self.processes[job["id"]]), key=abs)
            was = job["state"]
            job.update(state="cancelled" if was == "stopping" else "succeeded" if code == 0 else "failed",
                       ended_ms=now_ms(), exit_code=code if code >= 0 else None, exit_signal=-code if code < 0 else None,
                       end="stopped" if was == "stopping" else "exited")
            if job["name"].startswith("greedy"):
                job.update(end="out_of_memory", message="it used more memory than it asked for")
            self.event(job, was)
            self.lock.notify_all()

    def act(self, job, verb, body):
        was = job["state"]
        if verb == "signal":
            for p in self.processes.get(job["id"], []):
                p.kill(getattr(signal, "SIG" + body["signal"]))
            return
        if was in ENDED:
            raise Problem(409, "conflict", f"job {job['id']} has ended: it is {was}")
        if verb == "cancel" and job["id"] in self.processes:
            job["state"] = "stopping"
            for p in self.processes[job["id"]]:
                p.kill()
        else:
            job["state"] = {"cancel": "cancelled", "hold": "held", "release": "queued", "freeze": "frozen",
                            "thaw": "running"}[verb]
            if verb == "cancel":
                job.update(ended_ms=now_ms(), end="stopped")
        self.event(job, was)
        self.lock.notify_all()


class Problem(Exception):
    def __init__(self, status, code, detail, hint=None, field=None):
        super().__init__(detail)
        self.status = status
        self.body = {"status": status, "code": code, "detail": detail, "hint": hint or "", "field": field or ""}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream_begin(self, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def chunk(self, data):
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    def reply_nothing(self):
        self.send_response(204)
        self.end_headers()

    def stream_end(self):
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        self.handle_call("GET")

    def do_POST(self):
        self.handle_call("POST")

    def do_DELETE(self):
        self.handle_call("DELETE")

    def handle_call(self, method):
        url = urlparse(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        frames = self.headers.get("Content-Type") == "application/octet-stream"
        body = body if frames else json.loads(body) if body else None
        self.cluster.note(method=method, path=self.path, body=None if frames else body, key=self.headers.get("Idempotency-Key"))
        try:
            if self.server.token and self.headers.get("Authorization") != "Bearer " + self.server.token:
                raise Problem(401, "denied", "a token is needed")
            self.route(method, [p for p in url.path.split("/") if p], query, body)
        except Problem as p:
            self.reply(p.body, p.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def act_on_many(self, body):
        refused, first = [], None
        for number in body["jobs"][:1000]:
            try:
                with self.cluster.lock:
                    self.cluster.act(self.job(number), body["verb"], body)
            except Problem as p:
                first = first or p
                refused.append({"job": number, **{k: p.body[k] for k in ("code", "detail", "hint")}})
        if len(refused) == len(body["jobs"]):
            raise first
        return self.reply({"changed": len(body["jobs"]) - len(refused), "refused": refused})

    def job(self, text):
        job = self.cluster.jobs.get(int(text))
        if not job:
            raise Problem(404, "not_found", f"there is no job {text}", "nightshift ps -a lists them")
        return job

    def route(self, method, path, query, body):
        c = self.cluster
        call = (method, *path[1:2], len(path))
        if path[0] == "fake":
            with c.lock:
                c.start(self.job(path[2]))
            return self.reply({})
        if method == "POST" and path[1:] == ["jobs", "check"]:
            c.check_all(body)
            return self.reply({"ok": True})
        if method == "POST" and path[1:] == ["jobs", "act"]:
            return self.act_on_many(body)
        if call == ("POST", "jobs", 2):
            key = self.headers.get("Idempotency-Key")
            with c.lock:
                if key not in c.answers:
                    c.answers[key] = c.submit(body)
            return self.reply(c.answers[key], 201)
        if call == ("GET", "jobs", 2):
            return self.list(query)
        if call == ("GET", "jobs", 3):
            with c.lock:
                return self.reply(dict(self.job(path[2]), runs=[]))
        if path[1:2] == ["jobs"] and len(path) == 4:
            return self.job_call(method, self.job(path[2]), path[3], query, body)
        if path[1:2] == ["jobs"] and path[3:4] == ["stream"]:
            return self.stream_send(path[4], query, body)
        fixed = {"server": self.server_facts, "whoami": self.whoami, "nodes": self.nodes, "quota": self.quota,
                 "usage": self.usage, "fairness": self.fairness, "doctor": self.doctor}
        if method == "GET" and path[1] in fixed and len(path) == 2:
            return self.reply(fixed[path[1]]())
        if method == "POST" and path[1] == "nodes":
            c.drained = {"drain": "drain", "resume": "up"}[path[3]]
            return self.reply(self.nodes()["nodes"][0])
        if path[1] == "events":
            return self.follow_events(query)
        if path[1] == "tokens":
            return self.token_call(method, path, body)
        raise Problem(404, "not_found", f"there is no {self.path}")

    def server_facts(self):
        return {"version": "0.1.0", "engine": "local", "mode": "root", "simulated": True, "caps": {"pause": True},
                "node": "desk1", "started_ms": now_ms() - 60000, "message": "GPUs are simulated",
                "policy": [{"name": "half_life_ms", "value": 604800000, "default": 604800000, "help": ""},
                           {"name": "min_run_ms", "value": 90000, "default": 120000, "help": ""},
                           {"name": "take_back", "value": 0, "default": 1, "help": ""}]}

    def whoami(self):
        return {"user": "ana", "uid": 1000, "role": "admin", "tenants": ["default", "vision"],
                "roles": {"default": "member", "vision": "lead"}}

    def nodes(self):
        jobs = [{"id": j["id"], "name": j["name"], "user": j["user"], "tenant": j["tenant"], "milli": 1000}
                for j in self.cluster.jobs.values() if j["state"] == "running" and j["gpu_milli"]][:2]
        gpus = [{"index": i, "uuid": f"GPU-{i}", "mem_mib": 81920, "free_milli": 0 if i < len(jobs) else 1000,
                 "jobs": jobs[i:i + 1]} for i in range(4)]
        return {"nodes": [{"name": "desk1", "state": self.cluster.drained, "simulated": True, "model": "A100",
                           "cpu_milli": 32000, "cpu_free_milli": 28000, "mem_mib": 131072, "mem_free_mib": 98304,
                           "gpus": gpus}]}

    def quota(self):
        used = {"gpus": 1.5, "cpus": 4, "memory_mib": 8192, "jobs": 2}
        return {"tenants": [{"name": "default", "parent": None, "weight": 1, "guarantee": 2, "used": used, "limit": None,
                             "share": 0.25, "past_gpus": 1.2, "waiting": 3, "users": [{"name": "ana", "used": used}]},
                            {"name": "vision", "parent": None, "weight": 3, "guarantee": 4,
                             "used": {"gpus": 0, "cpus": 0, "memory_mib": 0, "jobs": 0},
                             "limit": {"gpus": 6, "cpus": None, "memory_mib": None, "jobs": 10}, "share": 0.75,
                             "past_gpus": 0, "waiting": 0, "users": []}]}

    def usage(self):
        return {"from_ms": now_ms() - 86400000, "to_ms": now_ms(),
                "rows": [{"tenant": "vision", "user": "ana", "model": "A100", "gpu_hours": 12.5, "cpu_hours": 50.25,
                          "runs": 7}]}

    def fairness(self):
        hours = lambda **of: {f"{name}_gpu_hours": h for name, h in of.items()}  # noqa: E731
        return {"from_ms": now_ms() - 86400000, "to_ms": now_ms(), "tenants": [
            {"tenant": "audio", **hours(entitled=60, got=20, lent=30, borrowed=0, frozen=0, wanted=0)},
            {"tenant": "vision", **hours(entitled=60, got=90, lent=0, borrowed=30, frozen=2.5, wanted=7)}],
            "machines": [hours(got=110, total=200, capacity=150, idle=40, away=50)]}

    def doctor(self):
        return {"checks": [{"name": "cgroups", "ok": True, "found": "v2", "fix": None},
                           {"name": "GPU driver", "ok": False, "found": "none", "fix": "install the NVIDIA driver"},
                           {"name": "swap", "ok": None, "found": "off", "fix": None}]}

    def list(self, query):
        with self.cluster.lock:
            jobs = sorted(self.cluster.jobs.values(), key=lambda j: -j["id"])
            states = query.get("state", "")
            jobs = [j for j in jobs
                    if (j["state"] not in ENDED if not states else states == "all" or j["state"] in states.split(","))
                    and all(not query.get(k) or str(j[k]) == query[k] for k in ("user", "tenant", "name", "array"))
                    and j["id"] < int(query.get("before", 1 << 60))]
            limit = min(int(query.get("limit", 100)), 5)  # small pages, so that paging is tried
            page = jobs[:limit]
            self.reply({"jobs": [{k: v for k, v in j.items() if k != "spec"} for j in page],
                        "next": page[-1]["id"] if len(jobs) > limit else None})

    def job_call(self, method, job, verb, query, body):
        if verb == "why":
            return self.reply({"job": job["id"], "state": job["state"], "waited_ms": 5000,
                               "reasons": [{"code": job["reason"], "text": job["reason_text"]}] if job["reason"] else []})
        if verb == "log":
            return self.log(job, query)
        if verb == "stream":
            return self.stream(job, query)
        with self.cluster.lock:
            self.cluster.act(job, verb, body)
            return self.reply(job)

    def wait_started(self, job):
        with self.cluster.lock:
            self.cluster.lock.wait_for(lambda: job["id"] in self.cluster.processes or job["state"] in ENDED)
            return self.cluster.processes.get(job["id"])

    def log(self, job, query):
        """A place in it is RUN.0.N: before the Nth piece of output."""
        follow = query.get("follow")
        self.stream_begin()
        procs = self.wait_started(job) if follow else self.cluster.processes.get(job["id"])
        if not procs:
            if job["state"] in ENDED:
                self.chunk(frame(EXIT, bytes([0, job["exit_code"] or 1])))
            return self.stream_end()
        process = procs[int(query.get("replica", 0))]
        at, lose = int(query.get("from", "1.0.0").split(".")[2]), job["name"].startswith("lost") and not job.get("cut")
        until = int(query["until"].split(".")[2]) if "until" in query else None
        self.chunk(self.place(at))
        while True:
            with process.lock:
                if follow:
                    process.lock.wait_for(lambda: len(process.frames) > at)
                new, ended = process.frames[at:until], process.ended is not None
                at += len(new)
            end = [f for f in new if f[0] == EXIT]
            new = self.as_asked([f for f in new if f[0] != EXIT], query)
            if lose and new:
                job["cut"] = True
                self.chunk(new[0])
                self.close_connection = True
                return None
            self.chunk(b"".join(new) + self.place(at - len(end)))
            if end:
                with self.cluster.lock:
                    self.cluster.lock.wait_for(lambda: job["state"] in ENDED)
                self.chunk(end[0])
            if end or ended or not follow:
                return self.stream_end()

    @staticmethod
    def place(at):
        return frame(LOGGED, struct.pack(">IQQ", 1, 0, at))

    @staticmethod
    def as_asked(frames, query):
        if query.get("tail"):
            lines = b"".join(f[4:] for f in frames).splitlines(True)[-int(query["tail"]):]
            return [frame(STDOUT, line) for line in lines]
        if query["format"] == "framed-records":
            return [frame(f[0], b"2026-03-01T12:30:00.250123Z %s F %s\n" % (b"stdout" if f[0] == STDOUT else b"stderr", line))
                    for f in frames for line in f[4:].splitlines()]
        return frames

    def stream(self, job, query):
        """What comes out; what goes in comes by stream_send."""
        procs = self.cluster.processes.get(job["id"])
        if not procs or job["state"] in ENDED:
            raise Problem(409, "conflict", f"job {job['id']} does not run: it is {job['state']}")
        stream = {"job": job, "process": procs[int(query.get("replica", 0))], "next": 1,
                  "out": queue.SimpleQueue(), "kind": None}
        self.cluster.streams[query["key"]] = stream
        self.stream_begin()
        try:
            while True:
                data = stream["out"].get()
                self.chunk(data)
                if data[0] == EXIT:
                    return self.stream_end()
        finally:
            del self.cluster.streams[query["key"]]
            if stream["kind"] == EXEC and stream["process"].ended is None:
                stream["process"].kill(signal.SIGHUP)

    def stream_send(self, key, query, data):
        stream = self.cluster.streams.get(key)
        if not stream:
            raise Problem(404, "not_found", "there is no such stream, or it has ended")
        if int(query["n"]) != stream["next"]:
            raise Problem(409, "conflict", f"the next is {stream['next']}")
        stream["next"] += 1
        while data:
            kind, n = data[0], int.from_bytes(data[1:4], "big")
            self.stream_frame(stream, kind, data[4:4 + n])
            data = data[4 + n:]
        self.reply_nothing()

    def stream_frame(self, stream, kind, payload):
        if kind in (ATTACH, EXEC):
            stream["kind"] = kind
            if kind == EXEC:
                stream["process"] = self.start_exec(stream["job"], payload)
            process, out = stream["process"], stream["out"]
            with process.lock:
                if kind == ATTACH:
                    out.put(frame(LOGGED, struct.pack(">IQQ", 0, 0, len(process.frames))))
                out.put(frame(STARTED, now_ms().to_bytes(8, "big")))
                if kind == EXEC:
                    for f in process.frames:
                        out.put(f)
                process.listeners.append(out)
            self.cluster.note(attached=stream["job"]["id"])
        elif kind == STDIN:
            stream["process"].write(payload)
        elif kind == RESIZE:
            stream["process"].resize(*struct.unpack(">HH", payload))
            self.cluster.note(resize=list(struct.unpack(">HH", payload)))
        elif kind == SIGNAL:
            stream["process"].kill(payload[0])

    def start_exec(self, job, payload):
        # flags, rows, cols, then NUL-terminated lists as wire/stream.c writes them
        tty, rows, cols = payload[0] & 1, *struct.unpack(">HH", payload[1:5])
        argc, envc = struct.unpack(">HH", payload[5:9])
        words = [w.decode() for w in payload[9:].split(b"\0")[:-1]]
        cwd, argv, env = words[0], words[1:1 + argc], words[1 + argc:1 + argc + envc]
        self.cluster.note(exec=argv, tty=tty, rows=rows, cols=cols)
        full = {"PATH": os.environ["PATH"], "NIGHTSHIFT_JOB_ID": str(job["id"])}
        full.update(e.split("=", 1) for e in env)
        return Process(argv, full, cwd or job["spec"].get("workdir") or job["spec"].get("cwd"), tty, (rows, cols), feed=True)

    def follow_events(self, query):
        c, at = self.cluster, int(query.get("after") or self.headers.get("Last-Event-ID") or 0)
        self.stream_begin("text/event-stream")
        self.chunk(b": hello\n\n")
        while True:
            with c.lock:
                c.lock.wait_for(lambda: len(c.events) > at)
                new, at = c.events[at:], len(c.events)
            for e in new:
                self.chunk(f"id: {e['number']}\nevent: job\ndata: {json.dumps(e)}\n\n".encode())

    def token_call(self, method, path, body):
        tokens = self.cluster.tokens
        if method == "GET":
            return self.reply({"tokens": tokens})
        if method == "POST":
            tokens.append({"name": body["name"], "user": body.get("user") or "ana", "expires_ms": None})
            return self.reply({"token": "nst_secret"}, 201)
        tokens[:] = [t for t in tokens if t["name"] != path[2]]
        return self.reply({})


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    request_queue_size = 64
    token = None

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ssl.SSLError, ConnectionError)):  # a client that went away
            super().handle_error(request, client_address)


class UnixServer(Server):
    address_family = socket.AF_UNIX


def end_jobs(*_):
    for processes in list(Handler.cluster.processes.values()):
        for process in processes:
            process.kill(signal.SIGKILL)
    os._exit(0)


def main():
    signal.signal(signal.SIGTERM, end_jobs)
    for deaf in (signal.SIGINT, signal.SIGQUIT):  # shells start background programs so, and jobs would be, too
        signal.signal(deaf, signal.SIG_DFL)
    Handler.cluster = Cluster(sys.argv[2])
    server = UnixServer(sys.argv[1], Handler)
    ports = [0, 0]
    for i in range(2 if len(sys.argv) > 3 else 1):
        tcp = Server(("127.0.0.1", 0), Handler)
        tcp.token = "nst_right"
        ports[i] = tcp.server_address[1]
        if i:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(sys.argv[3])
            tcp.socket = tls.wrap_socket(tcp.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=tcp.serve_forever, daemon=True).start()
    print(*ports, "ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
