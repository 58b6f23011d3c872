"""kept_cases - how long a real daemon keeps what is over, and that it touches nothing else."""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

NIGHTSHIFT = f"{cl.BUILD}/nightshift"
SMALL = {"cpus": 1, "mem": "64Mi"}
case = Cases()


def run(c, line, **spec):
    return c.submit(["sh", "-c", line], resources=spec.pop("resources", SMALL), **spec)


def begin(c):
    c.start()
    c.wait_ready()


def log_folders(c, number):
    return glob.glob(f"{c.state}/tasks/{number}.*")


def wait_over(c, number):
    """Until it has ended; it may be forgotten by the time that we look."""
    def is_over():
        status, job = c.call("GET", f"/v1/jobs/{number}")
        return status == 404 or job["state"] in cl.ENDED
    wait_for(f"the end of job {number}", is_over)


def wait_removed(c, number):
    wait_for(f"the log of job {number} to go", lambda: not log_folders(c, number))
    wait_for("that to be written down", lambda: c.call("GET", f"/v1/jobs/{number}/log")[0] == 404)


def figure(c, name):
    lines = c.ask("GET", "/metrics").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"nightshift_{name} ")))


@case("output is removed when it is old, which is told, and the job stays", "--keep-logs", "1s")
def _(c):
    begin(c)
    number = run(c, "echo hello")
    lives = run(c, "echo still here; exec sleep 600")
    same(c.wait_end(number)["state"], "succeeded")
    c.wait_state(lives, "running")
    wait_for("its words", lambda: c.text_of(lives) == "still here\n")
    wait_removed(c, number)
    problem = c.call("GET", f"/v1/jobs/{number}/log")[1]
    for part in (f"the output of job {number} was removed on 20", "after its end", "it is kept no longer", "keep_logs"):
        assert part in str(problem), problem
    done = subprocess.run([NIGHTSHIFT, "logs", str(number)], capture_output=True, text=True, check=False,
                          env={**os.environ, "NIGHTSHIFT_SERVER": f"unix:{c.run}/api.sock"})
    same(done.returncode, 4)
    assert "was removed on" in done.stderr and "hint: how long it is kept is keep_logs" in done.stderr, done.stderr
    same(c.job(number)["state"], "succeeded")
    assert c.job(number)["log"]["removed_ms"] > 0, c.job(number)
    same((c.text_of(lives), len(log_folders(c, lives))), ("still here\n", 1))
    same(figure(c, "logs_removed_total"), 1)


@case("the oldest output goes when all of it is too large", "--keep-logs-total", "3Mi")
def _(c):
    begin(c)
    lives = run(c, "head -c 1500000 /dev/zero | tr '\\0' x; echo; exec sleep 600")
    numbers = []
    for _ in range(4):
        numbers.append(run(c, "head -c 1200000 /dev/zero | tr '\\0' y; echo"))
        c.wait_end(numbers[-1])
    wait_removed(c, numbers[0])
    wait_removed(c, numbers[1])
    wait_for("the sum to be right", lambda: figure(c, "log_bytes") <= 3 << 20)
    same([len(log_folders(c, n)) for n in numbers], [0, 0, 1, 1])
    same(len(c.text_of(numbers[3])), 1200001)
    same(len(log_folders(c, lives)), 1)
    assert "too large" in str(c.call("GET", f"/v1/jobs/{numbers[0]}/log")[1])
    checks = {check["name"]: check for check in c.ask("GET", "/v1/doctor")["checks"]}
    assert checks["kept"]["ok"] and "of at most 3.0 MiB" in checks["kept"]["found"], checks["kept"]


@case("jobs are forgotten in the end, whoever is killed meanwhile; usage and what lives stay",
      "--keep-logs", "1s", "--keep-jobs", "2s")
def _(c):
    begin(c)
    lives = run(c, "echo mine; exec sleep 600", resources={"gpus": 1, **SMALL})
    held = c.submit(["true"], held=True, resources=SMALL)
    used = run(c, "sleep 0.2", resources={"gpus": 1, **SMALL})
    wait_over(c, used)
    first = c.submit(["sh", "-c", "echo $NIGHTSHIFT_ARRAY_INDEX"], array="0-99", resources=SMALL)
    wait_for("the array to end", lambda: not c.ask("GET", f"/v1/jobs?array={first}")["jobs"])
    last = run(c, "true")
    wait_over(c, last)
    for _ in range(3):  # in the middle of whatever it does
        c.kill_daemon()
        c.start()
        c.wait_ready()
        before = len(c.ask("GET", "/v1/jobs?state=all&limit=1000")["jobs"])
        wait_for("some to go", lambda n=before: n <= 3 or
                 len(c.ask("GET", "/v1/jobs?state=all&limit=1000")["jobs"]) < n)
    c.kill_keeper()
    wait_for("all that may go to be gone",
             lambda: [j["id"] for j in c.ask("GET", "/v1/jobs?state=all")["jobs"]] == [last, held, lives])
    same(sorted(os.listdir(f"{c.state}/tasks")), [f"{lives}.1.0"])
    same((c.text_of(lives), c.job(lives)["state"], c.job(held)["state"]), ("mine\n", "running", "held"))
    rows = c.ask("GET", "/v1/usage")["rows"]
    assert sum(r["gpu_hours"] for r in rows) > 0 and sum(r["runs"] for r in rows) == 103, rows
    c.wait_ready()
    same(run(c, "true"), last + 1)


@case("a machine that has fewer GPUs keeps what runs, gives out what it has, and says why the rest waits")
def _(c):
    begin(c)
    ends = [run(c, "exec sleep 600", resources={"gpus": 1, **SMALL}) for _ in range(4)]
    for number in ends:
        c.wait_state(number, "running")
    large = run(c, "true", resources={"gpus": 4, **SMALL})
    small = run(c, "true", resources={"gpus": 1, **SMALL})
    c.kill_daemon()
    c.kill_keeper()
    c.options[c.options.index("--simulate-gpus") + 1] = "2"
    c.start()
    c.wait_ready()
    gpus = {number: c.job(number)["where"][0]["gpus"][0] for number in ends}
    same({c.job(number)["state"] for number in ends}, {"running"})
    first = [n for n in ends if gpus[n] < 2]
    c.ask("POST", f"/v1/jobs/{first[0]}/cancel")  # a GPU is free, but two others are still gone
    c.wait_end(first[0])
    same((c.job(large)["state"], c.job(small)["state"]), ("queued", "queued"))
    for number in ends:
        if gpus[number] >= 2:
            c.ask("POST", f"/v1/jobs/{number}/cancel")
    same(c.wait_end(small)["state"], "succeeded")
    same(len(c.ask("GET", "/v1/nodes")["nodes"][0]["gpus"]), 2)
    same(c.job(first[1])["state"], "running")
    reasons = c.ask("GET", f"/v1/jobs/{large}/why")["reasons"]
    same(reasons, [{"code": "too_large", "text": "it fits on no machine here any more: gpus: 4 on one machine; "
                                                 "the largest has 2"}])
    c.kill_daemon()
    c.start()
    c.wait_ready()
    same((c.job(large)["state"], c.job(first[1])["state"]), ("queued", "running"))


if __name__ == "__main__":
    sys.exit(case.each())
