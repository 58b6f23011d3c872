"""account - what a system costs: CPU of everything it started, memory of its controller.

CPU is counted by the kernel for a control group, so short-lived children count too, and what other
programs do meanwhile does not.  Kernel threads are not in it.
"""
import os

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


def memory_mib(pid):
    """(resident, proportional): the second one counts what is shared with others in part."""
    figures = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f:
            words = line.split()
            figures[words[0]] = words[1]
    return int(figures["Rss:"]) / 1024, int(figures["Pss:"]) / 1024
