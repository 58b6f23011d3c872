#include "keeper/seccomp.h"

#include <errno.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/socket.h>

/* 32-bit programs make the same calls by other numbers; a call of an architecture that is not
 * listed ends the program. */
static const char *const architectures[] = {
#if defined(__x86_64__)
    "SCMP_ARCH_X86_64",
    "SCMP_ARCH_X86",
    "SCMP_ARCH_X32",
#elif defined(__aarch64__)
    "SCMP_ARCH_AARCH64",
    "SCMP_ARCH_ARM",
#endif
};

/* As wide as what container engines allow by default, and wider where people's programs need it: debuggers, machines
 * with several memories, GPUs of one job that share by descriptor. */
static const char *const allowed_calls[] = {
    /* files and folders */
    "access",
    "arm_fadvise64_64",
    "arm_sync_file_range",
    "cachestat",
    "chdir",
    "chmod",
    "chown",
    "chown32",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fadvise64_64",
    "fallocate",
    "fanotify_mark",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchown32",
    "fchownat",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "flock",
    "fstat",
    "fstat64",
    "fstatat",
    "fstatat64",
    "fstatfs",
    "fstatfs64",
    "fsync",
    "ftruncate",
    "ftruncate64",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "lchown",
    "lchown32",
    "link",
    "linkat",
    "_llseek",
    "lseek",
    "lstat",
    "lstat64",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "name_to_handle_at",
    "newfstatat",
    "oldfstat",
    "oldlstat",
    "oldstat",
    "open",
    "openat",
    "openat2",
    "readahead",
    "readdir",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "stat",
    "stat64",
    "statfs",
    "statfs64",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "sync_file_range2",
    "syncfs",
    "truncate",
    "truncate64",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimensat_time64",
    "utimes",
    /* attributes of files */
    "fgetxattr",
    "flistxattr",
    "fremovexattr",
    "fsetxattr",
    "getxattr",
    "getxattrat",
    "lgetxattr",
    "listxattr",
    "listxattrat",
    "llistxattr",
    "lremovexattr",
    "lsetxattr",
    "removexattr",
    "removexattrat",
    "setxattr",
    "setxattrat",
    /* reading, writing, waiting for either */
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_pgetevents_time64",
    "io_setup",
    "io_submit",
    "_newselect",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "ppoll_time64",
    "pread64",
    "preadv",
    "preadv2",
    "pselect6",
    "pselect6_time64",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readv",
    "select",
    "sendfile",
    "sendfile64",
    "splice",
    "tee",
    "vmsplice",
    "write",
    "writev",
    /* sockets; socket itself is below */
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmmsg_time64",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socketpair",
    /* memory */
    "brk",
    "get_mempolicy",
    "madvise",
    "map_shadow_stack",
    "mbind",
    "membarrier",
    "memfd_create",
    "memfd_secret",
    "migrate_pages",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mmap2",
    "move_pages",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "process_madvise",
    "process_mrelease",
    "remap_file_pages",
    "set_mempolicy",
    "set_mempolicy_home_node",
    /* processes and threads; clone is below */
    "arch_prctl",
    "breakpoint",
    "cacheflush",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_requeue",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "ioprio_get",
    "ioprio_set",
    "kcmp",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "lsm_get_self_attr",
    "lsm_list_modules",
    "lsm_set_self_attr",
    "modify_ldt",
    "nice",
    "pidfd_getfd",
    "pidfd_open",
    "prctl",
    "prlimit64",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "rseq",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_rr_get_interval_time64",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "seccomp",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "set_tls",
    "setpgid",
    "setpriority",
    "setrlimit",
    "setsid",
    "ugetrlimit",
    "vfork",
    "wait4",
    "waitid",
    "waitpid",
    /* who it is */
    "capget",
    "capset",
    "getegid",
    "getegid32",
    "geteuid",
    "geteuid32",
    "getgid",
    "getgid32",
    "getgroups",
    "getgroups32",
    "getresgid",
    "getresgid32",
    "getresuid",
    "getresuid32",
    "getuid",
    "getuid32",
    "setfsgid",
    "setfsgid32",
    "setfsuid",
    "setfsuid32",
    "setgid",
    "setgid32",
    "setgroups",
    "setgroups32",
    "setregid",
    "setregid32",
    "setresgid",
    "setresgid32",
    "setresuid",
    "setresuid32",
    "setreuid",
    "setreuid32",
    "setuid",
    "setuid32",
    /* signals */
    "kill",
    "pause",
    "pidfd_send_signal",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "rt_tgsigqueueinfo",
    "sgetmask",
    "sigaction",
    "sigaltstack",
    "signal",
    "signalfd",
    "signalfd4",
    "sigpending",
    "sigprocmask",
    "sigreturn",
    "sigsuspend",
    "ssetmask",
    "tgkill",
    "tkill",
    /* time */
    "adjtimex",
    "alarm",
    "clock_adjtime",
    "clock_adjtime64",
    "clock_getres",
    "clock_getres_time64",
    "clock_gettime",
    "clock_gettime64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "getitimer",
    "gettimeofday",
    "nanosleep",
    "setitimer",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_gettime64",
    "timer_settime",
    "timer_settime64",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_gettime64",
    "timerfd_settime",
    "timerfd_settime64",
    "times",
    /* shared memory and messages of its own namespace */
    "ipc",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedreceive_time64",
    "mq_timedsend",
    "mq_timedsend_time64",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "semtimedop_time64",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    /* the system */
    "getrandom",
    "oldolduname",
    "olduname",
    "sysinfo",
    "uname",
};

