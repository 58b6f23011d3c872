"""kube_jobs_cases - jobs of ours on real nodes: the real daemon, kubelet and containerd, real processes."""
import contextlib
import json
import os
import shutil
import subprocess
import sys

import cluster as cl
from cases import Cases, same
from kube_cluster import KubeCluster, Rig, init_image, why_not

case = Cases()
SPACE = "nightshift-default"
# Counts once in 100 ms and writes it down; told to save itself it says so and ends with 85.
COUNTER = """
f=$NIGHTSHIFT_STATE_DIR/n; n=$(cat $f 2>/dev/null || echo 0)
trap 'echo saved $n; exit 85' USR1
echo from $n
while :; do n=$((n+1)); echo $n > $f.new && mv $f.new $f; [ $n != 3 ] || echo at 3; sleep 0.1; done
"""
SMALL = {"resources": {"cpus": 0.1, "mem": "32Mi"}}


def run(c, *argv, **more):
    """The command line, as a user would type it."""
    env = {**os.environ, "NIGHTSHIFT_SERVER": f"{c.run}/api.sock"}
    return subprocess.run([f"{cl.BUILD}/nightshift", *argv], env=env, capture_output=True, text=True, timeout=cl.PATIENCE_S,
                          check=False, **more)


@case("a job runs in a pod, and its output and exit code are its own")
def _(c):
    job = c.submit(["sh", "-c", "echo hello from $NIGHTSHIFT_JOB_ID; echo worse >&2; exit 3"], **SMALL)
    end = c.wait_end(job)
    same((end["state"], end["exit_code"]), ("failed", 3))
    text = c.text_of(job)
    assert f"hello from {job}\n" in text and "worse\n" in text, text


@case("a job that succeeds leaves no pod behind")
def _(c):
    job = c.submit(["true"], **SMALL)
    same(c.wait_end(job)["state"], "succeeded")
    cl.wait_for("its pod is gone", lambda: not c.job_pods(job))


@case("output that comes slowly is there while it runs, every line once")
def _(c):
    job = c.submit(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.2; done; sleep 600"], **SMALL)
    c.wait_state(job, "running")
    cl.wait_for("its lines", lambda: c.text_of(job).count("line ") >= 8)
    same(c.text_of(job), "".join(f"line {i}\n" for i in range(1, 9)))
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    same(c.wait_end(job)["state"], "cancelled")


@case("it runs as its user, without rights, with its own state folder")
def _(c):
    job = c.submit(["sh", "-c", "id -u; grep CapEff /proc/self/status; touch $NIGHTSHIFT_STATE_DIR/x $HOME/y /tmp/z && echo wrote; "
                    "cat /proc/1/cmdline | tr '\\0' ' '"], **SMALL)
    c.wait_end(job)
    text = c.text_of(job)
    assert text.startswith("7000000") and "CapEff:\t0000000000000000" in text and "wrote" in text, text
    assert "/nightshift/init --pod" in text, text


@case("a command is run inside it, and its output and exit code come back")
def _(c):
    job = c.submit(["sleep", "600"], **SMALL)
    c.wait_state(job, "running")
    done = run(c, "exec", str(job), "--", "sh", "-c", "echo inside $NIGHTSHIFT_JOB_ID; exit 7")
    same((done.stdout, done.returncode), (f"inside {job}\n", 7))
    done = run(c, "exec", "-i", str(job), "--", "sh", "-c", "cat; echo end", input="x" * 200000 + "\n")
    same((len(done.stdout), done.stdout[-5:]), (200005, "\nend\n"))
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)


@case("a signal reaches it")
def _(c):
    job = c.submit(["sh", "-c", "trap 'echo got it; exit 4' USR2; echo ready; while :; do sleep 0.1; done"], **SMALL)
    cl.wait_for("it is ready", lambda: "ready" in c.text_of(job))
    c.signal(job, "USR2")
    same(c.wait_end(job)["exit_code"], 4)
    assert "got it" in c.text_of(job)


