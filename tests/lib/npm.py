"""npm - packages of a folder of tests, fetched once into the build folder."""
import fcntl
import glob
import os
import shutil
import subprocess


def install(folder, name):
    """Where the scripts of tests/FOLDER run, with their packages; raises OSError with why that cannot be had."""
    here = os.path.join(os.environ["NIGHTSHIFT_SOURCE"], "tests", folder)
    there = os.path.join(os.environ["NIGHTSHIFT_BUILD"], name)
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise OSError(f"{program} is not installed")
    os.makedirs(there, exist_ok=True)
    with open(os.path.join(there, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for script in glob.glob(os.path.join(here, "*.mjs")):
            shutil.copy(script, there)
        wanted, marker = os.path.join(here, "package.json"), os.path.join(there, "installed.json")
        if not os.path.exists(marker) or open(marker, "rb").read() != open(wanted, "rb").read():
            shutil.copy(wanted, there)
            done = subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
                                  cwd=there, capture_output=True, text=True, timeout=500, check=False)
            if done.returncode != 0:
                raise OSError(f"npm could not fetch what tests/{folder} needs: " +
                              done.stderr.strip()[-200:].replace("\n", " "))
            shutil.copy(wanted, marker)
    return there
