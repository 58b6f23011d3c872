"""journal_count - reads a journal and counts for itself: who held what, who was entitled to what, was a limit passed.

A model of its own, from the words of docs/ops/journal.md and docs/guide/fairness.md: it shares no code with the core.
Jobs have one replica here, and all that want GPUs the same part of one.

  journal_count.py FILE     prints every fault and each tenant's sums; the exit status is 1 when there is a fault
"""
import collections
import json
import sys

GIVES_BACK = ("exited_ok", "exited_bad", "ended", "returned", "froze")
ENDS = ("exited_ok", "exited_bad", "ended")
UNLIMITED = float("inf")


class Tenant:
    def __init__(self, ev):
        self.name, self.parent = ev["name"], ev.get("parent")
        self.weight, self.guarantee = ev["weight_milli"], ev.get("guarantee_milli", 0)
        self.limit, self.user_limit = ev.get("limit", {}), ev.get("user_limit", {})
        self.models = [(set(names.split("|")), most) for names, most in ev.get("model_limit", [])]
        self.pools = ev["pools"].split("|") if "pools" in ev else None
        self.until, self.budget = ev.get("until_ms"), ev.get("budget")
        self.budget_from, self.budget_until = ev.get("budget_from_ms", 0), ev.get("budget_until_ms", 0)


class Job:
    def __init__(self, ev):
        self.tenant, self.user = ev["tenant"], ev["user"]
        assert ev["replicas"] == 1, "one replica is all that is counted here"
        self.want = {"gpus": ev.get("gpus", 0) * 1000 + ev.get("gpu_milli", 0), "cpus": ev.get("cpu_milli", 0),
                     "memory": ev.get("mem_mib", 0), "jobs": 1}
        self.state = "held" if ev.get("held") else "waits"
        self.slot = None


