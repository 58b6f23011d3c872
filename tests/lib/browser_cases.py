"""browser_cases - a real browser signs people in at a real daemon and a real provider: tests/browser/signin.mjs."""
import json
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
import npm  # noqa: E402
import quiet_net  # noqa: E402
from cases import Skip  # noqa: E402
from doorway import NOTICE, TITLE, Doorway  # noqa: E402

PATIENCE_S = 1500  # of all steps; each has its own


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise Skip("chromium is not installed")


def run(c, packages, program):
    c.provider.put_people(eva={"name": "Eva Test", "groups": ["vision"]})
    c.start()
    c.wait_ready()
    with open(f"{c.state}/setup-code", encoding="utf-8") as f:
        code = f.read().strip()
    given = {"url": f"http://127.0.0.1:{c.http}", "chromium": program, "profile": f"{c.folder}/profile", "setup_code": code,
             "notice": NOTICE, "title": TITLE}
    os.makedirs(given["profile"])
    node = quiet_net.popen(["node", "signin.mjs", json.dumps(given)], [c.http, c.provider.port], c.folder,
                           cwd=packages)
    try:
        return node.wait(timeout=PATIENCE_S)
    finally:
        node.kill()


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
        c = Doorway()
    except Skip as why:
        if os.environ.get("NIGHTSHIFT_STRICT"):
            sys.exit(f"browser_cases: {why}")
        print(f"1..0 # SKIP {why}")
        return 0
    try:
        return run(c, packages, program)
    finally:
        c.close()


if __name__ == "__main__":
    sys.exit(main())
