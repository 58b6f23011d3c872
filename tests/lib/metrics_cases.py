"""metrics_cases - what Prometheus is told of machines and GPUs: names and labels as dcgm-exporter has them, nobody's names to
strangers; and a real Prometheus that scrapes it and evaluates every rule and every panel, where there is one: tools/install-deps
--dev unpacks it.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import claims  # noqa: E402
from agent_cases import OURS, SETTINGS, THEIRS, fresh, make  # noqa: E402
from cases import Cases, Skip, same  # noqa: E402
from cluster import PATIENCE_S, wait_for  # noqa: E402

case = Cases()
SOURCE = os.environ["NIGHTSHIFT_SOURCE"]
LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
assert SETTINGS


def parse(text):
    """[(name, labels, value)]; the text ends as OpenMetrics wants."""
    assert text.endswith("# EOF\n"), text[-40:]
    out, typed = [], set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in typed, f"{name} is there twice"
            typed.add(name)
        if line.startswith("#"):
            continue
        name, labels, value = LINE.match(line).groups()
        found = dict(LABEL.findall(labels or ""))
        same(len(labels or ""), sum(len(f'{k}="{v}"') for k, v in found.items()) + max(len(found) - 1, 0))
        out.append((name, found, float(value)))
    return out


def of(rows, name, **labels):
    return [(found, value) for n, found, value in rows if n == name and all(found.get(k) == v for k, v in labels.items())]


def program(name):
    unpacked = os.environ.get("NIGHTSHIFT_PROMETHEUS_FOLDER") or "/usr/local/lib/nightshift/prometheus"
    return os.environ.get(f"NIGHTSHIFT_{name.upper()}") or shutil.which(name) or shutil.which(name, path=f"{unpacked}/usr/bin")


def check(promtool, what, *more):
    done = subprocess.run([promtool, "check", what, *more], cwd=SOURCE, capture_output=True, text=True, check=False)
    same((done.returncode, done.stderr), (0, ""))


def at_work(m):
    """One tenant alone on a GPU, two on the other: jobs, and the numbers of both GPUs."""
    m.driver_says()
    m.start_agent()
    half, whole = ({"resources": {**gpus, "cpus": 1, "mem": "64Mi"}} for gpus in ({"gpu_share": 0.5}, {"gpus": 1}))
    jobs = [m.c.submit(["sleep", "600"], uid=THEIRS, tenant="theirs", name="secret", **whole)]
    m.c.wait_state(jobs[0], "running")
    jobs += [m.c.submit(["sleep", "600"], uid=OURS, tenant="ours", name="mine", **half),
             m.c.submit(["sleep", "600"], uid=THEIRS, tenant="theirs", name="secret", **half)]
    for job in jobs:
        m.c.wait_state(job, "running")
    c, a, b = (m.pid_in(job) for job in jobs)
    alone = next(i for i in range(2) if m.gpu(i)["jobs"][0]["id"] == jobs[0])
    lines = [None, None]
    lines[1 - alone] = ["memory 80000 60000", "utilisation 80 40", f"process {a} 20000 compute", f"process {b} 30000 compute",
                        f"load {a} 40", f"load {b} 30"]
    lines[alone] = ["memory 80000 8000", "utilisation 55 5", f"process {c} 8000 compute", f"load {c} 55"]
    m.driver_says(*lines)
    wait_for("the load", lambda: m.gpu(1 - alone)["util_percent"] == 80 and m.gpu(alone)["util_percent"] == 55)
    return jobs, alone, 1 - alone


def end(m, jobs):
    for job in jobs:
        m.c.ask("POST", f"/v1/jobs/{job}/cancel", {})
        m.c.wait_end(job)


@case("a GPU's series have the names and labels of dcgm-exporter, and the job that has it alone")
def _(m):
    jobs, alone, shared = at_work(m)
    rows = parse(m.c.ask("GET", "/metrics"))
    labels, value = of(rows, "DCGM_FI_DEV_GPU_UTIL", gpu=str(alone))[0]
    same(value, 55)
    same({k: v for k, v in labels.items() if k != "UUID"},
         {"gpu": str(alone), "device": f"nvidia{alone}", "modelName": "NVIDIA A100-SXM4-80GB", "Hostname": m.node, "job": str(jobs[0]),
          "user": f"uid-{THEIRS}", "tenant": "theirs"})
    same(sorted(v for _, v in of(rows, "DCGM_FI_DEV_FB_USED")), [8000, 60000])
    same(sorted(v for _, v in of(rows, "DCGM_FI_DEV_FB_FREE")), [20000, 72000])
    same([v for _, v in of(rows, "DCGM_FI_DEV_POWER_USAGE")], [60, 60])
    same([v for _, v in of(rows, "DCGM_FI_DEV_GPU_TEMP")], [35, 35])
    parts = {(found["kind"], found["tenant"]): v for found, v in of(rows, "nightshift_gpu_part_percent", gpu=str(shared))}
    same(parts, {("job", "ours"): 40, ("job", "theirs"): 30, ("unknown", ""): 10})
    same(of(rows, "DCGM_FI_DEV_GPU_UTIL", gpu=str(shared))[0][0]["job"], "")  # it has two
    same(of(rows, "nightshift_node_reports", node=m.node)[0][1], 1)
    assert of(rows, "nightshift_node_mem_bytes")[0][1] > of(rows, "nightshift_node_mem_used_bytes")[0][1] > 0
    # Who does not see a tenant sees that a GPU works, and no name; who is nobody sees nothing of machines.
    text = m.c.ask("GET", "/metrics", uid=OURS)
    assert "theirs" not in text and "secret" not in text and f"uid-{THEIRS}" not in text, text
    ours = parse(text)
    same(of(ours, "DCGM_FI_DEV_GPU_UTIL", gpu=str(alone))[0][0]["job"], "")
    same(sorted((f["tenant"], v) for f, v in of(ours, "nightshift_gpu_part_percent", gpu=str(shared))), [("", 10), ("", 30), ("ours", 40)])
    with urllib.request.urlopen(f"http://127.0.0.1:{m.c.port()}/metrics", timeout=PATIENCE_S) as answer:
        nobody = answer.read().decode()
    assert "DCGM" not in nobody and "nightshift_node_" not in nobody and "nightshift_gpus " in nobody
    end(m, jobs)


@case("a real Prometheus takes all of it, and every rule and panel finds its series")
def _(m):
    prometheus, promtool = program("prometheus"), program("promtool")
    if not prometheus or not promtool:
        assert not os.environ.get("NIGHTSHIFT_STRICT"), "there is no prometheus; see tools/install-deps --dev"
        raise Skip("prometheus is not installed")
    check(promtool, "rules", "deploy/prometheus/nightshift.rules.yaml")
    check(promtool, "config", "--syntax-only", "deploy/prometheus/scrape.yaml")
    jobs, alone, _ = at_work(m)
    token = m.c.ask("POST", "/v1/tokens", {"name": "prometheus", "scopes": ["read"]})["token"]
    folder = f"{m.c.folder}/prometheus"
    os.mkdir(folder)
    port = claims.port()
    with open(f"{folder}/token", "w", encoding="utf-8") as f:
        f.write(token)
    with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as f:
        json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                   "rule_files": [f"{SOURCE}/deploy/prometheus/nightshift.rules.yaml"],
                   "scrape_configs": [{"job_name": "nightshift", "honor_labels": True,
                                       "authorization": {"credentials_file": f"{folder}/token"},
                                       "static_configs": [{"targets": [f"127.0.0.1:{m.c.port()}"]}]}]}, f)
    with open(f"{folder}/log", "wb") as log:
        server = subprocess.Popen([prometheus, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        def ask(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
                    return json.load(answer)["data"]
            except OSError:
                return None

        def query(expr):
            found = ask("/api/v1/query?query=" + urllib.parse.quote(expr))
            assert found is not None, expr
            return found["result"]
        wait_for("a scrape", lambda: ask("/api/v1/targets") and query("DCGM_FI_DEV_GPU_UTIL"))
        target = ask("/api/v1/targets")["activeTargets"][0]
        same((target["health"], target["lastError"]), ("up", ""))
        same(query(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{alone}"}}')[0]["metric"]["tenant"], "theirs")
        with open(f"{SOURCE}/deploy/grafana/nightshift.json", encoding="utf-8") as f:
            board = json.load(f)
        panels = board["panels"]
        same(sorted({p["id"] for p in panels}), sorted(p["id"] for p in panels))
        same([p["title"] for p in panels if not p.get("title") or not p.get("targets") or set(p["gridPos"]) != set("hwxy")], [])
        known = {f"${v['name']}" for v in board["templating"]["list"]} | {f"${{{v['name']}}}" for v in board["templating"]["list"]}
        same([t["expr"] for p in panels for t in p["targets"]
              if set(re.findall(r"\$\w+|\$\{\w+\}", t["expr"])) - known - {"$__rate_interval", "$__interval"}], [])
        for panel in panels:
            for t in panel["targets"]:
                expr = t["expr"].replace("$node", ".*")
                # A rate wants more than one scrape.
                wait_for(f"{panel['title']}: {expr}", lambda: query(expr))  # noqa: B023
        rules = wait_for("the rules", lambda: [r for g in ask("/api/v1/rules")["groups"] for r in g["rules"]
                                               if r["health"] != "unknown"])
        same([r["name"] for r in rules if r["health"] != "ok"], [])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    end(m, jobs)


if __name__ == "__main__":
    sys.exit(case.together(make=make, arguments=fresh))
