"""kube_faults_cases - what breaks under a daemon on Kubernetes, and what it makes of it.

Most of it on nodes that KWOK pretends: what counts is which pods there are, and a witness watches them all the
time.  Their programs end when `end_pods` says so."""
import collections
import concurrent.futures
import contextlib
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import http.client

import cluster as cl
from cases import Cases, same
from kube_cluster import LEASE, OWN, KubeCluster, Refused, Rig, grant, images, init_image, why_not
from kube_proxy import Proxy
from kube_seen import Pods, asked

case = Cases()
SMALL = {"resources": {"cpus": 0.1, "mem": "32Mi"}}
JOB = "nightshift.dev/job"
LEASE_S = 15  # docs/ops/kubernetes.md: so long is a lease nobody else's after its last renewal
COPIES_AT_A_TIME = 8
BURST = 1500


class Witness:
    """Sees every pod of ours come and go.  faults: what must never be."""

    def __init__(self, rig):
        self.living, self.uids = {}, collections.defaultdict(set)
        self.faults, self.lock = [], threading.Lock()
        self.pods = Pods(rig, self._hear, JOB)

    def __enter__(self):
        self.pods.__enter__()
        return self

    def __exit__(self, *why):
        self.pods.__exit__(*why)

    def _hear(self, kind, pod):
        meta, labels = pod["metadata"], pod["metadata"]["labels"]
        key = (labels[JOB], labels["nightshift.dev/replica"])
        lives = (kind != "DELETED" and pod["status"].get("phase") not in ("Succeeded", "Failed")
                 and not meta.get("deletionTimestamp"))
        with self.lock:
            if pod["spec"].get("nodeName"):
                self.uids[(meta["namespace"], meta["name"])].add(meta["uid"])
            here = self.living.setdefault(key, set())
            (here.add if lives else here.discard)(meta["uid"])
            if len(here) > 1:
                self.faults.append(f"job {key[0]} replica {key[1]} lives {len(here)} times")

    def check(self):
        self.pods.caught_up()
        with self.lock:
            assert not self.faults, self.faults[:5]
            twice = {name: len(uids) for name, uids in self.uids.items() if len(uids) > 1}
            assert not twice, f"pods that were bound twice: {twice}"


