#!/usr/bin/env python3
"""hostile_table - what keeps tenants apart: each protection that a test can take away, by name.

The names are those of weak_here and weak_or in src (see src/sys/weak.h).  Run as a program it prints the
table of docs/ops/security.md; hostile_cases.py attacks each of them.
"""

# name, what it is, what it stops
PROTECTIONS = [
    ("account", "a job runs as its user, never as root", "reading what is root's, e.g. `/etc/shadow`"),
    ("capabilities", "a job has no capability, nor can it get one",
     "making device files; mounting a control group and lifting its own limits"),
    ("no_new_privs", "setuid programs give nothing", "becoming root through one"),
    ("nosuid", "setuid bits in homes, volumes and the system do not count", "becoming root through one"),
    ("nodev", "device files in homes and volumes do not work", "opening a device that somebody left there"),
    ("devices", "a list of devices in the control group (cgroup v1)", "opening a device that is not the job's"),
    ("gpu_nodes", "device files of a job's own GPUs only", "using another's GPU"),
    ("seccomp", "a list of the system calls that jobs may make",
     "kernel keys, mounts, namespaces of its own, the hypervisor, the kernel's ciphers, quotas of projects; with them, lifting its own limits"),
    ("pid", "a pid namespace each job", "seeing and signalling processes of others"),
    ("ipc", "an ipc namespace each job", "shared memory and queues of others"),
    ("cgroup", "a cgroup namespace each job", "seeing where in the control groups it is"),
    ("network", "a network namespace each job", "the machine's own loopback, sockets without a file"),
    ("tenant_firewall", "no packet from one tenant's bridge to another's", "ports of another tenant's jobs"),
    ("host_firewall", "no packet from a job to the machine", "services of the machine"),
    ("cloud_firewall", "no packet from a job to where a cloud gives a machine its keys (169.254.0.0/16 and their like)",
     "the machine's own keys, and with them what it may do in its cloud"),
    ("task_firewall", "a second filter inside each job's own network, which it cannot change",
     "the same three, when the machine's rules are gone"),
    ("rules_watch", "the machine's rules are watched, and loaded again when somebody takes them away",
     "the same two, after `nft flush ruleset`"),
    ("account_firewall", "accounts of the machine open no connection to jobs, but for root and `net_users`",
     "services of jobs, by whoever has an account"),
    ("image_account", "images are fetched by an account of their own, which the firewall keeps from this machine, jobs and local networks",
     "making the machine dial its own services, those of jobs or of a cloud"),
    ("image_unpack", "images are unpacked by a program that sees itself, the layers and one folder, and nothing else",
     "an image that finds a hole in that program, and writes, reads, dials or kills as root"),
    ("image_calls", "whoever unpacks images makes system calls of a short list, and no process",
     "the same once more where calls are needed for it; writing past the count of bytes"),
    ("image_layers", "an image from a file has layers of that file only", "layers of another's image, by their digest"),
    ("view", "only the system's folders, the home and volumes are there", "sockets of services in `/run`"),
    ("readonly_system", "the system's folders are read-only", "writing where an administrator left a folder open"),
    ("private_tmp", "a `/tmp` each job", "files of others in `/tmp`"),
    ("masked_paths", "parts of `/proc` and `/sys` are covered", "who else uses kernel keys, when somebody types, and more about the machine"),
    ("readonly_paths", "settings in `/proc` are read-only", "changing the kernel, e.g. `core_pattern`"),
    ("binds_as_user", "home and volumes are opened with the user's own rights", "folders inside another's closed home"),
    ("machinery", "a volume cannot be `/`, `/proc`, `/sys` or `/dev`, whatever link leads there",
     "the machine's own processes"),
    ("reserved", "a volume cannot be put over parts that are ours", "replacing the supervisor of a job"),
    ("places_as_user", "a volume inside another volume gets its place with the user's own rights",
     "files of root's in folders that are another's"),
    ("place_links", "no link is followed on the way to where a volume goes", "a volume over parts that are ours"),
    ("sealed_init", "a job's supervisor is started from a copy in memory", "replacing the supervisor of a job"),
    ("instance", "our own folders, and what is above and below them, are no volumes", "the daemon's sockets and files"),
    ("volumes_allow", "volumes come from one's own home and from folders that the site names", "folders left open"),
    ("memory", "a limit of memory", "a memory bomb"),
    ("pids", "a limit of processes", "a fork bomb"),
    ("cpu", "a limit of CPU time", "taking the CPUs of others"),
    ("scratch_size", "a bound on the bytes in `/tmp`", "filling the disk"),
    ("scratch_files", "a bound on the files in `/tmp`", "using up the disk's inodes"),
    ("terminals", "a bound on the terminals of a job", "using up the machine's terminals"),
    ("log_bound", "output is kept up to a bound, the newest", "filling the disk with output"),
    ("log_watch", "the keeper looks at how large a job's output is on the disk", "a false supervisor that fills it"),
    ("folder_modes", "folders of jobs are closed to other users of the machine", "logs, job files, a job's terminal"),
    ("file_modes", "files of jobs are closed to other users of the machine", "logs and job files"),
    ("socket_modes", "sockets of the keeper and of jobs are closed to other users", "commanding the keeper; a job's terminal"),
    ("store_mode", "the database is closed to other users of the machine", "reading all there is"),
    ("role", "calls need a role that reaches so far", "draining machines, the doctor"),
    ("tenant_scope", "calls see jobs of the caller's tenants", "jobs of another tenant, and what happens to them"),
    ("owner", "log, terminal and verbs are for a job's owner", "a colleague's output; ending or entering their job"),
    ("spec_owner", "command and environment are for a job's owner", "a colleague's secrets in them"),
    ("tenant_member", "jobs are submitted for one's own tenants", "using up another tenant's share"),
    ("lead_captures", "a job that names no tenant goes nowhere by what a lead did",
     "a lead who adds somebody, and reads and ends their next jobs"),
    ("job_uids", "a uid of ours on the socket is its account's owner, or nobody",
     "a job as a new person, member of the default tenant, with tokens of its own"),
    ("token_owner", "tokens are their user's", "making, seeing or deleting another's token"),
    ("token_scope", "a token makes no token that may do more", "a stolen token that is worth more than it was"),
    ("holders", "who has a GPU is told within the tenant only", "names of another tenant's people and jobs"),
    ("body_share", "what one caller sends at once is bounded over all connections", "using up the daemon's memory"),
    ("caller_share", "one caller gets at most half of the connections, and as many as are free", "keeping everybody else from the API"),
]
NAMES = [row[0] for row in PROTECTIONS]
# Those that no tenant can attack: store_cases.py takes them away.
OF_THE_STORE = ["clock_jumps", "reserve", "row_sums"]

if __name__ == "__main__":
    print("| protection | | stops |\n|---|---|---|")
    for name, what, stops in PROTECTIONS:
        print(f"| `{name}` | {what} | {stops} |")
