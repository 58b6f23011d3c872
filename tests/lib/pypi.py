"""pypi - packages of PyPI for a test, in a virtual environment below the build folder."""
import os
import subprocess
import sys


def install(folder, packages):
    """Why it cannot be, or None."""
    stamp = f"{folder}/{'+'.join(packages)}"
    if os.path.exists(stamp):
        return None
    for argv in ([sys.executable, "-m", "venv", "--clear", folder],
                 [f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages]):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            return (done.stderr or done.stdout).strip().splitlines()[-1]
    with open(stamp, "w", encoding="utf-8"):
        return None