/* What is not listed is not there, as far as a program can tell (ENOSYS): libraries then do without.  These are told
 * to be forbidden instead, since programs that try them look for that. */
static const struct refused_call {
    const char *name;
    int error;
} refused_calls[] = {
    /* mounts */
    { "mount", EPERM },
    { "umount", EPERM },
    { "umount2", EPERM },
    { "pivot_root", EPERM },
    { "chroot", EPERM },
    { "move_mount", EPERM },
    { "open_tree", EPERM },
    { "fsopen", EPERM },
    { "fsconfig", EPERM },
    { "fsmount", EPERM },
    { "fspick", EPERM },
    { "mount_setattr", EPERM },
    /* namespaces; clone's flags are below, those of clone3 lie where a filter cannot look */
    { "unshare", EPERM },
    { "setns", EPERM },
    { "sethostname", EPERM },
    { "setdomainname", EPERM },
    /* all of a 32-bit program's calls about sockets in one: what it asks for lies where a filter cannot look */
    { "socketcall", EPERM },
    /* the kernel's keys, tracing, and parts of it that few need and many bugs were in */
    { "add_key", EPERM },
    { "keyctl", EPERM },
    { "request_key", EPERM },
    { "bpf", EPERM },
    { "fanotify_init", EPERM },
    { "perf_event_open", EPERM },
    { "userfaultfd", EPERM },
    /* files by number, past every folder's permissions */
    { "open_by_handle_at", EPERM },
    /* the machine itself */
    { "kexec_load", EPERM },
    { "kexec_file_load", EPERM },
    { "init_module", EPERM },
    { "finit_module", EPERM },
    { "delete_module", EPERM },
    { "swapon", EPERM },
    { "swapoff", EPERM },
    { "reboot", EPERM },
    { "settimeofday", EPERM },
    { "stime", EPERM },
    { "clock_settime", EPERM },
    { "clock_settime64", EPERM },
    { "acct", EPERM },
    { "quotactl", EPERM },
    { "quotactl_fd", EPERM },
    { "iopl", EPERM },
    { "ioperm", EPERM },
    { "vhangup", EPERM },
    { "lookup_dcookie", EPERM },
    { "syslog", EPERM },
    /* An old crun does not know of another default than EPERM, and threads begin with this one. */
    { "clone3", ENOSYS },
    { "io_uring_setup", ENOSYS },
};

#define NAMESPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)

/* The kernel looks at 32 bits of these arguments, and a filter at 64. */
#define LOW 0xffffffffu

/* What the first argument decides: allowed (error 0) or refused when it compares so. */
static const struct argument_rule {
    const char *name;
    int error;
    const char *op;
    uint64_t value, masked;
} argument_rules[] = {
    { "clone", 0, "SCMP_CMP_MASKED_EQ", NAMESPACES, 0 },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWUSER, CLONE_NEWUSER },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWNS, CLONE_NEWNS },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWPID, CLONE_NEWPID },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWNET, CLONE_NEWNET },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWIPC, CLONE_NEWIPC },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWUTS, CLONE_NEWUTS },
    { "clone", EPERM, "SCMP_CMP_MASKED_EQ", CLONE_NEWCGROUP, CLONE_NEWCGROUP },
    /* What programs speak with.  The other families are forty, and among them those in which the kernel's holes were. */
    { "socket", 0, "SCMP_CMP_MASKED_EQ", LOW, AF_UNIX },
    { "socket", 0, "SCMP_CMP_MASKED_EQ", LOW, AF_INET },
    { "socket", 0, "SCMP_CMP_MASKED_EQ", LOW, AF_INET6 },
    { "socket", 0, "SCMP_CMP_MASKED_EQ", LOW, AF_NETLINK },
    { "socket", EPERM, "SCMP_CMP_MASKED_EQ", LOW, AF_PACKET },
    { "socket", EPERM, "SCMP_CMP_MASKED_EQ", LOW, AF_ALG },
    { "socket", EPERM, "SCMP_CMP_MASKED_EQ", LOW, AF_VSOCK }, /* to the hypervisor */
    { "personality", 0, "SCMP_CMP_EQ", 0x0, 0 },              /* Linux */
    { "personality", 0, "SCMP_CMP_EQ", 0x8, 0 },              /* of 32 bits */
    { "personality", 0, "SCMP_CMP_EQ", 0x20000, 0 },          /* an old version number */
    { "personality", 0, "SCMP_CMP_EQ", 0x20008, 0 },          /* both */
    { "personality", 0, "SCMP_CMP_EQ", 0x40000, 0 },    /* addresses that debuggers find again */
    { "personality", 0, "SCMP_CMP_EQ", 0xffffffff, 0 }, /* which is it? */
};

