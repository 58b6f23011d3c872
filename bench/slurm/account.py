"""account - what a system costs: CPU of everything it started, memory of its controller.

CPU is counted by the kernel for a control group, so short-lived children count too, and what other
programs do meanwhile does not.  Kernel threads are not in it.
"""
import os
import resource
import time

ROOT = "/sys/fs/cgroup"
# Where the kernel keeps the count on v2 and on the usual layouts of v1: (tree, file, units a second).
TREES = (("", "cpu.stat", 1e6), ("cpuacct", "cpuacct.usage", 1e9), ("cpu,cpuacct", "cpuacct.usage", 1e9))


def _tree():
    for tree, name, units in TREES:
        base = os.path.join(ROOT, tree)
        marker = "cgroup.controllers" if tree == "" else "cgroup.procs"
        if os.path.exists(os.path.join(base, marker)):
            return base, name, units
    return None


class Group:
    """A control group, made for daemons that enter it before they start, or another's that is only read."""

    def __init__(self, name, make):
        tree = _tree()
        if not tree:
            raise SystemExit("bench/slurm: no control groups to count CPU with")
        self.path, self.made = os.path.join(tree[0], name), make
        self.file, self.units = tree[1:]
        if make:
            os.makedirs(self.path, exist_ok=True)

    def enter(self):
        """For a child between fork and exec."""
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write("0")

    def cpu_s(self):
        try:
            with open(os.path.join(self.path, self.file), encoding="ascii") as f:
                words = f.read().split()
        except FileNotFoundError:
            return 0.0
        return int(words[words.index("usage_usec") + 1] if "usage_usec" in words else words[0]) / self.units

    def pids(self):
        with open(os.path.join(self.path, "cgroup.procs"), encoding="ascii") as f:
            return [int(word) for word in f.read().split()]

    def remove(self):
        if self.made and os.path.isdir(self.path):
            os.rmdir(self.path)


def _machine_busy_s():
    """CPU seconds since boot that were not idle, nor waiting for a disk, nor counted twice as a guest's."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(word) for word in f.readline().split()[1:]]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Others:
    """How busy the machine is with what is not ours: neither a site's, nor this program's or its clients'."""

    def __init__(self, sites):
        self.sites, self.began = sites, time.monotonic()
        self.at_first = self._now()

    def _now(self):
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours = sum(u.ru_utime + u.ru_stime for u in used) + sum(site.cpu_s() for site in self.sites)
        return _machine_busy_s() - ours

    def cores(self):
        return max(0.0, (self._now() - self.at_first) / (time.monotonic() - self.began))


def memory_mib(pid):
    """(resident, proportional): the second one counts what is shared with others in part."""
    figures = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f:
            words = line.split()
            figures[words[0]] = words[1]
    return int(figures["Rss:"]) / 1024, int(figures["Pss:"]) / 1024
