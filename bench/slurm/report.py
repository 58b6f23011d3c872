"""report - figures from samples, the ratio to tuned Slurm with its bar, JSON and Markdown."""
import collections
import os
import platform
import statistics

OWN, TUNED, DEFAULT = "nightshift", "slurm tuned", "slurm default"
SYSTEMS = (DEFAULT, TUNED, OWN)

BUSY = 0.1  # part of the machine that others may use; kernel threads that work for a site are among them

# `more`: more of it is better.  `bar`: so many times better than tuned Slurm; `floor`: at least so much by itself.
Figure = collections.namedtuple("Figure", "key text unit more bar floor", defaults=(False, None, None))
FIGURES = (
    Figure("start_ms", "sbatch until the script runs", "ms", bar=10),
    Figure("run_ms", "`srun /bin/true` / `nightshift run -- /bin/true`, whole command", "ms", bar=0.5),
    Figure("array_per_s", "array of empty jobs on 64 CPUs, submit until drained", "jobs/s", True, bar=1.5),
    Figure("array_submit_ms", "that array's `sbatch --array` alone (Slurm: one record; ours: each job durable)", "ms"),
    Figure("submit_per_s", "`sbatch --hold` processes, one after the other (ours durable)", "jobs/s", True, bar=3),
    Figure("submit4_per_s", "the same from four clients at once", "jobs/s", True, bar=3),
    Figure("api_per_s", "durable submits over one HTTP connection, one after the other", "jobs/s", True),
    Figure("batch_per_s", "durable submits over one HTTP connection, 500 a request", "jobs/s", True, floor=5000),
    Figure("rest_rss_mib", "RSS of slurmctld / nightshiftd before the array", "MiB", bar=1),
    Figure("after_rss_mib", "RSS after it", "MiB", bar=1),
    Figure("rest_pss_mib", "PSS before the array", "MiB"),
    Figure("after_pss_mib", "PSS after it", "MiB"),
    Figure("run_cpu_ms", "CPU of daemons and job, a `run /bin/true`", "ms"),
    Figure("array_cpu_ms", "CPU of daemons and job, an array's element", "ms"),
)


def percentile(samples, p):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def summary(samples):
    return {"p50": statistics.median(samples), "p99": percentile(samples, 99), "n": len(samples)}


def verdict(figure, by_system):
    """(times better than tuned Slurm or None, whether the bar is met or None)"""
    own, tuned = by_system.get(OWN), by_system.get(TUNED)
    ratio = None
    if own and tuned and own["p50"] and tuned["p50"]:
        ratio = own["p50"] / tuned["p50"] if figure.more else tuned["p50"] / own["p50"]
    if figure.floor is not None and own:
        return ratio, own["p50"] >= figure.floor
    return ratio, ratio >= figure.bar if figure.bar is not None and ratio is not None else None


def rows(samples):
    """samples[system][figure] = list; one row for each figure that somebody has."""
    out = []
    for figure in FIGURES:
        by_system = {s: summary(samples[s][figure.key]) for s in SYSTEMS if samples.get(s, {}).get(figure.key)}
        if by_system:
            ratio, met = verdict(figure, by_system)
            out.append({"figure": figure.key, "what": figure.text, "unit": figure.unit, "systems": by_system,
                        "ratio": ratio, "bar": figure.bar, "floor": figure.floor, "met": met})
    return out


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {"cores": os.cpu_count(), "cpu": models[0] if models else platform.machine(),
            "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
            "kernel": platform.release()}


def _number(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _cell(figure):
    if not figure:
        return "–"
    tail = f" (p99 {_number(figure['p99'])})" if figure["n"] >= 10 else ""
    return _number(figure["p50"]) + tail


def _bar(row):
    mark = {True: "met", False: "**not met**", None: ""}[row["met"]]
    if row["floor"] is not None:
        return f"≥ {row['floor']:,} {row['unit']}: {mark}"
    return f"≥ {row['bar']}×: {mark}" if row["bar"] is not None and row["met"] is not None else ""


def markdown(result):
    m = result["machine"]
    out = ["# Slurm and Nightshift on one machine", "",
           f"Commit `{result['commit']}`; `{result['command']}`; {m['cores']} cores ({m['cpu']}), Linux {m['kernel']}; "
           f"other programs used {result['others_cores']:.2f} cores meanwhile. {result['slurm']}.", "",
           "Each job of Nightshift runs in a container of its own; Slurm's are plain processes. Figures are medians; "
           "the ratio says how many times better ours is than tuned Slurm.", ""]
    if result["others_cores"] > m["cores"] * BUSY:
        out += ["**The machine was busy: these figures are not to be kept.**", ""]
    out += ["| | unit | Slurm, default | Slurm, tuned | Nightshift | ratio | bar |", "|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        cells = [_cell(row["systems"].get(s)) for s in SYSTEMS]
        ratio = f"{row['ratio']:.2f}×" if row["ratio"] else ""
        out.append(f"| {row['what']} | {row['unit']} | {' | '.join(cells)} | {ratio} | {_bar(row)} |")
    for failure in result["failures"]:
        out += ["", f"Failed: {failure}"]
    return "\n".join(out) + "\n"
