"""works - what is measured, once for all systems.

A work takes a site and a size and returns samples by the name of a figure (report.py has the table of figures).
"""
import collections
import json
import os
import random
import time

import account
import clients

HELD = ("--hold",)  # submits are measured without what they would start
BATCH = 500


def start(site, n):
    """From before the submit until the script itself reads the clock."""
    path = clients.script(site, "stamp.sh", clients.STAMP)
    pauses = random.Random(4711)  # a queue that looks once a second must not be met in step
    samples = []
    for i in range(n):
        out = f"{site.work}/stamp.{i}"
        time.sleep(pauses.random())
        begin = time.time()
        clients.say(site, [*site.words["sbatch"], path, out])
        clients.wait_until(f"{site.name} to run a script", lambda out=out: _stamp(out))
        samples.append((_stamp(out) - begin) * 1000)
        os.unlink(out)
    clients.wait_drained(site)
    return {"start_ms": samples}


def _stamp(path):
    try:
        with open(path, encoding="ascii") as f:
            text = f.read()
    except FileNotFoundError:
        return None
    return float(text.replace(",", ".")) if text.endswith("\n") else None


def run(site, n):
    """srun /bin/true as a whole command, one after the other."""
    samples, cpu = [], site.cpu_s()
    for _ in range(n):
        begin = time.monotonic()
        clients.say(site, [*site.words["run"], "/bin/true"])
        samples.append((time.monotonic() - begin) * 1000)
    clients.wait_drained(site)
    return {"run_ms": samples, "run_cpu_ms": [(site.cpu_s() - cpu) * 1000 / n]}


def array(site, n):
    """An array of empty jobs, from before its submit until none is left in the queue."""
    path = clients.script(site, "empty.sh", clients.EMPTY)
    at_rest, cpu, begin = account.memory_mib(site.controller_pid()), site.cpu_s(), time.monotonic()
    clients.say(site, [*site.words["sbatch"], f"--array=0-{n - 1}", path])
    taken = time.monotonic() - begin
    clients.wait_drained(site)
    whole = time.monotonic() - begin
    after = account.memory_mib(site.controller_pid())
    return {"array_per_s": [n / whole], "array_submit_ms": [taken * 1000],
            "array_cpu_ms": [(site.cpu_s() - cpu) * 1000 / n],
            "rest_rss_mib": [at_rest[0]], "rest_pss_mib": [at_rest[1]],
            "after_rss_mib": [after[0]], "after_pss_mib": [after[1]]}


def submit(site, n):
    """sbatch as a process a job, one after the other, and from four clients at once."""
    path = clients.script(site, "empty.sh", clients.EMPTY)
    argv = [*site.words["sbatch"], *HELD, path]
    samples = {"submit_per_s": [clients.rate_of(site, argv, n, 1)],
               "submit4_per_s": [clients.rate_of(site, argv, n, 4)]}
    site.cancel_all()
    clients.wait_drained(site)
    return samples


def api(site, n):
    """Submits on one connection that stays open, and batches of them: Slurm has no such thing."""
    if not hasattr(site, "connection"):
        return {}
    connection = site.connection()
    job = {"command": ["true"], "resources": {"cpus": 1, "mem": "64Mi"}, "held": True}
    per_s = collections.defaultdict(list)
    begin = time.monotonic()
    for _ in range(n):
        _post(connection, job)
    per_s["api_per_s"].append(n / (time.monotonic() - begin))
    begin, batches = time.monotonic(), max(1, n // 50)
    for _ in range(batches):
        _post(connection, {"jobs": [job] * BATCH})
    per_s["batch_per_s"].append(batches * BATCH / (time.monotonic() - begin))
    connection.close()
    site.cancel_all()
    return per_s


def _post(connection, body):
    connection.request("POST", "/v1/jobs", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 201:
        raise clients.Failed(f"POST /v1/jobs: {answer.status} {text[:200]}")


Work = collections.namedtuple("Work", "name fn size quick_size")
WORKS = (
    Work("start", start, 20, 4),
    Work("run", run, 40, 10),
    Work("array", array, 1000, 100),
    Work("submit", submit, 200, 40),
    Work("api", api, 500, 100),
)
