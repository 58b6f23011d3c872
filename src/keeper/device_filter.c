#include "keeper/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/file.h"

/* The kernel's program gets a struct bpf_cgroup_dev_ctx and gives 1 (may) or 0. */
#define INSN_PER_RULE 4
#define INSN_FRAME 8
#define TYPE_MASK 0xffff /* of access_type; above it is what for */
#define LOAD_TRIES 10

enum { /* registers */
    R_ANSWER = BPF_REG_0,
    R_CTX = BPF_REG_1,
    R_TYPE = BPF_REG_2,
    R_MAJOR = BPF_REG_3,
    R_MINOR = BPF_REG_4
};

/* struct bpf_insn without its bit fields: the registers are one byte, the source above. */
struct insn {
    uint8_t code, registers;
    int16_t off;
    int32_t imm;
};
_Static_assert(sizeof(struct insn) == sizeof(struct bpf_insn), "as the kernel reads it");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the source register is above");

struct program {
    struct insn insn[INSN_FRAME + INSN_PER_RULE * DEVICE_RULES_MAX];
    uint32_t n;
};

static void add(struct program *p, uint8_t code, uint8_t registers, int16_t off, int32_t imm)
{
    p->insn[p->n++] = (struct insn){ code, registers, off, imm };
}

static void load_field(struct program *p, uint8_t into, size_t offset)
{
    add(p, BPF_LDX | BPF_MEM | BPF_W, (uint8_t)(into | R_CTX << 4), (int16_t)offset, 0);
}

static void answer(struct program *p, int32_t value)
{
    add(p, BPF_ALU64 | BPF_MOV | BPF_K, R_ANSWER, 0, value);
    add(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
}

static void add_rule(struct program *p, const struct device_rule *r)
{
    bool any = r->minor == DEVICE_ANY_MINOR;
    add(p, BPF_JMP | BPF_JNE | BPF_K, R_MAJOR, any ? 2 : 3, (int32_t)r->major);
    if (!any)
        add(p, BPF_JMP | BPF_JNE | BPF_K, R_MINOR, 2, (int32_t)r->minor);
    answer(p, 1);
}

static void write_program(struct program *p, const struct device_rule *rule, size_t n)
{
    p->n = 0;
    load_field(p, R_TYPE, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    add(p, BPF_ALU | BPF_AND | BPF_K, R_TYPE, 0, TYPE_MASK);
    load_field(p, R_MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
    load_field(p, R_MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, R_TYPE, 2, BPF_DEVCG_DEV_CHAR);
    answer(p, 0);
    for (size_t i = 0; i < n; i++)
        add_rule(p, &rule[i]);
    answer(p, 0);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, cmd, attr, sizeof *attr);
}

static int load_program(const struct device_rule *rule, size_t n)
{
    static const char licence[] = "Apache-2.0";
    struct program p;
    write_program(&p, rule, n);
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr); /* the kernel refuses what is not zero behind what it knows */
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uintptr_t)p.insn;
    attr.insn_cnt = p.n;
    attr.license = (uintptr_t)licence;
    int fd = -1;
    errno =
        EAGAIN; /* a signal came while the kernel read it: it was handled when we are back here */
    for (int i = 0; i < LOAD_TRIES && fd < 0 && errno == EAGAIN; i++)
        fd = bpf(BPF_PROG_LOAD, &attr);
    return fd;
}

bool device_filter_works(const char *root)
{
    struct statfs f;
    if (statfs(root, &f) < 0 || f.f_type != CGROUP2_SUPER_MAGIC)
        return false;
    AUTO(file_close_p) int program = load_program(NULL, 0);
    return program >= 0;
}

int device_filter_set(const char *path, const struct device_rule *rule, size_t n, struct err *e)
{
    if (n > DEVICE_RULES_MAX)
        return err_set(e, ERR_TOO_LARGE, "%zu devices for one job; at most %d", n,
                       DEVICE_RULES_MAX);
    AUTO(file_close_p) int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(file_close_p) int program = group < 0 ? -1 : load_program(rule, n);
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t)group;
    attr.attach_bpf_fd = (uint32_t)program;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI; /* beside what systemd may have set above us */
    if (program < 0 || bpf(BPF_PROG_ATTACH, &attr) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot bound the devices of '%s': %s", path,
                       strerror(errno));
    return 0;
}
