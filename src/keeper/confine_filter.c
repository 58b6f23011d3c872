#include "keeper/confine_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* What umoci makes, which is a Go program, and what its neighbours in age and C library make instead. */
static const unsigned allowed[] = {
    /* files */
    SYS_close,
    SYS_copy_file_range,
    SYS_dup,
    SYS_dup3,
    SYS_faccessat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_fcntl,
    SYS_fdatasync,
    SYS_fgetxattr,
    SYS_flistxattr,
    SYS_flock,
    SYS_fremovexattr,
    SYS_fsetxattr,
    SYS_fstat,
    SYS_fstatfs,
    SYS_fsync,
    SYS_ftruncate,
    SYS_getcwd,
    SYS_getdents64,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_linkat,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_lremovexattr,
    SYS_lseek,
    SYS_lsetxattr,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_newfstatat,
    SYS_openat,
    SYS_pread64,
    SYS_preadv,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_read,
    SYS_readlinkat,
    SYS_readv,
    SYS_removexattr,
    SYS_sendfile,
    SYS_setxattr,
    SYS_statfs,
    SYS_statx,
    SYS_symlinkat,
    SYS_truncate,
    SYS_umask,
    SYS_unlinkat,
    SYS_utimensat,
    SYS_write,
    SYS_writev,
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_fchmodat2
    SYS_fchmodat2,
#endif
#ifdef SYS_openat2
    SYS_openat2,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_renameat2,
    SYS_chdir,
    SYS_fchdir,
#ifdef SYS_open /* names of old, which younger architectures do not have */
    SYS_access,
    SYS_chmod,
    SYS_chown,
    SYS_dup2,
    SYS_futimesat,
    SYS_getdents,
    SYS_lchown,
    SYS_link,
    SYS_lstat,
    SYS_mkdir,
    SYS_mknod,
    SYS_open,
    SYS_readlink,
    SYS_rename,
    SYS_rmdir,
    SYS_stat,
    SYS_symlink,
    SYS_unlink,
    SYS_utime,
    SYS_utimes,
#endif
    /* waiting */
    SYS_clock_nanosleep,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_nanosleep,
    SYS_pipe2,
    SYS_ppoll,
    SYS_pselect6,
#ifdef SYS_epoll_wait
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_eventfd,
    SYS_pipe,
    SYS_poll,
    SYS_select,
#endif
    /* memory and threads */
    SYS_brk,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_get_robust_list,
    SYS_gettid,
    SYS_madvise,
    SYS_membarrier,
    SYS_mincore,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_restart_syscall,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_sigaltstack,
    SYS_tgkill,
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
    /* what it is and what time */
    SYS_capget,
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_getegid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getgroups,
    SYS_getitimer,
    SYS_getpgid,
    SYS_getpid,
    SYS_getppid,
    SYS_getrandom,
    SYS_getresgid,
    SYS_getresuid,
    SYS_getrusage,
    SYS_gettimeofday,
    SYS_getuid,
    SYS_prlimit64,
    SYS_setitimer,
    SYS_sysinfo,
    SYS_timer_create,
    SYS_timer_delete,
    SYS_timer_settime,
    SYS_times,
    SYS_uname,
#ifdef SYS_getrlimit
    SYS_getrlimit,
    SYS_setrlimit,
#endif
#ifdef SYS_time
    SYS_time,
#endif
    /* the program itself, after this: all that it could execute is what it is */
    SYS_execve,
};

#define AT(field) offsetof(struct seccomp_data, field)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(at))
/* Goes over the next `n` when it is not the value. */
#define UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), 0, n)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (unsigned)(what))
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | (error))

#ifdef ARCHITECTURE
/* The lower half of an argument comes first on both architectures. */
static const struct sock_filter front[] = {
    LOAD(AT(arch)),
    UNLESS(ARCHITECTURE, 1),
    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(AT(nr)),
    /* What is written to a shared mapping is counted by nobody. */
    UNLESS(SYS_mmap, 5),
    LOAD(AT(args[3])),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_TYPE),
    UNLESS(MAP_PRIVATE, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    REFUSE(EPERM),
    /* Threads, no processes. */
    UNLESS(SYS_clone, 4),
    LOAD(AT(args[0])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    REFUSE(EPERM),
};

int confine_filter(void)
{
    struct sock_filter code[ARRAY_LEN(front) + 2 * ARRAY_LEN(allowed) + 1];
    unsigned short n = 0;
    for (size_t i = 0; i < ARRAY_LEN(front); i++)
        code[n++] = front[i];
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        code[n++] = (struct sock_filter)UNLESS(allowed[i], 1);
        code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)REFUSE(ENOSYS);
    const struct sock_fprog program = { .len = n, .filter = code };
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
/* Nobody has looked at what is called by which number there. */
int confine_filter(void)
{
    (void)allowed;
    return 0;
}
#endif
