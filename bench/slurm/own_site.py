"""own_site - Nightshift on this machine, as the tests start it: nightshiftd and its keeper, jobs in containers.

The run folder is a tmpfs, as /run is on every machine; the state is on the disk that Slurm's is on.
"""
import os
import subprocess
import sys

import account
import clients

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("NIGHTSHIFT_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import cluster  # noqa: E402

CPUS = 64


def missing():
    """A reason, or None."""
    return cluster.why_not()


class OwnSite:
    kind = "a container each"

    def __init__(self, name):
        self.name = name
        self.cluster = cluster.Cluster(["--cpus", str(CPUS)])
        self.work = f"{self.cluster.state}/homes/root"  # a job sees its home, not the /tmp that we are in
        self.env = {"PATH": clients.PATH, "NIGHTSHIFT_SERVER": f"unix:{self.cluster.run}/api.sock"}
        self.words = {}
        for word in ("sbatch", "squeue", "scancel"):  # by link, as an installation has them
            link = f"{self.cluster.libexec}/{word}"
            os.symlink(f"{cluster.BUILD}/nightshift", link)
            self.words[word] = [link]
        self.words["run"] = [f"{cluster.BUILD}/nightshift", "run", "--"]
        self.groups = [account.Group(f"{self.cluster.cgroup}-daemons", make=True),
                       account.Group(self.cluster.cgroup, make=False)]

    def start(self):
        os.mkdir(self.cluster.run)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=711,size=64m", "none", self.cluster.run], check=True)
        self.cluster.start(before=self.groups[0].enter)
        self.cluster.wait_ready()

    def cancel_all(self):
        jobs = self.cluster.ask("GET", "/v1/jobs?limit=1000")["jobs"]
        while jobs:
            clients.say(self, [*self.words["scancel"], *[str(job["id"]) for job in jobs]])
            jobs = self.cluster.ask("GET", "/v1/jobs?limit=1000")["jobs"]

    def cpu_s(self):
        return sum(group.cpu_s() for group in self.groups)

    def controller_pid(self):
        return self.cluster.daemon.pid

    def connection(self):
        return cluster.UnixConnection(f"{self.cluster.run}/api.sock", clients.PATIENCE_S)

    def stop(self):
        self.cluster.close()
        self.groups[0].remove()