@case("frozen it saves itself and its pod goes; thawed it goes on from there")
def _(c):
    job = c.submit(["sh", "-c", COUNTER], freeze={"mode": "signal", "signal": "USR1", "grace": "10m"}, **SMALL)
    c.wait_state(job, "running")
    cl.wait_for("it counts", lambda: "from 0" in c.text_of(job))
    cl.wait_for("there is something to lose", lambda: "at 3" in c.text_of(job))
    c.ask("POST", f"/v1/jobs/{job}/freeze")
    c.wait_state(job, "frozen")
    cl.wait_for("its pod is gone", lambda: not c.job_pods(job))
    saved = int(c.text_of(job).rsplit("saved ", 1)[1].split()[0])
    assert saved >= 3, saved
    c.ask("POST", f"/v1/jobs/{job}/thaw")
    c.wait_state(job, "running")
    cl.wait_for("it goes on", lambda: "from " in c.text_of(job) and "saved" not in c.text_of(job))
    same(int(c.text_of(job).split("from ", 1)[1].split()[0]), saved)
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)


@case("its machines are given back: it saves itself, nothing of it stays there, and it goes on when they are ours again")
def _(c):
    nodes = ("real1", "real2")
    job = c.submit(["sh", "-c", COUNTER], freeze={"mode": "signal", "signal": "USR1", "grace": "10m"}, **SMALL)
    cl.wait_for("it counts", lambda: "from 0" in c.text_of(job))
    c.ask("PUT", "/v1/pools/desks", {})
    for name in nodes:
        c.rig.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"nightshift.dev/pool": "desks"}}})
    cl.wait_for("they are in the pool", lambda: all(n.get("pool") == "desks" for n in c.ask("GET", "/v1/nodes")["nodes"]))
    cl.wait_for("there is something to lose", lambda: "at 3" in c.text_of(job))
    c.ask("POST", "/v1/pools/desks/close", {"for": "1h"})
    c.wait_state(job, "frozen")
    cl.wait_for("its pod is gone", lambda: not c.job_pods(job))
    cl.wait_for("the machines say whose they are", lambda: all(handed_back(c, name) for name in nodes))
    saved = int(c.text_of(job).rsplit("saved ", 1)[1].split()[0])
    assert saved >= 3, saved
    c.ask("POST", "/v1/pools/desks/open", {"for": "1h"})
    c.wait_state(job, "running")
    cl.wait_for("it goes on", lambda: "from " in c.text_of(job) and "saved" not in c.text_of(job))
    same(int(c.text_of(job).split("from ", 1)[1].split()[0]), saved)
    cl.wait_for("they are ours by their taints", lambda: not any(handed_back(c, name) for name in nodes))
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)
    for name in nodes:
        c.rig.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"nightshift.dev/pool": None}}})
    cl.wait_for("they are in none", lambda: not any(n.get("pool") for n in c.ask("GET", "/v1/nodes")["nodes"]))
    c.ask("DELETE", "/v1/pools/desks")


def handed_back(c, node):
    taints = c.rig.get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])
    return any(t["key"] == "nightshift.dev/handed-back" for t in taints)


@case("files go into it and come out as they were")
def _(c):
    job = c.submit(["sleep", "600"], **SMALL)
    c.wait_state(job, "running")
    there, back = f"{c.folder}/there", f"{c.folder}/back"
    with open(there, "wb") as f:
        f.write(os.urandom(300_000))
    for args in ((there, f"{job}:/tmp/there"), (f"{job}:/tmp/there", back)):
        done = run(c, "cp", *args)
        assert done.returncode == 0, done  # what took over a second says so on stderr
    same(cl.read_file(back), cl.read_file(there))
    done = run(c, "cp", f"{job}:/tmp/nothing", back)
    assert done.returncode != 0 and "nothing" in done.stderr, done
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)


@case("somebody attaches to it, types, and sees what it says to its end")
def _(c):
    job = c.submit(["sh", "-c", "echo ready; read word; echo got $word; exit 5"], stdin=True, **SMALL)
    cl.wait_for("it is ready", lambda: "ready" in c.text_of(job))
    done = run(c, "attach", str(job), input="hello\n")
    end = c.wait_end(job)
    assert "got hello" in done.stdout, (done, end, c.text_of(job))
    same((done.returncode, end["exit_code"]), (5, 5))