ENDED = {"status": {"phase": "Succeeded", "containerStatuses": [
    {"name": "job", "image": "x", "imageID": "x", "restartCount": 0, "ready": False, "started": False,
     "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}}


def end_pods(rig, only=None):
    """What runs of ours ends well."""
    for pod in rig.get(f"/api/v1/pods?labelSelector={JOB}")["items"]:
        meta = pod["metadata"]
        if pod["status"]["phase"] == "Running" and (not only or int(meta["labels"][JOB]) in only):
            with contextlib.suppress(Refused):
                rig.patch(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status", ENDED, "strategic")


def all_end(c, jobs):
    """Ends what runs until every job is over; their states."""
    def over():
        with contextlib.suppress(OSError, http.client.HTTPException, Refused):
            end_pods(c.rig, set(jobs))
        time.sleep(0.2)  # asking is work too
        states = collections.Counter(c.job(j)["state"] for j in jobs)
        return states if all(s in cl.ENDED for s in states) else None
    return cl.wait_for(f"{len(jobs)} jobs to end", over)


def no_pods(c):
    cl.wait_for("no pod of ours is left", lambda: not c.rig.get(f"/api/v1/pods?labelSelector={JOB}")["items"])


def copies(c):
    """Copies of the daemon's jobs in the cluster: records by number.  0: what numbers may have been given out."""
    with open(f"{c.state}/kube-daemon", encoding="utf-8") as f:
        daemon_name = f.read()
    items = c.rig.get(f"/api/v1/namespaces/{OWN}/configmaps?labelSelector=nightshift.dev/copies-of")["items"]
    return {int(i["metadata"]["annotations"]["nightshift.dev/job"]): json.loads(i["data"]["record"]) for i in items
            if i["metadata"]["annotations"]["nightshift.dev/daemon"] == daemon_name}


def copied(c, jobs):
    """Waits until exactly these have copies; they."""
    def look():
        there = copies(c)
        there.pop(0, None)
        return there if set(there) == set(jobs) else None
    try:
        if not jobs:
            cl.wait_for("no copy is left", lambda: look() is not None)
            return {}
        return cl.wait_for(f"copies of {len(jobs)} jobs", look)
    except AssertionError as failure:
        raise AssertionError(f"{failure}: there are {sorted(copies(c))}") from failure


def remove_pods(rig):
    """What a case that failed left of ours."""
    for pod in rig.get(f"/api/v1/pods?labelSelector={JOB}")["items"]:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        with contextlib.suppress(Refused):
            rig.delete(f"{path}?gracePeriodSeconds=0")
            rig.patch(path, {"metadata": {"finalizers": None}})  # last: without it, it would be taken for a stranger's


def submit_or_not(c, **spec):
    """The job's number, or None when it was refused in words."""
    status, answer = c.call("POST", "/v1/jobs", {"command": ["sleep", "600"], **SMALL, **spec})
    if status < 300:
        return answer["id"]
    same(status, 503)
    assert answer["detail"], answer
    return None


def log_of(c):
    with open(c.log_path, encoding="utf-8", errors="replace") as f:
        return f.read()


@contextlib.contextmanager
def daemon(rig, *options, kubeconfig=None):
    """A daemon that runs, and a witness."""
    with KubeCluster(rig, list(options), kubeconfig) as c, Witness(rig) as w:
        c.up()
        try:
            yield c, w
        except Exception:
            tell(c)
            c.kill_daemon()
            remove_pods(rig)  # the next case has jobs of the same numbers
            raise


def tell(c):
    """What there is, for whoever reads that a case failed."""
    with contextlib.suppress(Exception):
        for job in c.ask("GET", "/v1/jobs?limit=100")["jobs"]:
            if job["state"] != "succeeded":
                print(f"#   job {job['id']} run {job['run']}: {job['state']} {job.get('message')}")
        for pod in c.pods():
            print(f"#   {pod['metadata']['name']} {pod['spec'].get('nodeName')} {pod['status']['phase']} "
                  f"{pod['metadata'].get('deletionTimestamp')}")
    print("\n".join("#   : " + line for line in c.log_tail(40).splitlines()), flush=True)


@case("the API server is killed under jobs that run and are submitted")
def _(rig):
    with daemon(rig) as (c, w):
        jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(6)]
        rig.stop("apiserver")
        taken = []
        for _ in range(6):
            taken += [j for j in [submit_or_not(c)] if j]
        cl.wait_for("it says that it is away", lambda: "engine.away" in log_of(c))
        taken += [j for j in [submit_or_not(c)] if j]
        same(c.daemon.poll(), None)
        rig.start("apiserver")
        cl.wait_for("it is back by itself", c.is_ready)
        same(all_end(c, jobs + taken), {"succeeded": len(jobs + taken)})
        same({c.job(j)["run"] for j in jobs + taken}, {1})
        w.check()
        no_pods(c)


@case("etcd stands still under load, until nobody may decide any more")
def _(rig):
    with daemon(rig) as (c, w):
        jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(10)]
        rig.pause("etcd")
        try:
            jobs += [j for j in [submit_or_not(c) for _ in range(10)] if j]
            cl.wait_for("its lease is lost", lambda: "lease.lost" in log_of(c))
        finally:
            rig.resume("etcd")
        cl.wait_for("it is ready", c.is_ready)
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        same({c.job(j)["run"] for j in jobs}, {1})
        w.check()
        no_pods(c)


@case("watches are cut, and told 410")
def _(rig):
    with Proxy(rig, grant(rig)) as proxy, daemon(rig, kubeconfig=proxy.kubeconfig) as (c, w):
        jobs = []
        for i in range(6):
            jobs += [c.submit(["sleep", "600"], **SMALL) for _ in range(3)]
            end_pods(rig)
            proxy.cut(expired=i % 2 == 0)
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        same({c.job(j)["run"] for j in jobs}, {1})
        w.check()
        no_pods(c)


@case("429 in storms: everything is done in the end, and nothing is asked again sooner than the server says")
def _(rig):
    with Proxy(rig, grant(rig)) as proxy, daemon(rig, kubeconfig=proxy.kubeconfig) as (c, w):
        jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(8)]
        jobs.append(c.submit(["sleep", "600"], replicas=4, **SMALL))
        proxy.storm(60)
        gangs = [j for j in [submit_or_not(c, replicas=2) for _ in range(4)] if j]
        jobs += gangs + [j for j in [submit_or_not(c) for _ in range(8)] if j]
        proxy.calm()
        for j in gangs:  # a Service that was refused is asked for again
            cl.wait_for(f"the Service of gang {j}", lambda: f"nightshift-{j}" in {
                s["metadata"]["name"] for s in rig.get("/api/v1/services")["items"]})
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        w.check()
        no_pods(c)
        cl.wait_for("no Service of a gang is left", lambda: not any(
            s["metadata"]["name"] in {f"nightshift-{j}" for j in gangs} for s in rig.get("/api/v1/services")["items"]))
        same((proxy.refused, proxy.hasty), (60, []))


@case("the daemon is killed at any moment while it starts jobs and gangs")
def _(rig):
    chance = random.Random(7)
    with daemon(rig) as (c, w):
        jobs = []
        for _ in range(8):
            for i in range(4):
                with contextlib.suppress(cl.Away):
                    jobs.append(submit_or_not(c, replicas=4 if i == 3 else 1))
            time.sleep(chance.random() * 0.6)
            c.kill_daemon()
            c.start()
            cl.wait_for("the socket", c.is_ready)
        jobs = [j for j in jobs if j]
        cl.wait_for("all of them run", lambda: all(c.job(j)["state"] == "running" for j in jobs))
        pods = collections.Counter(p["metadata"]["labels"][JOB] for p in c.pods()
                                   if p["metadata"].get("labels", {}).get(JOB))
        for j in jobs:
            same(pods[str(j)], c.job(j)["replicas"] if "replicas" in c.job(j) else pods[str(j)])
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        same({c.job(j)["run"] for j in jobs}, {1})
        w.check()
        no_pods(c)


def lease(rig):
    """Whose it is, and when it was renewed last, by the clock of this machine."""
    spec = rig.get(LEASE)["spec"]
    return spec["holderIdentity"], datetime.datetime.fromisoformat(spec["renewTime"].replace("Z", "+00:00"))


@case("two daemons: one decides, and another takes over when it dies and its lease has run out")
def _(rig):
    with daemon(rig) as (c, w), KubeCluster(rig) as other:
        other.start()
        first = c.submit(["sleep", "600"], **SMALL)
        c.wait_state(first, "running")
        cl.wait_for("the second waits", lambda: "lease.waiting" in log_of(other))
        mine = lease(rig)
        cl.wait_for("it is renewed", lambda: lease(rig)[1] > mine[1])
        assert not other.is_ready() and lease(rig)[0] == mine[0], log_of(other)
        c.kill_daemon()
        mine = lease(rig)
        cl.wait_for("the second takes over", other.is_ready)
        theirs = lease(rig)
        assert theirs[0] != mine[0] and (theirs[1] - mine[1]).total_seconds() >= LEASE_S, (mine, theirs)
        same(other.submit(["sleep", "600"], **SMALL), first)
        cl.wait_for("it knows of the pod", lambda: "another daemon" in (other.job(first)["message"] or ""))
        mark = other.submit(["sleep", "600"], **SMALL)
        other.wait_state(mark, "running")  # by now it would have removed what it does not like
        pods = [p for p in c.pods() if p["metadata"].get("labels", {}).get(JOB) == str(first)]
        assert pods and not pods[0]["metadata"].get("deletionTimestamp"), "the second removed the first one's pod"
        same(all_end(other, [mark]), {"succeeded": 1})
        cl.wait_for("nothing of the second is left", lambda: not other.job_pods(mark))
        other.kill_daemon()
        rig.delete(LEASE)
        c.up()
        same(c.job(first)["state"], "running")
        same(all_end(c, [first]), {"succeeded": 1})
        w.check()
        no_pods(c)


def stands_in_the_way(rig, first, second):
    """A pod of the first, which is dead, has the name of the second's; the job of both."""
    first.up()
    job = first.submit(["sleep", "600"], **SMALL)
    first.wait_state(job, "running")
    first.kill_daemon()
    rig.delete(LEASE)
    second.up()
    same(second.submit(["sleep", "600"], **SMALL), job)
    cl.wait_for("it says what is in its way", lambda: "another daemon" in (second.job(job)["message"] or ""))
    return job


@case("two daemons with a store each: cancelled by one, the other's pod of the same name stays")
def _(rig):
    with KubeCluster(rig) as first, KubeCluster(rig) as second:
        job = stands_in_the_way(rig, first, second)
        (theirs,) = second.job_pods(job)
        second.ask("POST", f"/v1/jobs/{job}/cancel")
        same(second.wait_end(job)["state"], "cancelled")
        mark = second.submit(["sleep", "600"], **SMALL)
        second.wait_state(mark, "running")  # by now it would have removed the pod
        same([(p["metadata"]["uid"], p["metadata"].get("deletionTimestamp")) for p in second.job_pods(job)],
             [(theirs["metadata"]["uid"], None)])
        same(all_end(second, [mark]), {"succeeded": 1})
        remove_pods(rig)
        no_pods(second)


@case("two daemons with a store each: a pod of one that has died is not taken for the other's of the same name")
def _(rig):
    with KubeCluster(rig) as first, KubeCluster(rig) as second:
        job = stands_in_the_way(rig, first, second)
        end_pods(rig)
        cl.wait_for("that pod has ended", lambda: all(p["status"]["phase"] == "Succeeded" for p in second.job_pods(job)))
        asked(rig, "POST", "pods", code="409")
        same(second.job(job)["state"], "starting")
        remove_pods(rig)
        second.wait_state(job, "running")
        same(all_end(second, [job]), {"succeeded": 1})
        no_pods(second)


@case("the store is deleted under jobs that run: they go on, as they were")
def _(rig):
    with daemon(rig) as (c, w):
        one = c.submit(["sleep", "600"], name="one", **SMALL)
        gang = c.submit(["sleep", "600"], name="gang", replicas=3, **SMALL)
        for j in (one, gang):
            c.wait_state(j, "running")
        before = {p["metadata"]["uid"] for j in (one, gang) for p in c.job_pods(j)}
        c.kill_daemon()
        shutil.rmtree(c.state)
        c.up()
        for j, name in ((one, "one"), (gang, "gang")):
            job = c.wait_state(j, "running")
            same((job["name"], job["run"]), (name, 1))
        same({p["metadata"]["uid"] for j in (one, gang) for p in c.job_pods(j)}, before)
        fresh = c.submit(["sleep", "600"], **SMALL)
        assert fresh > gang, fresh
        same(all_end(c, [one, gang, fresh]), {"succeeded": 3})
        w.check()
        no_pods(c)
        copied(c, [])


def lose_store(c):
    c.kill_daemon()
    shutil.rmtree(c.state)
    c.up()


@case("the store is deleted: jobs that wait, are held, frozen or of an array are there again, under their numbers")
def _(rig):
    gpu = {"resources": {"gpus": 4, "cpus": 0.1, "mem": "32Mi"}}
    with daemon(rig) as (c, w):
        full = c.submit(["sleep", "600"], name="full", replicas=6, **gpu)
        frozen = c.submit(["sleep", "600"], name="frozen", freeze={"mode": "requeue"}, **SMALL)
        array = c.submit(["sleep", "600"], name="array", array="4-6", **SMALL)
        members = [array, array + 1, array + 2]
        for j in (full, frozen, *members):
            c.wait_state(j, "running")
        queued = c.submit(["sleep", "600"], name="queued", priority="high", **gpu)
        held = c.submit(["sleep", "600"], name="held", held=True, **SMALL)
        after = c.submit(["sleep", "600"], name="after", after=[f"ok:{queued}"], **SMALL)
        later = c.submit(["sleep", "600"], name="later", array="0-1", **gpu)
        c.ask("POST", f"/v1/jobs/{frozen}/freeze")
        c.wait_state(frozen, "frozen")
        end_pods(rig, {array})  # whose row has the spec of all
        c.wait_state(array, "succeeded")
        last = c.submit(["sleep", "600"], name="last", held=True, **SMALL)
        c.ask("POST", f"/v1/jobs/{last}/cancel")
        c.wait_state(last, "cancelled")
        waiting = [frozen, queued, held, after, later, later + 1]
        alive = [full, array + 1, array + 2, *waiting]
        same(copied(c, alive)[frozen]["state"], "frozen")
        before = {j: c.job(j) for j in alive}
        lose_store(c)
        for j in alive:
            job = c.job(j) if j in waiting else c.wait_state(j, "running")
            for key in ("name", "user", "tenant", "state", "priority", "run", "submitted_ms", "replicas", "spec"):
                same((j, key, job[key]), (j, key, before[j][key]))
            same((job.get("array"), job.get("array_index")), (before[j].get("array"), before[j].get("array_index")))
        fresh = c.submit(["sleep", "600"], **SMALL)
        assert fresh > last, (fresh, last)
        c.kill_daemon()  # and with its new store it is as with the old one
        c.up()
        same({j: c.job(j)["state"] for j in waiting}, {j: before[j]["state"] for j in waiting})
        assert c.submit(["true"], held=True, **SMALL) == fresh + 1
        c.ask("POST", f"/v1/jobs/{fresh + 1}/cancel")
        c.ask("POST", f"/v1/jobs/{frozen}/thaw")
        same(c.wait_state(frozen, "running")["run"], 2)
        env = c.job_pods(frozen)[0]["spec"]["containers"][0]["env"]
        same([e["value"] for e in env if e["name"] == "NIGHTSHIFT_RESTART"], ["1"])
        c.ask("POST", f"/v1/jobs/{held}/release")
        same(all_end(c, [*alive, fresh]), {"succeeded": len(alive) + 1})
        w.check()
        no_pods(c)
        copied(c, [])


@case("the store is deleted under a tenant that only it knew: its jobs are kept until there is one again")
def _(rig):
    with daemon(rig) as (c, w):
        c.ask("PUT", "/v1/tenants/vision", {})
        one = c.submit(["sleep", "600"], tenant="vision", **SMALL)
        c.wait_state(one, "running")
        two = c.submit(["sleep", "600"], tenant="vision", held=True, **SMALL)
        three = c.submit(["sleep", "600"], **SMALL)
        c.wait_state(three, "running")
        copied(c, [one, two, three])
        uid = c.job_pods(one)[0]["metadata"]["uid"]
        lose_store(c)
        c.wait_state(three, "running")
        for j in (one, two):
            same(c.call("GET", f"/v1/jobs/{j}")[0], 404)
        assert "job.left" in log_of(c), log_of(c)
        fresh = c.submit(["sleep", "600"], **SMALL)
        assert fresh > three, fresh
        c.kill_daemon()
        c.up()
        copied(c, [one, two, three, fresh])  # also after a start with the new store
        c.ask("PUT", "/v1/tenants/vision", {})
        cl.wait_for("they are there", lambda: c.call("GET", f"/v1/jobs/{one}")[0] == 200)
        c.wait_state(one, "running")
        c.wait_state(two, "held")
        same([p["metadata"]["uid"] for p in c.job_pods(one)], [uid])
        c.ask("POST", f"/v1/jobs/{two}/release")
        same(all_end(c, [one, two, three, fresh]), {"succeeded": 4})
        w.check()
        no_pods(c)
        copied(c, [])


@case("copies in a burst: few at a time, each once, jobs start meanwhile, and none is left")
def _(rig):
    with Proxy(rig, grant(rig)) as proxy, daemon(rig, kubeconfig=proxy.kubeconfig) as (c, w):
        proxy.hold("/configmaps")
        first = c.submit(["sleep", "600"], array=f"0-{BURST - 1}", held=True, **SMALL)
        burst = range(first, first + BURST)
        cl.wait_for("copies are on their way", lambda: len(proxy.held) == COPIES_AT_A_TIME)
        one = c.submit(["sleep", "600"], **SMALL)
        c.wait_state(one, "running")  # with no copy answered: nothing else waits for them
        same(len(proxy.held), COPIES_AT_A_TIME)
        proxy.release()
        copied(c, [*burst, one])
        written = collections.Counter(w for w in proxy.writes if "/configmaps" in w[1])
        same([w for w, times in written.items() if times > 1], [])
        proxy.storm(40)
        for j in burst:
            c.ask("POST", f"/v1/jobs/{j}/cancel")
        proxy.calm()
        copied(c, [one])
        same(proxy.hasty, [])
        same(all_end(c, [one]), {"succeeded": 1})
        copied(c, [])
        w.check()
        no_pods(c)


@case("the disk of its state is full: submits are refused or wait, nothing is lost, and it goes on")
def _(rig):
    with KubeCluster(rig) as c, Witness(rig) as w:
        os.makedirs(c.state)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=711", "none", c.state], check=True)
        try:
            c.up()
            jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(4)]
            for j in jobs:
                c.wait_state(j, "running")
            with contextlib.suppress(OSError), open(f"{c.state}/ballast", "wb") as f:
                while True:
                    f.write(b"x" * 4096)
                    f.flush()
            with concurrent.futures.ThreadPoolExecutor(10) as pool:
                asked_for = []

                def is_full():
                    if sum(not one.done() for one in asked_for) < 10:
                        asked_for.append(pool.submit(submit_or_not, c))
                    return not c.is_ready()
                cl.wait_for("it says that it cannot write", is_full)
                same(submit_or_not(c), None)
                end_pods(rig)
                same(c.daemon.poll(), None)
                os.unlink(f"{c.state}/ballast")
                jobs += [j for j in (one.result() for one in asked_for) if j]
            cl.wait_for("it is ready", c.is_ready)
            jobs.append(cl.wait_for("a submit", lambda: submit_or_not(c)))
            same(all_end(c, jobs), {"succeeded": len(jobs)})
            same(c.ask("GET", "/v1/jobs?limit=500")["jobs"], [])  # none that nobody was told of
            w.check()
            no_pods(c)
        finally:
            c.kill_daemon()
            subprocess.run(["umount", "-l", c.state], check=False)


@case("a real node is lost: what may runs elsewhere, the rest has failed, and nothing stays")
def _(_rig):
    with Rig(real=True, node_grace="2h") as rig:
        image = init_image(rig.folder)
        for name in ("real1", "real2"):
            rig.real_node(name, images=[image])
        with daemon(rig, "--kube-lost-after", "1s") as (c, w):
            may = c.submit(["sleep", "600"], requeue=True, freeze={"mode": "requeue"}, **SMALL)
            c.wait_state(may, "running")
            node = c.job_pods(may)[0]["spec"]["nodeName"]
            jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(4)]
            for j in jobs:
                c.wait_state(j, "running")
            there = [j for j in jobs if c.job_pods(j)[0]["spec"]["nodeName"] == node]
            rig.stop(node)
            # What the controller would say after a while; by its grace, one that is only slow would be lost too.
            rig.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [
                {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}, "strategic")
            cl.wait_for("its second run, elsewhere", lambda: c.job(may)["run"] == 2 and
                        c.job(may)["state"] == "running")
            same({p["spec"]["nodeName"] for p in c.job_pods(may) if p["metadata"]["name"].endswith("-2-0")} & {node},
                 set())
            for j in there:
                end = c.wait_end(j)
                same((end["state"], end["end"]), ("failed", "lost"))
                cl.wait_for("its pod does not stay", lambda: not c.job_pods(j))
            rig.start(node)
            cl.wait_for("it is used again", lambda: {n["name"]: n["state"] for n in c.ask("GET", "/v1/nodes")["nodes"]}[node] == "up")
            mark = "/api/v1/namespaces/default/pods"
            rig.post(mark, {"metadata": {"name": "mark"}, "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [
                {"name": "c", "image": images.BUSYBOX, "command": ["true"]}]}})
            rig.wait(lambda: rig.get(f"{mark}/mark")["status"]["phase"] == "Succeeded", "its kubelet does what there is to do")
            same([p["metadata"]["name"] for p in c.job_pods(may)], [f"nightshift-{may}-2-0"])
            same(c.job(may)["run"], 2)
            w.check()


@contextlib.contextmanager
def many_nodes():
    with Rig(kwok=True) as rig:
        rig.kwok_nodes(6, gpus=4)
        yield rig


if __name__ == "__main__":
    sys.exit(case.on(many_nodes, lambda: why_not(real=True)))
