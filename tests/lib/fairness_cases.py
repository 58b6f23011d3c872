"""fairness_cases - whose the GPUs were, on a real daemon whose clock is turned: over a midnight, a kill and a drain.

What is expected is worked out here from the journal alone, event by event: what was held, what was free, what each
tenant was entitled to.  The daemon's own sums, in all forms, have to be the same.
"""
import collections
import csv
import datetime
import io
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402
from take_cases import cancel_all, restart, says  # noqa: E402
from windows_cases import Clock  # noqa: E402

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
GPUS = 4
GIVES_BACK = ("exited_ok", "exited_bad", "ended", "returned", "froze")
SETTINGS = """
tenants: { default: { weight: 1, members: [uid-70001] }, vision: { weight: 3, members: [uid-70002] }, "=cmd": {} }
"""
case = Cases()


def make():
    c = cl.Cluster()
    c.clock = Clock(c)
    c.env["NIGHTSHIFT_TEST_CLOCK"] = c.clock.path
    # Tomorrow's noon, whatever the time is here: a clock that is set back counts nothing until it is there again.
    c.clock.stand_at((c.clock.now_ms() // DAY_MS + 1) * DAY_MS + DAY_MS // 2)
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    return c


# ---- what is expected ----

class World:
    """The journal's events, and the GPU-milliseconds that lie between them, by day."""
    def __init__(self):
        self.tenant, self.t = {}, None
        self.begin_anew()
        self.sums = collections.defaultdict(lambda: collections.Counter())  # (day, tenant or None)

    def rates(self):
        """In thousandths of a GPU, now."""
        got = collections.Counter()
        on_node = collections.Counter()
        for job, slots in self.held.items():
            for node, mask, milli in slots:
                got[self.tenant[job]] += bin(mask).count("1") * milli
                on_node[self.nodes[node]] += bin(mask).count("1") * milli
        total = sum(self.size.values())
        idle = sum(size - on_node[name] for name, size in self.size.items() if self.up[name])
        capacity, weights = idle + sum(got.values()), sum(self.weight.values())
        yield None, {"total": total, "got": sum(got.values()), "idle": idle, "capacity": capacity,
                     "away": total - capacity}
        entitled = {name: capacity * w / weights for name, w in self.weight.items()}
        over = {name: max(0, got[name] - e) for name, e in entitled.items()}
        left = {name: max(0, e - got[name]) for name, e in entitled.items()}
        part = sum(over.values()) / (sum(left.values()) or 1)
        for name, e in entitled.items():
            wanted = sum(milli for job, milli in self.waits.items() if self.tenant[job] == name)
            yield name, {"entitled": e, "got": got[name], "borrowed": over[name], "lent": left[name] * part,
                         "frozen": 0, "wanted": wanted}

    def pass_to(self, t):
        while self.t is not None and self.t < t:
            day = self.t // DAY_MS
            until = min(t, (day + 1) * DAY_MS)
            for name, rate in self.rates():
                for key, milli in rate.items():
                    self.sums[day, name][key] += milli * (until - self.t)
            self.t = until
        self.t = t if self.t is None else max(t, self.t)

    def begin_anew(self):
        """A segment: it begins with the events that make the state as it was, whenever those were."""
        self.weight, self.up, self.size, self.nodes = {}, {}, {}, []
        self.held, self.waits = {}, {}
        self.restores = self.t is not None

    def event(self, ev):
        kind = ev["ev"]
        if kind == "ledger":  # the last of them
            self.restores = False
        if not self.restores:
            self.pass_to(ev["t"])
        if kind == "tenant":
            self.weight[ev["name"]] = ev["weight_milli"]
        elif kind == "node":
            self.nodes.append(ev["name"])
            self.size[ev["name"]], self.up[ev["name"]] = ev.get("gpus", 0) * 1000, True
        elif kind == "node_change":
            self.size[ev["name"]] = ev.get("gpus", 0) * 1000
        elif kind == "node_state":
            self.up[ev["name"]] = ev["state"] == "up"
        elif kind == "submit":
            self.tenant[ev["job"]] = ev["tenant"]
            self.waits[ev["job"]] = ev.get("gpus", 0) * 1000
        elif kind == "place":
            self.waits.pop(ev["job"])
            self.held[ev["job"]] = ev["slots"]
        elif kind == "job" and ev["what"] in GIVES_BACK:
            self.held.pop(ev["job"])
        elif kind == "job" and ev["what"] == "cancel":
            self.waits.pop(ev["job"], None)

    def hours(self, day, name):
        """Of all days when it is None."""
        sums = collections.Counter()
        for (at, who), each in self.sums.items():
            if who == name and day in (None, at):
                sums.update(each)
        return {f"{key}_gpu_hours": v / 3.6e9 for key, v in sums.items()}


def expected(c, now_ms):
    world = World()
    for line in c.ask("GET", "/v1/journal").splitlines():
        ev = json.loads(line)
        if "ev" not in ev:  # the head of a segment
            world.begin_anew()
        elif ev["t"] <= now_ms:  # and not what came after the answer
            world.event(ev)
    world.pass_to(now_ms)
    return world


def heads(c):
    """Of the journal: segments."""
    return len([line for line in c.ask("GET", "/v1/journal").splitlines() if "ev" not in json.loads(line)])


def day_number(text):
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def check_row(row, want, what):
    for key, hours in want.items():
        # An entitlement is given to the thousandth of a GPU, and what is lent follows from it.
        off = 0.001 * 30 if key.split("_")[0] in ("entitled", "lent", "borrowed") else 0
        assert abs(row[key] - hours) <= 2e-6 + off, f"{what}: {key} is {row[key]}, not {hours}"


def check_identities(answer, what):
    """Of each day, or of all: without knowing anything but the rows."""
    for m in answer["machines"]:
        rows = [r for r in answer["tenants"] if r.get("day") == m.get("day")]
        sums = collections.Counter()
        for r in rows:
            sums.update({k: v for k, v in r.items() if k.endswith("hours")})
        for name, a, b in (("total", m["total_gpu_hours"],
                            m["got_gpu_hours"] + m["idle_gpu_hours"] + m["away_gpu_hours"]),
                           ("entitled", sums["entitled_gpu_hours"], m["capacity_gpu_hours"]),
                           ("got", sums["got_gpu_hours"], m["got_gpu_hours"]),
                           ("lent", sums["lent_gpu_hours"], sums["borrowed_gpu_hours"])):
            assert abs(a - b) < 1e-5, f"{what} {m}: {name}: {a} and {b}"


def settle(c):
    """What happened before is in the journal when this is answered."""
    number = c.submit(["true"], held=True, tenant="default")
    c.ask("POST", f"/v1/jobs/{number}/cancel")


def check_all(c):
    """Every form of the answer against the journal; returns the answer by day."""
    settle(c)
    days = c.ask("GET", "/v1/fairness?by=day")
    world = expected(c, days["to_ms"])
    for row in days["tenants"]:
        check_row(row, world.hours(day_number(row["day"]), row["tenant"]), f"{row['day']} {row['tenant']}")
    for row in days["machines"]:
        check_row(row, world.hours(day_number(row["day"]), None), f"{row['day']} machines")
    same(sorted({(day_number(r["day"]), r["tenant"]) for r in days["tenants"]}),
         sorted(key for key, sums in world.sums.items() if key[1] and any(sums.values())))
    check_identities(days, "by day")
    total = c.ask("GET", "/v1/fairness")
    world = expected(c, total["to_ms"])
    for row in total["tenants"]:
        check_row(row, world.hours(None, row["tenant"]), row["tenant"])
    check_row(total["machines"][0], world.hours(None, None), "machines")
    check_identities(total, "in all")
    return days


def usage_by_day(c):
    """What runs come to, by day and tenant: the other way to count what was got."""
    return {(row["day"], row["tenant"]): row["gpu_hours"]
            for row in c.ask("GET", "/v1/usage?group=day,tenant")["rows"]}


def job(c, tenant, gpus):
    return c.submit(["sleep", "100000"], tenant=tenant, resources={"gpus": gpus, "cpus": 1, "mem": "64Mi"},
                    freeze={"mode": "none"})


def turn(c, hours):
    """Between two turns it stands, so that what a slow machine takes is nobody's time."""
    c.clock.stand_at(c.clock.now_ms() + int(hours * HOUR_MS))


# ---- cases ----

@case("two tenants, a midnight, a kill -9 and a drain: every GPU-hour is somebody's, as the journal says")
def _(c):
    midnight = (c.clock.now_ms() // DAY_MS + 1) * DAY_MS
    c.clock.stand_at(midnight - HOUR_MS)
    borrows = job(c, "default", 3)
    c.wait_state(borrows, "running")
    turn(c, 0.25)
    small = job(c, "vision", 1)
    waits = job(c, "vision", 2)
    c.wait_state(small, "running")
    turn(c, 0.5)
    check_all(c)
    c.kill_daemon()
    c.clock.stand_at(midnight + 2 * HOUR_MS)  # it is away at midnight; the jobs go on
    c.start()
    c.wait_ready()
    check_all(c)
    c.ask("POST", f"/v1/jobs/{borrows}/cancel")
    c.wait_end(borrows)
    c.wait_state(waits, "running")
    turn(c, 1.5)
    name = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    c.ask("POST", f"/v1/nodes/{name}/drain")
    turn(c, 1)  # 3 GPUs are held there still, the fourth is away
    c.ask("POST", f"/v1/jobs/{small}/cancel")
    c.wait_end(small)
    turn(c, 1)
    c.ask("POST", f"/v1/nodes/{name}/resume")
    days = check_all(c)
    same(len(days["machines"]), 2)
    away, idle = (days["machines"][1][f"{key}_gpu_hours"] for key in ("away", "idle"))
    assert 3 <= away < 3.001 and 1.5 <= idle < 1.501, days["machines"]
    got = {(r["day"], r["tenant"]): r["got_gpu_hours"] for r in c.ask("GET", "/v1/fairness?by=day")["tenants"]}
    for key, hours in usage_by_day(c).items():
        assert abs(got[key] - hours) < 1e-4, f"{key}: {got[key]} by the ledger, {hours} by the runs"
    assert sum(r["borrowed_gpu_hours"] for r in days["tenants"]) > 6, days
    assert sum(r["wanted_gpu_hours"] for r in days["tenants"]) > 5, days


@case("after a stop and a start the days that are over are as they were, and the command line says that it sums up")
def _(c):
    before = check_all(c)
    c.daemon.send_signal(signal.SIGTERM)
    c.daemon.wait(timeout=cl.PATIENCE_S)
    c.start()
    c.wait_ready()
    after = check_all(c)
    first = before["machines"][0]["day"]
    for part in ("machines", "tenants"):
        same([r for r in after[part] if r["day"] == first], [r for r in before[part] if r["day"] == first])
    words = says(c, "usage", "--fairness", "-o", "wide")
    lines = words.splitlines()
    same(lines[0].split(), ["TENANT", "ENTITLED", "GOT", "OF", "ENTITLED", "LENT", "BORROWED", "FROZEN", "WANTED"])
    assert "\nIt sums up: " in words and "(others)" not in words, words
    by_day = says(c, "usage", "--fairness", "--by", "day")
    assert by_day.startswith("DAY ") and f"\n{first} " in by_day, by_day


@case("CSV has the same rows, quoted, and none of its cells is a formula")
def _(c):
    said = says(c, "usage", "--fairness", "--by", "day", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(said, newline="")))
    answer = c.ask("GET", "/v1/fairness?by=day")
    names = sorted({r["tenant"] for r in rows if r["of"] == "tenant"})
    same(names, ["'=cmd", "default", "vision"])
    same(len(rows), len(answer["tenants"]) + len(answer["machines"]))
    first = [r for r in answer["tenants"] if r["day"] == rows[0]["day"]]
    for want, row in zip(first, rows):
        same(row["tenant"].removeprefix("'"), want["tenant"])
        same(float(row["got_gpu_hours"]), want["got_gpu_hours"])
        same((row["of"], row["idle_gpu_hours"]), ("tenant", ""))
    for path in ("/v1/usage?format=csv&group=day,model", "/v1/fairness?format=csv"):
        text = c.ask("GET", path)
        assert "\r\n" in text and not any(line.startswith(("=", "+", "-", "@")) for line in text.splitlines()), text
    same(c.ask("GET", "/v1/usage?format=csv&group=day,model").splitlines()[0], "day,model,gpu_hours,cpu_hours,runs")
    for accept, kind in (("text/csv", "text/csv; charset=utf-8"), ("*/*", "application/json")):
        conn = cl.UnixConnection(f"{c.run}/api.sock", cl.PATIENCE_S)
        conn.request("GET", "/v1/usage", headers={"Accept": accept})
        same(conn.getresponse().headers["Content-Type"], kind)
        conn.close()
    words = says(c, "usage", "--by", "user,tenant")
    same(words.splitlines()[0].split(), ["TENANT", "USER", "GPU", "HOURS", "CPU", "HOURS", "RUNS"])


@case("a machine with two more GPUs goes on in the same journal, and the sums go on")
def _(c):
    before = heads(c)
    c.options[c.options.index("--simulate-gpus") + 1] = str(GPUS + 2)
    c.kill_daemon()
    c.end_keeper()  # which counts them
    c.start()
    c.wait_ready()
    wait_for("its GPUs", lambda: len(c.ask("GET", "/v1/nodes")["nodes"][0]["gpus"]) == GPUS + 2)
    settle(c)
    same(heads(c), before)
    turn(c, 2)
    last = check_all(c)["machines"][-1]
    restart(c)
    turn(c, 22)
    after = check_all(c)["machines"]
    same(after[-1]["day"] > last["day"], True)
    assert abs(after[-1]["total_gpu_hours"] / (GPUS + 2) - (c.clock.now_ms() % DAY_MS) / HOUR_MS) < 0.01, after
    cancel_all(c)


if __name__ == "__main__":
    sys.exit(case.together(make))
