"""crash_job - what a job of the crash test does: it keeps a record that nobody else can write.

It notes its start and its end in a ledger of its own, holds a lock that a second run of the same job
would need, and locks on the GPUs it was given; what it cannot lock it notes as a complaint.  Then it
prints numbered lines, and stays while there is a file for that.  Arguments: key, seconds, lines, exit code, share of a GPU in thousandths.
"""
import fcntl
import os
import sys
import time
import zlib

WORK = os.environ.get("CRASH_WORK", "")


def line_of(name, number):
    text = f"{name} {number} "
    return text + f"{zlib.crc32(text.encode()):08x}" + "." * (number % 7) + "\n"


def try_lock(path, how):
    fd = os.open(f"{WORK}/locks/{path}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)  # held until this process is gone
        return True
    except OSError:
        return False


def lock_gpu(gpu, milli):
    """Whole: for itself.  A half: with at most one other half."""
    if milli == 1000:
        return try_lock(f"gpu-{gpu}", fcntl.LOCK_EX)
    return try_lock(f"gpu-{gpu}", fcntl.LOCK_SH) and any(try_lock(f"gpu-{gpu}-{half}", fcntl.LOCK_EX)
                                                         for half in (0, 1))


def main():
    key, seconds, lines, code, milli = sys.argv[1], *map(float, sys.argv[2:])
    index, replica = os.environ.get("NIGHTSHIFT_ARRAY_INDEX", "0"), os.environ["NIGHTSHIFT_REPLICA"]
    name = f"{key}.{index}.{replica}"
    ledger = os.open(f"{WORK}/ledger/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(what):
        job, restart = os.environ["NIGHTSHIFT_JOB_ID"], os.environ["NIGHTSHIFT_RESTART"]
        os.write(ledger, f"{what} {job} {restart} {os.getpid()} {time.time_ns()}\n".encode())

    if not try_lock(f"job-{name}", fcntl.LOCK_EX):
        note("TWICE")
    note("start")
    gpus = [gpu for gpu in os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if gpu not in ("", "void")]
    if bool(gpus) != bool(milli):
        note("GPUS_WRONG")
    for gpu in gpus:
        if not lock_gpu(gpu, milli):
            note("GPU_TWICE")
    for number in range(int(lines)):
        sys.stdout.write(line_of(name, number))
        sys.stdout.flush()
        time.sleep(seconds / lines)
    while os.path.exists(f"{WORK}/stay.{key}"):
        time.sleep(0.02)
    note("end")
    sys.exit(int(code))


if __name__ == "__main__":
    main()