@case("a job that exits 0 during its freeze is finished and stays so")
def _(c):
    job = c.submit(["sh", "-c", "trap 'exit 0' USR1; echo ready; while :; do sleep 0.1; done"],
                   freeze={"mode": "signal", "signal": "USR1", "grace": "10m"}, **SMALL)
    cl.wait_for("it is ready", lambda: "ready" in c.text_of(job))
    c.ask("POST", f"/v1/jobs/{job}/freeze")
    same(c.wait_end(job)["state"], "succeeded")
    assert c.call("POST", f"/v1/jobs/{job}/thaw")[0] == 409


@case("a job that does not save itself in time has failed, and says so")
def _(c):
    job = c.submit(["sh", "-c", "trap '' USR1 TERM; echo ready; while :; do sleep 0.1; done"],
                   freeze={"mode": "signal", "signal": "USR1", "grace": "2s"}, **SMALL)
    cl.wait_for("it is ready", lambda: "ready" in c.text_of(job))
    c.ask("POST", f"/v1/jobs/{job}/freeze")
    end = c.wait_end(job)
    same(end["state"], "failed")
    assert "did not save itself" in end["message"], end


@case("its time over, it is ended and the reason told")
def _(c):
    job = c.submit(["sleep", "600"], max_time="3s", freeze={"grace": "1s"}, **SMALL)
    end = c.wait_end(job)
    same((end["state"], end["end"]), ("failed", "time_limit"))


@case("one that takes more memory than it asked for is named")
def _(c):
    job = c.submit(["sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}"],
                   resources={"cpus": 0.5, "mem": "32Mi"})
    end = c.wait_end(job)
    same((end["state"], end["end"]), ("failed", "out_of_memory"))


@case("an image that cannot be is refused in words")
def _(c):
    job = c.submit(["true"], image="NOT/an image", **SMALL)
    end = c.wait_end(job)
    same(end["state"], "failed")
    assert "image" in end["message"], end


@case("what a pod cannot have is refused at the submit, with the field")
def _(c):
    status, answer = c.call("POST", "/v1/jobs", {"command": ["true"], "volumes": ["/data:/data"]})
    assert status >= 400 and "volumes" in answer["detail"], answer
    status, answer = c.call("POST", "/v1/jobs", {"command": ["true"], "resources": {"gpus": 0.5}})
    assert status >= 400 and "gpu_share" in json.dumps(answer), answer


@case("a gang runs on two nodes, and its ranks speak to each other")
def _(c):
    # The rig has no DNS of a cluster: rank 1 is told the address of rank 0 through the shared view of the API.
    job = c.submit(["sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR; hostname -i; "
                    "if [ $RANK = 0 ]; then echo rank zero says hello | nc -l -p 29500; else "
                    "while ! [ -s /tmp/peer ]; do sleep 0.1; done; nc $(cat /tmp/peer) 29500; fi"],
                   replicas=2, placement={"layout": "spread"}, **SMALL)
    c.wait_state(job, "running")
    pods = {p["metadata"]["labels"]["nightshift.dev/replica"]: p for p in c.job_pods(job)}
    same(len({p["spec"]["nodeName"] for p in pods.values()}), 2)
    service = c.rig.get(f"/api/v1/namespaces/{SPACE}/services/nightshift-{job}")
    same(service["spec"]["clusterIP"], "None")
    same(pods["0"]["spec"]["subdomain"], f"nightshift-{job}")
    address = pods["0"]["status"]["podIP"]
    done = run(c, "exec", "--replica", "1", str(job), "--", "sh", "-c", f"echo {address} > /tmp/peer")
    same((done.returncode, done.stderr), (0, ""))
    same(c.wait_end(job)["state"], "succeeded")
    text = c.text_of(job, "?replica=1")
    assert "1 of 2 at" in text and "rank zero says hello" in text, text
    assert f"nightshift-{job}-1-0.nightshift-{job}.{SPACE}.svc" in text, text


