"""kube_faults_cases - what breaks under a daemon on Kubernetes, and what it makes of it.

Most of it on nodes that KWOK pretends: what counts is which pods there are, and a witness watches them all the
time.  Their programs end when `end_pods` says so."""
import collections
import contextlib
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
from kube_cluster import OWN, KubeCluster, Refused, Rig, grant, init_image, why_not
from kube_proxy import Proxy

case = Cases()
SMALL = {"resources": {"cpus": 0.1, "mem": "32Mi"}}
JOB = "nightshift.dev/job"
PATIENCE_S = 90


class Witness:
    """Sees every pod of ours come and go.  faults: what must never be."""

    def __init__(self, rig):
        self.rig, self.stopping = rig, False
        self.living, self.uids = {}, collections.defaultdict(set)
        self.faults, self.lock = [], threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join(10)

    def _run(self):
        while not self.stopping:
            connection = http.client.HTTPSConnection(self.rig.address, self.rig.ports["apiserver"], timeout=2,
                                                     context=self.rig.context)
            try:  # without a version a watch begins with all that is there
                connection.request("GET", f"/api/v1/pods?watch=1&timeoutSeconds=1800&labelSelector={JOB}")
                reply = connection.getresponse()
                self.living.clear()
                while not self.stopping:
                    line = reply.readline()
                    if not line:
                        break
                    self._event(json.loads(line))
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)
            finally:
                connection.close()

    def _event(self, event):
        pod = event["object"]
        if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
            return
        meta, labels = pod["metadata"], pod["metadata"]["labels"]
        key = (labels[JOB], labels["nightshift.dev/replica"])
        lives = (event["type"] != "DELETED" and pod["status"].get("phase") not in ("Succeeded", "Failed")
                 and not meta.get("deletionTimestamp"))
        with self.lock:
            if pod["spec"].get("nodeName"):
                self.uids[(meta["namespace"], meta["name"])].add(meta["uid"])
            here = self.living.setdefault(key, set())
            (here.add if lives else here.discard)(meta["uid"])
            if len(here) > 1:
                self.faults.append(f"job {key[0]} replica {key[1]} lives {len(here)} times")

    def check(self):
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


def all_end(c, jobs, patience_s=PATIENCE_S):
    """Ends what runs until every job is over; their states."""
    def over():
        with contextlib.suppress(OSError, http.client.HTTPException, Refused):
            end_pods(c.rig, set(jobs))
        time.sleep(0.3)
        states = collections.Counter(c.job(j)["state"] for j in jobs)
        return states if all(s in cl.ENDED for s in states) else None
    return cl.wait_for(f"{len(jobs)} jobs to end", over, patience_s)


def no_pods(c, patience_s=60):
    cl.wait_for("no pod of ours is left", lambda: not c.rig.get(f"/api/v1/pods?labelSelector={JOB}")["items"], patience_s)


def copies(c):
    """Copies of the daemon's jobs in the cluster: records by number.  0: what numbers may have been given out."""
    with open(f"{c.state}/kube-daemon", encoding="utf-8") as f:
        daemon_name = f.read()
    items = c.rig.get(f"/api/v1/namespaces/{OWN}/configmaps?labelSelector=nightshift.dev/copies-of")["items"]
    return {int(i["metadata"]["annotations"]["nightshift.dev/job"]): json.loads(i["data"]["record"]) for i in items
            if i["metadata"]["annotations"]["nightshift.dev/daemon"] == daemon_name}


def copied(c, jobs, patience_s=PATIENCE_S):
    """Waits until exactly these have copies; they."""
    def look():
        there = copies(c)
        there.pop(0, None)
        return there if set(there) == set(jobs) else None
    try:
        if not jobs:
            cl.wait_for("no copy is left", lambda: look() is not None, patience_s)
            return {}
        return cl.wait_for(f"copies of {len(jobs)} jobs", look, patience_s)
    except AssertionError as failure:
        raise AssertionError(f"{failure}: there are {sorted(copies(c))}") from failure


