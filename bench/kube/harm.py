"""harm - how long a second daemon takes to take over, and how fast requests come in a burst of copies and in a storm of 429."""
import concurrent.futures
import os
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import site_of as st  # noqa: E402
import cluster as cl  # noqa: E402
from kube_proxy import Proxy  # noqa: E402

COPIES = 1500
STORM_JOBS = 30
REFUSALS = 300
JOB = {"command": ["sleep", "600"], "resources": {"cpus": 0.1, "mem": "32Mi"}}
MARK = "nightshift.dev/job"


def log_of(c):
    with open(c.log_path, encoding="utf-8", errors="replace") as f:
        return f.read()


def takeover(site):
    """From the death of the daemon that decides until another one does."""
    kubeconfig = site.kubeconfig
    with st.kube_cluster.KubeCluster(site.rig, kubeconfig=kubeconfig) as first, \
            st.kube_cluster.KubeCluster(site.rig, kubeconfig=kubeconfig) as second:
        first.up()
        second.start()
        cl.wait_for("the second waits", lambda: "lease.waiting" in log_of(second))
        first.kill_daemon()
        killed = time.monotonic()
        cl.wait_for("the second takes over", second.is_ready)
        return {"takeover_s": time.monotonic() - killed}


def end_all(c, jobs):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda j: c.ask("POST", f"/v1/jobs/{j}/cancel"), jobs))
    for pod in c.rig.get(f"/api/v1/pods?labelSelector={MARK}")["items"]:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        c.rig.patch(path, {"metadata": {"finalizers": None}})
        c.rig.delete(f"{path}?gracePeriodSeconds=0")


def copies(site):
    """An array that is held: each of its jobs is copied."""
    with Proxy(site.rig, site.kubeconfig) as proxy, \
            st.kube_cluster.KubeCluster(site.rig, kubeconfig=proxy.kubeconfig) as c:
        c.up()
        before, began = proxy.requests, time.monotonic()
        c.ask("POST", "/v1/jobs", {**JOB, "array": f"0-{COPIES - 1}", "held": True})
        cl.wait_for("all are copied", lambda: sum("/configmaps" in w[1] for w in list(proxy.writes)) >= COPIES)
        took = time.monotonic() - began
        return {"copies_s": COPIES / took, "copies_requests_s": (proxy.requests - before) / took}


def storm(site):
    """Jobs that start while three of four requests are refused."""
    with Proxy(site.rig, site.kubeconfig) as proxy, \
            st.kube_cluster.KubeCluster(site.rig, kubeconfig=proxy.kubeconfig) as c:
        c.up()
        proxy.storm(REFUSALS)
        before, began = proxy.requests, time.monotonic()
        jobs = [c.ask("POST", "/v1/jobs", JOB)["id"] for _ in range(STORM_JOBS)]
        proxy.calm()
        took = time.monotonic() - began
        figures = {"storm_requests_s": (proxy.requests - before) / took, "storm_s": took}
        cl.wait_for("all run", lambda: all(c.job(j)["state"] == "running" for j in jobs))
        end_all(c, jobs)
        return figures
