"""clients - what both systems are driven with: the words of Slurm, as programs of their own.

A site has `env`, `work` (a folder that its jobs can write to) and `words` (program by word); everything here
goes by these, so that no work knows which system it measures.
"""
import subprocess
import time

PATIENCE_S = 180
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Same script on both sides.  --mem: what our container is bounded to; Slurm is told to leave memory alone.
HEAD = "#!/bin/bash\n#SBATCH --mem=64M\n#SBATCH --output=/dev/null\n"
EMPTY = HEAD + "exit 0\n"
STAMP = HEAD + 'printf "%s\\n" "$EPOCHREALTIME" >"$1"\n'
# The shell starts each client, so that our own slowness is not in the figure.
ONE_BY_ONE = 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" >/dev/null || exit 1; n=$((n - 1)); done'


class Failed(Exception):
    """A system did not do its work: there is nothing to measure."""


def say(site, argv):
    """What a client prints."""
    done = subprocess.run(argv, env=site.env, cwd=site.work, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
    if done.returncode:
        raise Failed(f"{site.name}: {' '.join(argv)}: {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def script(site, name, text):
    path = f"{site.work}/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def wait_until(what, condition, every_s=0.02, patience_s=PATIENCE_S):
    until = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise Failed(f"waited too long for {what}")
        time.sleep(every_s)


def wait_drained(site, every_s=0.1):
    def is_empty():
        return not say(site, [*site.words["squeue"], "-h", "-o", "%i"]).strip()
    wait_until(f"{site.name} to drain", is_empty, every_s)


def start_one_by_one(site, argv, n):
    return subprocess.Popen(["sh", "-c", ONE_BY_ONE, "sh", str(n), *argv], env=site.env, cwd=site.work,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def rate_of(site, argv, n, n_clients):
    """Calls a second of so many clients, each making n calls one after the other."""
    t = time.monotonic()
    clients = [start_one_by_one(site, argv, n) for _ in range(n_clients)]
    complaints = [client.communicate(timeout=PATIENCE_S)[1] for client in clients]
    t = time.monotonic() - t
    if any(client.returncode for client in clients):
        raise Failed(f"{site.name}: {' '.join(argv)}: {b' '.join(complaints).decode()[-300:]}")
    return n * n_clients / t