def remove_pods(rig):
    """What a case that failed left of ours."""
    for pod in rig.get(f"/api/v1/pods?labelSelector={JOB}")["items"]:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        with contextlib.suppress(Refused):
            rig.patch(path, {"metadata": {"finalizers": None}})
            rig.delete(f"{path}?gracePeriodSeconds=0")


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
            time.sleep(0.5)
        cl.wait_for("it says that it is away", lambda: "engine.away" in log_of(c), 40)
        same(c.daemon.poll(), None)
        rig.start("apiserver")
        cl.wait_for("it is back by itself", c.is_ready, 60)
        same(all_end(c, jobs + taken), {"succeeded": len(jobs + taken)})
        same({c.job(j)["run"] for j in jobs + taken}, {1})
        w.check()
        no_pods(c)


@case("etcd stands still for ten seconds under load")
def _(rig):
    with daemon(rig) as (c, w):
        jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(10)]
        rig.pause("etcd")
        try:
            jobs += [j for j in [submit_or_not(c) for _ in range(10)] if j]
            time.sleep(10)
        finally:
            rig.resume("etcd")
        cl.wait_for("it is ready", c.is_ready, 60)
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
            proxy.cut(expired=i % 2 == 0)
            end_pods(rig)
            time.sleep(0.7)
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        same({c.job(j)["run"] for j in jobs}, {1})
        w.check()
        no_pods(c)


@case("429 in storms: everything is done in the end, and it backs off")
def _(rig):
    with Proxy(rig, grant(rig)) as proxy, daemon(rig, kubeconfig=proxy.kubeconfig) as (c, w):
        jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(8)]
        jobs.append(c.submit(["sleep", "600"], replicas=4, **SMALL))
        proxy.storm(15)
        gangs = [j for j in [submit_or_not(c, replicas=2) for _ in range(4)] if j]
        jobs += gangs + [j for j in [submit_or_not(c) for _ in range(8)] if j]
        time.sleep(15)
        in_storm = proxy.counts["storm"]
        for j in gangs:  # a Service that was refused is asked for again
            cl.wait_for(f"the Service of gang {j}", lambda: f"nightshift-{j}" in {
                s["metadata"]["name"] for s in rig.get("/api/v1/services")["items"]})
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        w.check()
        no_pods(c)
        cl.wait_for("no Service of a gang is left", lambda: not any(
            s["metadata"]["name"] in {f"nightshift-{j}" for j in gangs} for s in rig.get("/api/v1/services")["items"]))
        # Some 30 tasks and as many copies, each with a request or two a second at the most, and what the daemon itself needs.
        assert proxy.counts["refused"] > 5 and in_storm < 50 * 2 * 15, proxy.counts


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
            cl.wait_for("the socket", c.is_ready, 60)
        jobs = [j for j in jobs if j]
        cl.wait_for("all of them run", lambda: all(c.job(j)["state"] == "running" for j in jobs), PATIENCE_S)
        pods = collections.Counter(p["metadata"]["labels"][JOB] for p in c.pods()
                                   if p["metadata"].get("labels", {}).get(JOB))
        for j in jobs:
            same(pods[str(j)], c.job(j)["replicas"] if "replicas" in c.job(j) else pods[str(j)])
        same(all_end(c, jobs), {"succeeded": len(jobs)})
        same({c.job(j)["run"] for j in jobs}, {1})
        w.check()
        no_pods(c)


@case("two daemons: one decides, and another takes over when it dies")
def _(rig):
    with daemon(rig) as (c, w), KubeCluster(rig) as other:
        first = c.submit(["sleep", "600"], **SMALL)
        c.wait_state(first, "running")
        other.start()
        time.sleep(6)
        assert not other.is_ready() and "lease.waiting" in log_of(other), log_of(other)
        c.kill_daemon()
        killed = time.monotonic()
        cl.wait_for("the second takes over", other.is_ready, 60)
        assert time.monotonic() - killed > 8, "sooner than the lease allows"
        time.sleep(2)
        pods = [p for p in c.pods() if p["metadata"].get("labels", {}).get(JOB) == str(first)]
        assert pods and not pods[0]["metadata"].get("deletionTimestamp"), "the second removed the first one's pod"
        other.kill_daemon()
        c.up()
        same(c.job(first)["state"], "running")
        same(all_end(c, [first]), {"succeeded": 1})
        w.check()
        no_pods(c)


