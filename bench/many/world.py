"""world - a real nightshiftd, filled with many jobs through its public API.

Three worlds.  waiting: all jobs wait, behind four that hold the GPUs.  ended: all have ended; a part of them ran,
the rest was submitted held and cancelled.  mix: half waits, of many tenants, users and shapes; half has ended.
"""
import http.client
import os
import signal
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("NIGHTSHIFT_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import cluster as cl  # noqa: E402

BATCH = 1000
CLIENTS = 24
TENANTS = 40
USERS = 5  # of each tenant
RAN = 2000  # of the ended ones: jobs that really ran
NAMES = ("train", "eval", "sweep", "prepare", "notebook")
PRIORITIES = ("low", "normal", "normal", "high")

SETTINGS = """\
admins: [root]
default_tenant: t0
tenants:
""" + "".join(f"  t{i}: {{ members: [{', '.join(f't{i}-u{u}' for u in range(USERS))}] }}\n" for i in range(TENANTS))


class World(cl.Cluster):
    def __init__(self):
        super().__init__(["--cpus", "256"])
        settings = f"{self.folder}/nightshift.yaml"
        with open(settings, "w", encoding="utf-8") as f:
            f.write(SETTINGS)
        self.options += ["--config", settings]
        self.tokens = {}

    def begin(self):
        self.start()
        self.wait_ready()

    # ---- restarting ----

    def start_seconds(self):
        """From the start of the process to the first 200 of /readyz."""
        began = time.monotonic()
        self.start()
        while not self.is_ready():
            if self.daemon.poll() is not None:
                raise AssertionError(f"nightshiftd ended with {self.daemon.returncode}:\n{self.log_tail()}")
            if time.monotonic() - began > cl.PATIENCE_S:
                raise AssertionError("it did not become ready")
            time.sleep(0.002)
        return time.monotonic() - began

    def end(self, how):
        self.daemon.send_signal(signal.SIGKILL if how == "kill -9" else signal.SIGTERM)
        self.daemon.wait(cl.PATIENCE_S)

    # ---- many calls at a time ----

    def token(self, user):
        if user not in self.tokens:
            self.tokens[user] = self.ask("POST", "/v1/tokens", {"name": "bench", "user": user})["token"]
        return self.tokens[user]

    def connection(self):
        return cl.UnixConnection(f"{self.run}/api.sock", cl.PATIENCE_S)

    def post_all(self, calls):
        """[(path, body, user or None)]: each is answered; the first that is refused ends it."""
        left = iter(calls)
        lock = threading.Lock()
        wrong = []

        def client():
            conn = self.connection()
            while not wrong:
                with lock:
                    one = next(left, None)
                if one is None:
                    break
                path, body, user = one
                headers = {"Content-Type": "application/json"}
                if user:
                    headers["Authorization"] = f"Bearer {self.tokens[user]}"
                try:
                    conn.request("POST", path, body, headers)
                    answer = conn.getresponse()
                    text = answer.read()
                    if answer.status >= 300:
                        wrong.append(f"POST {path}: {answer.status} {text[:300]}")
                except (OSError, http.client.HTTPException) as why:
                    wrong.append(f"POST {path}: {why}")
            conn.close()

        threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]

    # ---- filling ----

    def hold_gpus(self):
        """Four jobs that sleep on the four GPUs: whoever asks for one waits."""
        held = [self.submit(["sleep", "86400"], name="holder", resources={"gpus": 1, "cpus": 1, "mem": "64Mi"})
                for _ in range(4)]
        for number in held:
            self.wait_state(number, "running")
        return held

    def add_waiting(self, n, tenants):
        self.post_all(batch_calls(self, n, tenants, held=False))

    def add_cancelled(self, n, tenants):
        first = self.last_job() + 1
        self.post_all(batch_calls(self, n, tenants, held=True))
        self.post_all((f"/v1/jobs/{i}/cancel", "{}", None) for i in range(first, first + n))

    def add_ran(self, n):
        """Jobs that run for real, in containers: without GPUs, many at a time."""
        body = cl.json.dumps({"command": ["true"], "name": "ran", "resources": {"cpus": 1, "mem": "64Mi"},
                              "array": f"0-{n - 1}"})
        self.post_all([("/v1/jobs", body, None)])
        cl.wait_for("the jobs that run", lambda: self.counts()["succeeded"] >= n, 600)

    def last_job(self):
        jobs = self.ask("GET", "/v1/jobs?state=all&limit=1")["jobs"]
        return jobs[0]["id"] if jobs else 0

    def metrics(self):
        lines = self.ask("GET", "/metrics").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and line[0] != "#")

    def counts(self):
        figures = self.metrics()
        return {key.split('"')[1]: int(value) for key, value in figures.items() if key.startswith("nightshift_jobs{")}

    def store_bytes(self):
        return sum(os.path.getsize(f"{self.state}/{name}") for name in os.listdir(self.state)
                   if name.startswith("nightshift.db"))


def spec_of(i, held):
    """Shapes: 5 numbers of GPUs x 6 of CPUs x 4 of memory; names, priorities."""
    resources = {"cpus": 1 + i % 6, "mem": f"{1 + i % 4}Gi"}
    share = i % 5
    if share == 4:
        resources["gpu_share"] = 0.5
    else:
        resources["gpus"] = 1 + share % 4
    return {"command": ["python", "train.py", "--seed", str(i)], "name": NAMES[i % 5], "resources": resources,
            "priority": PRIORITIES[i % 4], "held": held}


def batch_calls(world, n, tenants, held):
    """Batches, in turn of every user of every tenant; one user when there is one tenant."""
    users = [f"t{t}-u{u}" for t in range(tenants) for u in range(USERS if tenants > 1 else 1)]
    for user in users:
        world.token(user)
    size = max(1, min(BATCH, n // len(users)))
    for k, first in enumerate(range(0, n, size)):
        user = users[k % len(users)]
        jobs = [{**spec_of(i, held), "tenant": user.split("-")[0]} for i in range(first, min(first + size, n))]
        yield "/v1/jobs", cl.json.dumps({"jobs": jobs}), user


def fill(world, kind, n):
    """What it is filled with, in words."""
    world.held = world.hold_gpus()
    if kind == "waiting":
        world.add_waiting(n, 1)
        return f"{n:,} waiting, of one user"
    if kind == "ended":
        ran = min(RAN, n // 10)
        world.add_ran(ran)
        world.add_cancelled(n - ran, 8)
        return f"{ran:,} that ran, {n - ran:,} submitted held and cancelled, of 8 tenants"
    world.add_cancelled(n // 2, TENANTS)
    world.add_waiting(n - n // 2, TENANTS)
    return f"{n - n // 2:,} waiting and {n // 2:,} cancelled, of {TENANTS} tenants, {TENANTS * USERS} users"