class Count:
    """Feed it events; faults are what was wrong, sums are of the time between `begin` and `end`."""

    def __init__(self):
        self.tenants, self.jobs, self.nodes, self.pool_of = {}, {}, [], {}
        self.used = collections.defaultdict(collections.Counter)  # by tenant, and by (tenant, user)
        self.on_model = collections.defaultdict(collections.Counter)  # by tenant
        self.waits = collections.Counter()  # thousandths of GPUs, by (tenant, user)
        self.on_gpu, self.on_node = collections.Counter(), collections.defaultdict(collections.Counter)
        self.spent = collections.Counter()  # by tenant, in its period
        self.piece = 0  # what a job takes of a GPU
        self.faults, self.runs = [], collections.Counter()
        self.t, self.counts, self.entitled_now = None, False, None
        self.got, self.entitled, self.window_ms = collections.Counter(), collections.Counter(), 0
        self.wanting_ms = collections.Counter()  # how long each wanted more than it was entitled to

    # ---- the tree ----

    def path(self, name):
        while name:
            yield self.tenants[name]
            name = self.tenants[name].parent

    def children(self, name):
        return [t for t in self.tenants.values() if t.parent == name]

    def leaves(self):
        parents = {t.parent for t in self.tenants.values()}
        return [t.name for t in self.tenants.values() if t.name not in parents]

    def is_closed(self, t):
        """Nothing more of it starts."""
        over = t.until is not None and self.t >= t.until
        return over or self.budget_is_spent(t) or not any(self.may_use(t, n) for n in range(len(self.nodes)))

    def budget_is_spent(self, t):
        inside = t.budget is not None and t.budget_from <= self.t < t.budget_until
        return inside and self.spent[t.name] >= t.budget

    def may_use(self, t, node):
        return t.pools is None or self.pool_of[self.nodes[node]["name"]] in t.pools

    def demand(self, t):
        """What it could hold now, if all were its own."""
        if self.is_closed(t):
            return self.used[t.name]["gpus"]
        below = self.children(t.name)
        if below:
            want = sum(self.demand(x) for x in below)
        else:
            want = 0
            for key in [k for k in self.used if isinstance(k, tuple) and k[0] == t.name] + \
                       [k for k in self.waits if k[0] == t.name and k not in self.used]:
                want += min(self.used[key]["gpus"] + self.waits[key], t.user_limit.get("gpus", UNLIMITED),
                            t.user_limit.get("jobs", UNLIMITED) * self.piece)
        models = [most for names, most in t.models if {n["model"] for n in self.nodes} <= names]
        return min([want, t.limit.get("gpus", UNLIMITED), t.limit.get("jobs", UNLIMITED) * self.piece, *models])

    def share_out(self, parent, capacity, out):
        """Guarantees first, the rest by weight, nobody more than it wants; then inside of each."""
        want = {t.name: self.demand(t) for t in self.children(parent)}
        has = {name: min(self.tenants[name].guarantee, want[name]) for name in want}
        left = capacity - sum(has.values())
        while left > 1e-6:
            open_ = [name for name in want if want[name] - has[name] > 1e-6]
            if not open_:
                break
            level = min([left / sum(self.tenants[name].weight for name in open_)] +
                        [(want[name] - has[name]) / self.tenants[name].weight for name in open_])
            for name in open_:
                has[name] += level * self.tenants[name].weight
                left -= level * self.tenants[name].weight
        for name, amount in has.items():
            out[name] = (amount, want[name])
            self.share_out(name, amount, out)

    # ---- time ----

    def pass_to(self, t):
        ms = 0 if self.t is None else max(0, t - self.t)
        if ms and self.counts:
            if self.entitled_now is None:
                self.entitled_now = {}
                self.share_out(None, sum(n.get("gpus", 0) for n in self.nodes) * 1000, self.entitled_now)
            self.window_ms += ms
            for name, (amount, want) in self.entitled_now.items():
                self.got[name] += self.used[name]["gpus"] * ms
                self.entitled[name] += amount * ms
                self.wanting_ms[name] += ms if want > amount + 1 else 0
        for t_ in self.tenants.values() if ms else ():
            inside = min(t, t_.budget_until) - max(self.t, t_.budget_from)
            self.spent[t_.name] += self.used[t_.name]["gpus"] * max(0, inside)
            if t_.budget is not None and self.t < t_.budget_until <= t:
                self.entitled_now = None
            if t_.budget is not None and self.spent[t_.name] >= t_.budget:
                self.entitled_now = None
            if t_.until is not None and self.t < t_.until <= t:
                self.entitled_now = None
        self.t = t if self.t is None else max(t, self.t)

    def begin(self):
        self.counts, self.entitled_now = True, None

    def end(self):
        self.counts = False

    # ---- events ----

    def fault(self, what):
        self.faults.append(f"{self.t}: {what}")

    def feed(self, ev):
        if "ev" not in ev:  # the head of a segment
            if self.t is not None:
                self.fault("another segment begins: this counts one")
            return
        self.pass_to(ev["t"])
        act = getattr(self, f"see_{ev['ev']}", None)
        if act:
            self.entitled_now = None
            act(ev)

    def see_tenant(self, ev):
        if ev.get("removed"):
            self.tenants.pop(ev["name"])
            return
        before = self.tenants.get(ev["name"])
        self.tenants[ev["name"]] = Tenant(ev)
        if before and before.budget_from != ev.get("budget_from_ms", 0):
            self.spent[ev["name"]] = 0

    def see_node(self, ev):
        self.nodes.append(ev)
        self.pool_of[ev["name"]] = ev.get("pool", "-")

    def see_node_pool(self, ev):
        self.pool_of[ev["name"]] = ev.get("pool", "-")

    def see_submit(self, ev):
        if ev["job"] in self.jobs:
            self.fault(f"job {ev['job']} was submitted twice")
        job = self.jobs[ev["job"]] = Job(ev)
        if job.want["gpus"]:
            assert self.piece in (0, job.want["gpus"]), "jobs of one size are all that is counted here"
            self.piece = job.want["gpus"]
        if job.state == "waits":
            self.waits[job.tenant, job.user] += job.want["gpus"]

    def see_place(self, ev):
        job = self.jobs.get(ev["job"])
        if not job or job.state != "waits":
            self.fault(f"job {ev['job']} was placed, and it {job.state if job else 'is unknown'}")
            return
        job.state, job.slot = "holds", ev["slots"][0]
        self.waits[job.tenant, job.user] -= job.want["gpus"]
        self.runs[ev["job"]] += 1
        self.charge(job, 1)
        self.check_start(ev["job"], job)

    def see_job(self, ev):
        job = self.jobs.get(ev["job"])
        if not job or job.state == "over":
            self.fault(f"job {ev['job']} {ev['what']}, and it is {'over' if job else 'unknown'}")
        elif ev["what"] in GIVES_BACK:
            if job.state != "holds":
                self.fault(f"job {ev['job']} {ev['what']}, and it held nothing")
                return
            self.charge(job, -1)
            job.state = "over" if ev["what"] in ENDS else "waits"
            if job.state == "waits":
                self.waits[job.tenant, job.user] += job.want["gpus"]
        elif ev["what"] == "cancel" and job.state != "holds":
            if job.state == "waits":
                self.waits[job.tenant, job.user] -= job.want["gpus"]
            job.state = "over"

    def charge(self, job, sign):
        node, mask, milli = job.slot
        self.used[job.tenant, job.user].update({k: sign * v for k, v in job.want.items()})
        for t in self.path(job.tenant):
            self.used[t.name].update({k: sign * v for k, v in job.want.items()})
            self.on_model[t.name][self.nodes[node]["model"]] += sign * job.want["gpus"]
        for gpu in range(mask.bit_length()):
            self.on_gpu[node, gpu] += sign * milli * (mask >> gpu & 1)
        self.on_node[node].update({"cpu_milli": sign * job.want["cpus"], "mem_mib": sign * job.want["memory"]})

    def check_start(self, number, job):
        """Whatever a limit speaks of grows only here."""
        node, mask, milli = job.slot
        if bin(mask).count("1") * milli != job.want["gpus"]:
            self.fault(f"job {number} wants {job.want['gpus']} and got {bin(mask).count('1')} x {milli}")
        for gpu in range(mask.bit_length()):
            if self.on_gpu[node, gpu] > 1000:
                self.fault(f"GPU {gpu} is given {self.on_gpu[node, gpu]} times in a thousand")
        for what, amount in self.on_node[node].items():
            if amount > self.nodes[node][what]:
                self.fault(f"{what} of the machine: {amount}")
        self.check_limit(f"{job.user} of {job.tenant}", self.used[job.tenant, job.user],
                         self.tenants[job.tenant].user_limit)
        for t in self.path(job.tenant):
            self.check_limit(t.name, self.used[t.name], t.limit)
            for names, most in t.models:
                held = sum(v for model, v in self.on_model[t.name].items() if model in names)
                if held > most:
                    self.fault(f"{t.name} holds {held} of {'|'.join(sorted(names))}, and may {most}")
            if t.until is not None and self.t >= t.until:
                self.fault(f"job {number} starts when {t.name} has expired")
            if self.budget_is_spent(t):
                self.fault(f"job {number} starts when {t.name} has spent {self.spent[t.name]} of {t.budget}")
            if not self.may_use(t, node):
                self.fault(f"job {number} of {t.name} is on a machine outside of its pools")

    def check_limit(self, who, used, limit):
        for what, most in limit.items():
            if what in used and used[what] > most:
                self.fault(f"{who} holds {used[what]} {what}, and may {most}")

    # ---- results ----

    def backlogged(self):
        """Leaves that always wanted more than they were entitled to."""
        return [name for name in self.leaves() if self.window_ms and self.wanting_ms[name] == self.window_ms]

    def off(self, name):
        """By which part it had more than it was entitled to."""
        return self.got[name] / self.entitled[name] - 1


def count(lines, window=None):
    """The whole of a journal; window: (from, until), both included in it as times of events."""
    c = Count()
    for line in lines:
        ev = json.loads(line)
        for when, act in zip(window or (), (c.begin, c.end)):
            if c.t is not None and c.t < when <= ev.get("t", 0):
                c.pass_to(when)
                act()
        c.feed(ev)
    return c


def report(c):
    for name in sorted(c.got):
        hours = f"{c.got[name] / 1e6:9.2f} GPU s, entitled to {c.entitled[name] / 1e6:9.2f}"
        mark = f" {100 * c.off(name):+.2f} %" if name in c.backlogged() else ""
        yield f"{name:12} {hours}{mark}"


def main(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    times = [json.loads(line)["t"] for line in lines if '"ev":"place"' in line]
    c = count(lines, (times[0], times[-1]) if times else None)
    print("\n".join([*report(c), *c.faults]))
    return bool(c.faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