@case("two daemons with a store each: a pod of one that has died is not taken for the other's of the same name")
def _(rig):
    with KubeCluster(rig) as first, KubeCluster(rig) as second:
        first.up()
        job = first.submit(["sleep", "600"], **SMALL)
        first.wait_state(job, "running")
        first.kill_daemon()
        second.up()
        same(second.submit(["sleep", "600"], **SMALL), job)
        cl.wait_for("it says what is in its way", lambda: "another daemon" in (second.job(job)["message"] or ""))
        end_pods(rig)
        cl.wait_for("that pod has ended", lambda: all(p["status"]["phase"] == "Succeeded" for p in second.job_pods(job)))
        time.sleep(3)  # it is asked for again and again
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


@case("copies in a burst: the API server is not flooded, jobs start meanwhile, and none is left")
def _(rig):
    with Proxy(rig, grant(rig)) as proxy, daemon(rig, kubeconfig=proxy.kubeconfig) as (c, w):
        first = c.submit(["sleep", "600"], array="0-1499", held=True, **SMALL)
        burst = range(first, first + 1500)
        begin, before = time.monotonic(), proxy.counts.total()
        one = c.submit(["sleep", "600"], **SMALL)
        c.wait_state(one, "running")
        took, asked = time.monotonic() - begin, proxy.counts.total() - before
        assert asked < 400 + 400 * took, (asked, took)  # 200 a second, and what the daemon itself needs
        proxy.storm(5)
        for j in burst:
            c.ask("POST", f"/v1/jobs/{j}/cancel")
        copied(c, [one], 180)
        same(all_end(c, [one]), {"succeeded": 1})
        copied(c, [])
        w.check()
        no_pods(c)


@case("the disk of its state is full: submits are refused, nothing is lost, and it goes on")
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
            refused = 0
            for _ in range(10):
                try:
                    status, answer = c.call("POST", "/v1/jobs", {"command": ["sleep", "600"], **SMALL}, timeout=3)
                    jobs += [answer["id"]] if status < 300 else []
                    refused += status >= 400
                except cl.Away:
                    refused += 1  # it waits
            end_pods(rig)
            same(c.daemon.poll(), None)
            os.unlink(f"{c.state}/ballast")
            cl.wait_for("it is ready", c.is_ready, 60)
            jobs.append(cl.wait_for("a submit", lambda: submit_or_not(c), 60))
            same(all_end(c, jobs), {"succeeded": len(jobs)})
            # What was not answered may have been taken: it is there, whole, or not at all.
            rest = [j["id"] for j in c.ask("GET", "/v1/jobs?limit=100")["jobs"]]
            all_end(c, rest)
            w.check()
            no_pods(c)
        finally:
            c.kill_daemon()
            subprocess.run(["umount", "-l", c.state], check=False)


@case("a real node is lost: what may runs elsewhere, the rest has failed, and nothing stays")
def _(_rig):
    with Rig(real=True, node_grace="6s") as rig:
        image = init_image(rig.folder)
        for name in ("real1", "real2"):
            rig.real_node(name, images=[image])
        with daemon(rig, "--kube-lost-after", "5s") as (c, w):
            may = c.submit(["sleep", "600"], requeue=True, freeze={"mode": "requeue"}, **SMALL)
            c.wait_state(may, "running")
            node = c.job_pods(may)[0]["spec"]["nodeName"]
            jobs = [c.submit(["sleep", "600"], **SMALL) for _ in range(4)]
            for j in jobs:
                c.wait_state(j, "running")
            there = [j for j in jobs if c.job_pods(j)[0]["spec"]["nodeName"] == node]
            rig.stop(node)
            cl.wait_for("its second run, elsewhere", lambda: c.job(may)["run"] == 2 and
                        c.job(may)["state"] == "running", 90)
            same({p["spec"]["nodeName"] for p in c.job_pods(may) if p["metadata"]["name"].endswith("-2-0")} & {node},
                 set())
            for j in there:
                end = c.wait_end(j)
                same((end["state"], end["end"]), ("failed", "lost"))
                cl.wait_for("its pod does not stay", lambda: not c.job_pods(j), 60)
            rig.start(node)
            time.sleep(5)
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
