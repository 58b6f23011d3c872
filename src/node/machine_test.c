#include "node/machine.h"

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static struct machine look(const struct fake_host *h)
{
    struct machine m;
    struct err e = { 0 };
    int rc = machine_read(h->root, &m, &e);
    CHECK_STR(e.msg, "");
    CHECK(rc == 0);
    return m;
}

static void the_real_machine_can_be_read(void)
{
    struct machine m;
    struct err e = { 0 };
    CHECK(machine_read("", &m, &e) == 0);
    CHECK(m.host[0] && !strchr(m.host, '.') && m.kernel[0]);
    CHECK(m.cpu_milli > 0 && m.mem_mib > 0);
    CHECK(strlen(m.boot_id) == 36 || m.boot_id[0] == '\0');
}

/* At least one processor is here, so a quota below one is the least. */
static void limits_of_cgroup_v2_are_respected(void)
{
    AUTO(fake_clear) struct fake_host h;
    fake_init(&h);
    fake_file(&h, "/proc/meminfo", "MemFree: 1 kB\nMemTotal:       16384000 kB\n");
    fake_file(&h, "/proc/sys/kernel/random/boot_id", "6a3c9d1e-0000-4000-8000-112233445566\n");
    fake_file(&h, "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    struct machine m = look(&h);
    CHECK(m.cgroup == CGROUP_V2 && m.mem_mib == 16000 && m.cpu_milli >= 1000 && !m.wsl);
    CHECK_STR(m.boot_id, "6a3c9d1e-0000-4000-8000-112233445566");
    fake_file(&h, "/proc/self/cgroup", "0::/lab.slice/keeper.service\n");
    fake_file(&h, "/sys/fs/cgroup/lab.slice/keeper.service/cpu.max", "max 100000\n");
    fake_file(&h, "/sys/fs/cgroup/lab.slice/keeper.service/memory.max", "8388608000\n");
    fake_file(&h, "/sys/fs/cgroup/lab.slice/cpu.max", "50000 100000\n");
    fake_file(&h, "/sys/fs/cgroup/lab.slice/memory.max", "max\n");
    m = look(&h);
    CHECK_INT(m.cpu_milli, 500);
    CHECK_INT(m.mem_mib, 8000);
}

static void limits_of_cgroup_v1_are_respected(void)
{
    AUTO(fake_clear) struct fake_host h;
    fake_init(&h);
    fake_file(&h, "/proc/meminfo", "MemTotal:       16384000 kB\n");
    fake_file(&h, "/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n3:memory:/docker/abc\n1:x:/y\n");
    fake_file(&h, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n");
    fake_file(&h, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    fake_file(&h, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_file(&h, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1048576000\n");
    struct machine m = look(&h);
    CHECK_INT(m.cgroup, CGROUP_V1);
    CHECK_INT(m.cpu_milli, 250); /* in a container only the top may exist */
    CHECK_INT(m.mem_mib, 1000);
    fake_file(&h, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    fake_file(&h, "/sys/fs/cgroup/unified/cgroup.controllers", "");
    m = look(&h);
    CHECK(m.cgroup == CGROUP_HYBRID && m.cpu_milli >= 1000);
}

static void a_machine_without_cgroups_is_one(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct machine m;
    struct err e;
    fake_init(&h);
    CHECK(machine_read(h.root, &m, &e) < 0 && strstr(e.msg, "/proc/meminfo"));
    fake_file(&h, "/proc/meminfo", "MemTotal: 2048 kB\n");
    fake_file(&h, "/dev/dxg", "");
    m = look(&h);
    CHECK(m.cgroup == CGROUP_NONE && m.mem_mib == 2 && m.wsl);
    CHECK_STR(m.boot_id, "");
    CHECK_STR(cgroup_kind_name(CGROUP_NONE), "none");
    CHECK_STR(cgroup_kind_name(CGROUP_HYBRID), "hybrid");
}

static void a_clock_that_is_off_is_told(void)
{
    struct machine m = { .clock_synced = true, .clock_error_ms = 20 };
    CHECK(machine_clock_trouble(&m) == NULL);
    m.clock_error_ms = 5000;
    CHECK(strstr(machine_clock_trouble(&m), "more than a second"));
    m.clock_synced = false;
    CHECK(strstr(machine_clock_trouble(&m), "chrony"));
    m.clock_error_ms = -1;
    CHECK(machine_clock_trouble(&m) == NULL);
}

static const struct test tests[] = {
    { "the real machine can be read", the_real_machine_can_be_read },
    { "limits of cgroup v2 are respected", limits_of_cgroup_v2_are_respected },
    { "limits of cgroup v1 are respected", limits_of_cgroup_v1_are_respected },
    { "a machine without cgroups is one", a_machine_without_cgroups_is_one },
    { "a clock that is off is told", a_clock_that_is_off_is_told },
};
TEST_CASES(tests)
