#include "keeper/seccomp.h"

#include <errno.h>
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
    { "clone3", ENOSYS },
    /* the kernel's keys, tracing, and parts of it that few need and many bugs were in */
    { "add_key", EPERM },
    { "keyctl", EPERM },
    { "request_key", EPERM },
    { "bpf", EPERM },
    { "perf_event_open", EPERM },
    { "userfaultfd", EPERM },
    { "io_uring_setup", ENOSYS },
    { "io_uring_enter", ENOSYS },
    { "io_uring_register", ENOSYS },
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
    { "nfsservctl", ENOSYS },
    { "syslog", EPERM },
};

/* Refused when the argument, under the mask, is the value. */
static const struct refused_argument {
    const char *name;
    uint32_t index;
    uint64_t mask, value;
} refused_arguments[] = {
    { "clone", 0, CLONE_NEWUSER, CLONE_NEWUSER },
    { "clone", 0, CLONE_NEWNS, CLONE_NEWNS },
    { "clone", 0, CLONE_NEWPID, CLONE_NEWPID },
    { "clone", 0, CLONE_NEWNET, CLONE_NEWNET },
    { "clone", 0, CLONE_NEWIPC, CLONE_NEWIPC },
    { "clone", 0, CLONE_NEWUTS, CLONE_NEWUTS },
    { "clone", 0, CLONE_NEWCGROUP, CLONE_NEWCGROUP },
    { "socket", 0, UINT32_MAX, AF_VSOCK }, /* talks to the hypervisor, past the network */
};

static void write_rule_end(struct json_out *w, int error)
{
    json_put_str(w, "action", STR("SCMP_ACT_ERRNO"));
    json_put_i64(w, "errnoRet", error);
    json_end(w, '}');
}

/* Calls with one answer are one rule. */
static void write_calls(struct json_out *w, int error)
{
    json_begin(w, NULL, '{');
    json_begin(w, "names", '[');
    for (size_t i = 0; i < ARRAY_LEN(refused_calls); i++)
        if (refused_calls[i].error == error)
            json_put_str(w, NULL, str_of(refused_calls[i].name));
    json_end(w, ']');
    write_rule_end(w, error);
}

static void write_argument(struct json_out *w, const struct refused_argument *r)
{
    json_begin(w, NULL, '{');
    json_begin(w, "names", '[');
    json_put_str(w, NULL, str_of(r->name));
    json_end(w, ']');
    json_begin(w, "args", '[');
    json_begin(w, NULL, '{');
    json_put_u64(w, "index", r->index);
    json_put_u64(w, "value", r->mask);
    json_put_u64(w, "valueTwo", r->value);
    json_put_str(w, "op", STR("SCMP_CMP_MASKED_EQ"));
    json_end(w, '}');
    json_end(w, ']');
    write_rule_end(w, EPERM);
}

void seccomp_write(struct json_out *w, const char *key)
{
    static const int errors[] = { EPERM, ENOSYS };
    json_begin(w, key, '{');
    json_put_str(w, "defaultAction", STR("SCMP_ACT_ALLOW"));
    json_begin(w, "architectures", '[');
    for (size_t i = 0; i < ARRAY_LEN(architectures); i++)
        json_put_str(w, NULL, str_of(architectures[i]));
    json_end(w, ']');
    json_begin(w, "syscalls", '[');
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        write_calls(w, errors[i]);
    for (size_t i = 0; i < ARRAY_LEN(refused_arguments); i++)
        write_argument(w, &refused_arguments[i]);
    json_end(w, ']');
    json_end(w, '}');
}
