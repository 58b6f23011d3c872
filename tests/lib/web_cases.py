"""web_cases - a real browser uses the web page of a real daemon with real jobs: tests/browser/web.mjs.

The browser's script asks for what only the outside can do by lines that begin with "# ask": the daemon away, and back.
"""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import claims  # noqa: E402
import cluster as cl  # noqa: E402
import npm  # noqa: E402
import quiet_net  # noqa: E402
import receivers  # noqa: E402
from browser_cases import chromium  # noqa: E402
from cases import Skip  # noqa: E402

PATIENCE_S = 1500  # of all steps; each has its own
SETTINGS = """
tenants:
  vision: {weight: 2, guarantee: 1}
  robotics: {}
profiles:
  gpu-small: {help: half a GPU, gpu_share: 0.5, cpus: 500m, mem: 1Gi}
"""
PASSWORD = "correct horse"


def site():
    port = claims.port()
    c = cl.Cluster(["--rate", "100000", "--rate-burst", "100000", "--webhooks", "any"], listen=f"127.0.0.1:{port}")
    with open(f"{c.folder}/settings.yaml", "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    for program in ("nightshift-signin", "nightshift-send"):
        shutil.copy(f"{cl.LIBEXEC}/{program}", c.libexec)
    c.hook = receivers.HookServer()
    c.http = port
    return c


def people(c):
    with open(f"{c.state}/setup-code", encoding="utf-8") as f:
        c.ask("POST", "/v1/setup", {"code": f.read().strip(), "user": "ada", "password": PASSWORD})
    for user, role in (("vic", "viewer"), ("mia", "none")):
        c.ask("PUT", f"/v1/users/{user}", {"role": role, "kind": "local"})
        c.ask("POST", f"/v1/users/{user}/password", {"password": PASSWORD})
    for user, role in (("vic", "viewer"), ("mia", "member")):
        c.ask("PUT", f"/v1/tenants/vision/members/{user}", {"role": role})


def stop(c):
    c.daemon.send_signal(signal.SIGTERM)
    assert c.daemon.wait(timeout=cl.PATIENCE_S) == 0, c.log_tail()


def back(c):
    c.start()
    c.wait_ready()


def follow(c, node):
    """Passes on what the script prints, and does what it asks for."""
    verbs = {"down": lambda: stop(c), "up": lambda: back(c)}
    for line in node.stdout:
        if not line.startswith("# ask "):
            print(line, end="", flush=True)
            continue
        verbs[line.split()[2]]()
        node.stdin.write("done\n")
        node.stdin.flush()
    return node.wait(timeout=PATIENCE_S)


def run(c, packages, program):
    back(c)
    people(c)
    given = {"url": f"http://127.0.0.1:{c.http}", "chromium": program, "profile": f"{c.folder}/profile", "password": PASSWORD,
             "hook": c.hook.url()}
    os.makedirs(given["profile"])
    node = quiet_net.popen(["node", "web.mjs", json.dumps(given)], [c.http], c.folder, cwd=packages,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        return follow(c, node)
    finally:
        if node.poll() is None:
            node.terminate()
            node.wait(timeout=cl.PATIENCE_S)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if cl.why_not():
            raise Skip(cl.why_not())
        program = chromium()
        try:
            packages = npm.install("browser", "test-browser")
        except OSError as why:
            raise Skip(str(why)) from why
    except Skip as why:
        if os.environ.get("NIGHTSHIFT_STRICT"):
            sys.exit(f"web_cases: {why}")
        print(f"1..0 # SKIP {why}")
        return 0
    c = site()
    try:
        return run(c, packages, program)
    finally:
        c.hook.close()
        c.close()


if __name__ == "__main__":
    sys.exit(main())
