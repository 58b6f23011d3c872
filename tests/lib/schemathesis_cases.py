"""schemathesis_cases - the API against its own description, by generated requests.

A real daemon on a loopback port; its machine is drained, so that what is submitted waits.  schemathesis and
openapi-spec-validator come from PyPI into a virtual environment below the build folder.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import seeds  # noqa: E402
from pypi import install  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = f"{cl.BUILD}/schemathesis-venv"
PACKAGES = ("schemathesis==4.32.5", "openapi-spec-validator==0.9.0")
SEED = str(seeds.seed())
EXAMPLES = os.environ.get("NIGHTSHIFT_EXAMPLES", "120")  # of each call
CASES_MIN = 3000
# They do not end by themselves; t0310-run.sh and t0345-api.sh read them.
ENDLESS = ("/v1/events", "/v1/jobs/{id}/stream")
# Right by the schema is not enough there: codes and clients are known or not.  t0480-oauth.sh tries them.
OAUTH = ("/oauth/authorize", "/oauth/token", "/oauth/userinfo")


# As much as a job may ask for: then what is right by the schema also fits.
HUGE = ("--simulate-gpus", "16", "--cpus", "4096", "--mem", "64Ti", "--gpu-mem", "64Ti")


def tap(number, sentence, done):
    good = done.returncode == 0
    print(f"{'ok' if good else 'not ok'} {number} - {sentence}")
    if not good:
        print("\n".join("#   " + line for line in done.stdout.splitlines()[-300:]))
    return good


def is_valid(c):
    path = f"{c.folder}/openapi.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(c.ask("GET", "/v1/openapi.json"), f)
    done = subprocess.run([f"{VENV}/bin/openapi-spec-validator", "--schema", "3.1", path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=cl.PATIENCE_S, check=False)
    return tap(1, "the description is valid OpenAPI 3.1", done)


def finds_nothing(c):
    token = c.ask("POST", "/v1/tokens", {"name": "the-one-who-asks", "scopes": ["read", "jobs", "manage"]})["token"]
    node = c.ask("GET", "/v1/nodes")["nodes"][0]["name"]
    c.ask("POST", f"/v1/nodes/{node}/drain", {})
    argv = [f"{VENV}/bin/schemathesis", "run", f"http://127.0.0.1:{c.port()}/v1/openapi.json",
            "--header", f"Authorization: Bearer {token}", "--checks", "all", "--mode", "all", "--seed", SEED,
            "--max-examples", EXAMPLES, "--request-timeout", "30", "--generation-database", "none", "--no-color",
            "--continue-on-failure", "--suppress-health-check", "all"]
    for path in (*ENDLESS, *OAUTH):
        argv += ["--exclude-path", path]
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, cwd=c.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=1500, check=False)
    good = tap(2, f"schemathesis finds nothing (seed {SEED})", done)
    made = re.search(r"^\s*(\d+) generated", done.stdout, re.M)
    enough = made and int(made[1]) >= CASES_MIN
    print(f"{'ok' if enough else 'not ok'} 3 - it tried enough: {made[1] if made else 'nothing'} requests")
    well = c.daemon.poll() is None and c.is_ready()
    print(f"{'ok' if well else 'not ok'} 4 - the daemon is well afterwards")
    return good and enough and well


def main():
    why = cl.why_not() or install(VENV, PACKAGES)
    if why and not os.environ.get("NIGHTSHIFT_STRICT"):
        print(f"1..0 # SKIP {why}")
        return 0
    if why:
        print(f"1..1\nnot ok 1 - {why}")
        return 1
    c = cl.Cluster(["--rate", "1000000", "--rate-burst", "1000000", *HUGE], listen="127.0.0.1:0", size=())
    shutil.copy(f"{cl.LIBEXEC}/nightshift-signin", c.libexec)
    good = False
    try:
        c.start()
        c.wait_ready()
        good = is_valid(c)
        good = finds_nothing(c) and good
    except Exception:
        print("not ok 4 - the daemon goes on")
        print("\n".join("#   " + line for line in traceback.format_exc().splitlines()))
    finally:
        c.close()
    print("1..4")
    return not good


if __name__ == "__main__":
    sys.exit(main())
