"""slurm_site - Slurm on this machine: munged, slurmctld and slurmd in a folder of their own, on loopback.

Nothing of an installed Slurm is touched: own configuration, key, ports and state; stopped by pid.
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import account
import clients

CPUS = 64
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
TUNED = ("batch_sched_delay=0,sched_interval=1,sched_min_interval=1000,default_queue_depth=10000,"
         "partition_job_depth=0,bf_interval=1,bf_max_job_test=10000,bf_continue,max_rpc_cnt=0")
CONFIGURATION = """ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
{more}NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def program(name):
    return shutil.which(name, path=clients.PATH)


def missing():
    return [name for name in PROGRAMS if not program(name)]


def free_ports(n):
    """All are held until the last is found, so that they differ."""
    held = [socket.socket() for _ in range(n)]
    try:
        for s in held:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


class SlurmSite:
    kind = "plain processes"

    def __init__(self, name, tuned):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="ns-slurm.", dir="/tmp")
        os.chmod(self.folder, 0o755)  # munge wants its socket to be reachable
        self.work = f"{self.folder}/work"
        for inner in ("work", "state", "spool"):
            os.mkdir(f"{self.folder}/{inner}")
        self.env = {"PATH": clients.PATH, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        self.words = {word: [program(word)] for word in ("sbatch", "squeue", "scancel")}
        self.words["run"] = [program("srun")]
        self.group = account.Group(os.path.basename(self.folder), make=True)
        self.daemons = {}
        more = f"SchedulerParameters={TUNED}\n" if tuned else ""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        self._write("slurm.conf", 0o644, CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], ports=free_ports(2), folder=self.folder, cpus=CPUS, memory=memory,
            more=more).encode())
        self._write("munge.key", 0o400, os.urandom(128))

    def _write(self, name, mode, data):
        fd = os.open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(fd, "wb") as f:
            f.write(data)

    def _start(self, name, *arguments):
        with open(f"{self.folder}/{name}.out", "wb") as out:
            self.daemons[name] = subprocess.Popen([program(name), *arguments], env=self.env, stdin=subprocess.DEVNULL,
                                                  stdout=out, stderr=out, preexec_fn=self.group.enter)

    def start(self):
        f = self.folder
        self._start("munged", "--foreground", f"--socket={f}/munge.sock", f"--key-file={f}/munge.key",
                    f"--pid-file={f}/munged.pid", f"--log-file={f}/munged.log", f"--seed-file={f}/munged.seed")
        clients.wait_until("munged", lambda: self._alive() and os.path.exists(f"{f}/munge.sock"), patience_s=30)
        self._start("slurmctld", "-D")
        self._start("slurmd", "-D")
        clients.wait_until("Slurm's node", self._is_idle, 0.2, 60)

    def _alive(self):
        for name, daemon in self.daemons.items():
            if daemon.poll() is not None:
                with open(f"{self.folder}/{name}.out", encoding="utf-8", errors="replace") as f:
                    raise clients.Failed(f"{self.name}: {name} ended with {daemon.returncode}:\n{f.read()[-600:]}")
        return True

    def _is_idle(self):
        self._alive()
        done = subprocess.run([program("sinfo"), "-h", "-o", "%t"], env=self.env, capture_output=True, text=True,
                              check=False)
        return done.stdout.strip() == "idle"

    def cancel_all(self):
        clients.say(self, [*self.words["scancel"], "--user=root"])

    def cpu_s(self):
        return self.group.cpu_s()

    def controller_pid(self):
        return self.daemons["slurmctld"].pid

    def _end_steps(self):
        """Of jobs that were still running; true when none is left."""
        left = self.group.pids()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left

    def stop(self):
        for name in ("slurmd", "slurmctld", "munged"):
            daemon = self.daemons.pop(name, None)
            if daemon and daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        clients.wait_until("Slurm's last process", self._end_steps, patience_s=20)
        self.group.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