@case("the daemon is killed while jobs run: they go on, and nothing of their output is lost or doubled")
def _(c):
    job = c.submit(["sh", "-c", "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo $i; sleep 0.1; done"], **SMALL)
    c.wait_state(job, "running")
    cl.wait_for("some output", lambda: c.text_of(job).count("\n") > 5)
    c.kill_daemon()
    c.start()
    c.wait_ready()
    same(c.wait_end(job)["state"], "succeeded")
    same(c.text_of(job), "".join(f"{i}\n" for i in range(1, 61)))


@case("a job that ended while the daemon was away is known to have ended, once")
def _(c):
    job = c.submit(["sh", "-c", "sleep 2; exit 9"], **SMALL)
    c.wait_state(job, "running")
    c.kill_daemon()
    c.rig.wait(lambda: all(p["status"]["phase"] == "Failed" for p in c.job_pods(job)), "the pod ends")
    c.start()
    c.wait_ready()
    end = c.wait_end(job)
    same((end["state"], end["exit_code"], end["run"]), ("failed", 9, 1))


@case("somebody deletes its pod: the job is lost or, when it may, runs again")
def _(c):
    job = c.submit(["sleep", "600"], requeue=True, freeze={"grace": "1s"}, **SMALL)
    c.wait_state(job, "running")
    pod = c.job_pods(job)[0]["metadata"]["name"]
    c.rig.delete(f"/api/v1/namespaces/{SPACE}/pods/{pod}", {"gracePeriodSeconds": 1})
    cl.wait_for("its second run", lambda: c.job(job)["run"] == 2 and c.job(job)["state"] == "running")
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)


@case("frozen, its store is lost: it is frozen still, and thawed it goes on from what it saved")
def _(c):
    job = c.submit(["sh", "-c", COUNTER], freeze={"mode": "signal", "signal": "USR1", "grace": "10m"}, **SMALL)
    c.wait_state(job, "running")
    cl.wait_for("it counts", lambda: "from 0" in c.text_of(job))
    cl.wait_for("there is something to lose", lambda: "at 3" in c.text_of(job))
    c.ask("POST", f"/v1/jobs/{job}/freeze")
    c.wait_state(job, "frozen")
    cl.wait_for("its pod is gone", lambda: not c.job_pods(job))
    saved = int(c.text_of(job).rsplit("saved ", 1)[1].split()[0])
    c.kill_daemon()  # the pod went when the copy said that it is frozen, and not before
    shutil.rmtree(c.state)
    c.up()
    same((c.job(job)["state"], c.job(job)["run"]), ("frozen", 1))
    c.ask("POST", f"/v1/jobs/{job}/thaw")
    same(c.wait_state(job, "running")["run"], 2)
    cl.wait_for("it goes on", lambda: "from " in c.text_of(job))
    same(int(c.text_of(job).split("from ", 1)[1].split()[0]), saved)
    c.ask("POST", f"/v1/jobs/{job}/cancel")
    c.wait_end(job)


@contextlib.contextmanager
def two_nodes():
    with Rig(real=True) as rig:
        image = init_image(rig.folder)
        for name in ("real1", "real2"):
            rig.real_node(name, gpus=2, images=[image])
        for i in range(6):
            make_volume(rig, i)
        with KubeCluster(rig, ["--kube-storage-class", "rig"]) as c:
            yield c.up()


def make_volume(rig, i):
    """What jobs keep is on volumes that are there before: the rig has no provisioner."""
    os.mkdir(f"{rig.folder}/v{i}")
    os.chmod(f"{rig.folder}/v{i}", 0o777)
    rig.post("/api/v1/persistentvolumes", {
        "metadata": {"name": f"v{i}"},
        "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "rig",
                 "hostPath": {"path": f"{rig.folder}/v{i}"}}})


if __name__ == "__main__":
    sys.exit(case.on(two_nodes, lambda: why_not(real=True)))