static void write_answer(struct json_out *w, int error)
{
    json_put_str(w, "action", error ? STR("SCMP_ACT_ERRNO") : STR("SCMP_ACT_ALLOW"));
    if (error)
        json_put_i64(w, "errnoRet", error);
    json_end(w, '}');
}

static void write_allowed(struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_begin(w, "names", '[');
    for (size_t i = 0; i < ARRAY_LEN(allowed_calls); i++)
        json_put_str(w, NULL, str_of(allowed_calls[i]));
    json_end(w, ']');
    write_answer(w, 0);
}

/* Calls with one answer are one rule. */
static void write_refused(struct json_out *w, int error)
{
    json_begin(w, NULL, '{');
    json_begin(w, "names", '[');
    for (size_t i = 0; i < ARRAY_LEN(refused_calls); i++)
        if (refused_calls[i].error == error)
            json_put_str(w, NULL, str_of(refused_calls[i].name));
    json_end(w, ']');
    write_answer(w, error);
}

struct compared {
    unsigned index;
    const char *op;
    uint64_t value, masked;
};

static void write_argument(struct json_out *w, const char *name, const struct compared *c,
                           int error)
{
    json_begin(w, NULL, '{');
    json_begin(w, "names", '[');
    json_put_str(w, NULL, str_of(name));
    json_end(w, ']');
    json_begin(w, "args", '[');
    json_begin(w, NULL, '{');
    json_put_u64(w, "index", c->index);
    json_put_u64(w, "value", c->value);
    json_put_u64(w, "valueTwo", c->masked);
    json_put_str(w, "op", str_of(c->op));
    json_end(w, '}');
    json_end(w, ']');
    write_answer(w, error);
}

/* Who owns a file may say for which project it is counted: with these a job would leave the bound of its scratch, or
 * use up another's.  The type and the number of each; a program of 32 bits names another size. */
static const uint32_t refused_ioctls[] = {
    FS_IOC_FSSETXATTR & 0xffff,
    FS_IOC_SETFLAGS & 0xffff,
};

/* Does another of the refused, before this one or wherever, have these bits too? */
static bool is_shared(uint32_t mask, uint32_t bits, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if ((refused_ioctls[i] & mask) == bits)
            return true;
    return false;
}

/* A filter can compare for equality only, so all others are allowed in parts: those that are like one of the refused
 * down to a bit, and differ there. */
static void write_ioctls(struct json_out *w)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_ioctls); i++) {
        for (uint32_t bit = 0x8000; bit; bit >>= 1) {
            uint32_t mask = 0xffffu & ~(bit - 1), bits = (refused_ioctls[i] & mask) ^ bit;
            bool written = is_shared(mask, bits ^ bit, i);
            if (!written && !is_shared(mask, bits, ARRAY_LEN(refused_ioctls)))
                write_argument(w, "ioctl",
                               &(struct compared){ 1, "SCMP_CMP_MASKED_EQ", mask, bits }, 0);
        }
        write_argument(w, "ioctl",
                       &(struct compared){ 1, "SCMP_CMP_MASKED_EQ", 0xffff, refused_ioctls[i] },
                       EPERM);
    }
}

void seccomp_write(struct json_out *w, const char *key)
{
    static const int errors[] = { EPERM, ENOSYS };
    json_begin(w, key, '{');
    json_put_str(w, "defaultAction", STR("SCMP_ACT_ERRNO"));
    json_put_i64(w, "defaultErrnoRet", ENOSYS);
    json_begin(w, "architectures", '[');
    for (size_t i = 0; i < ARRAY_LEN(architectures); i++)
        json_put_str(w, NULL, str_of(architectures[i]));
    json_end(w, ']');
    json_begin(w, "syscalls", '[');
    /* First: libseccomp takes what is allowed of sockets for what socketcall may do, unless that is decided. */
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        write_refused(w, errors[i]);
    write_allowed(w);
    for (size_t i = 0; i < ARRAY_LEN(argument_rules); i++)
        write_argument(w, argument_rules[i].name,
                       &(struct compared){ 0, argument_rules[i].op, argument_rules[i].value,
                                           argument_rules[i].masked },
                       argument_rules[i].error);
    write_ioctls(w);
    json_end(w, ']');
    json_end(w, '}');
}
