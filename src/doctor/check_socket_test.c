#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

#define TCP(local, state, uid, inode)                                                              \
    "   0: " local " 00000000:0000 " state " 00000000:00000000 00:00000000 00000000 " uid          \
    "        0 " inode " 1 0000000000000000 100 0 0 10 0\n"
#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"

/* Process `pid` is `name` and has the socket. */
static void add_process(const struct patient *p, const char *pid, const char *name,
                        const char *socket)
{
    char path[128], full[512];
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    fake_file(&p->host, path, name);
    snprintf(path, sizeof path, "/proc/%s/fd/x", pid);
    fake_file(&p->host, path, "");
    snprintf(full, sizeof full, "%s/proc/%s/fd/3", p->host.root, pid);
    CHECK(symlink(socket, full) == 0);
}

static void a_port_is_free_or_ours(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "port 7433 is free", NULL);
    fake_file(&p.host, "/proc/net/tcp", /* another port; a connection; another address */
              HEAD TCP("0100007F:1D0A", "0A", "0", "11") TCP("0100007F:1D09", "01", "0", "12")
                  TCP("0200A8C0:1D09", "0A", "0", "13"));
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "free", NULL);
    fake_file(&p.host, "/proc/net/tcp", HEAD TCP("0100007F:1D09", "0A", "999", "4711"));
    add_process(&p, "77", "nightshiftd\n", "socket:[4711]");
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "nightshiftd listens at 127.0.0.1:7433 (process 77)",
               NULL);
    p.in.listen = "none";
    CHECK_SAYS(&p, check_port, DOCTOR_SKIP, "no fixed port", NULL);
    p.in.listen = "127.0.0.1:0";
    CHECK_SAYS(&p, check_port, DOCTOR_SKIP, "no fixed port", NULL);
}

static void who_has_the_port_is_named(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/proc/net/tcp", HEAD TCP("00000000:1D09", "0A", "33", "4711"));
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken by a process of uid 33", "sport = :7433");
    p.in.facts.uid = 33; /* it is the daemon that asks, and its own port */
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken by a process of uid 33", "sport = :7433");
    p.in.keeper_mode = "";
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "nightshiftd listens", NULL);
    add_process(&p, "76", "sshd\n", "socket:[471]");
    add_process(&p, "77", "python3\n", "socket:[4711]");
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken by python3 (process 77)", "ps -fp 77");
}

static void addresses_of_version_6_are_compared(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/proc/net/tcp6",
              HEAD TCP("00000000000000000000000001000000:1D09", "0A", "33", "5")); /* ::1 */
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "free", NULL);
    p.in.listen = "[::1]:7433";
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken", "--listen");
    p.in.listen = "0.0.0.0:7433";
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken", "--listen");
    p.in.listen = "127.0.0.1:7433";
    fake_file(&p.host, "/proc/net/tcp6",
              HEAD TCP("00000000000000000000000000000000:1D09", "0A", "33", "5")); /* any */
    CHECK_SAYS(&p, check_port, DOCTOR_BAD, "taken", "--listen");
}

static void the_keeper_is_found_without_a_connection(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_keeper, DOCTOR_SKIP, "nightshiftd starts it", NULL);
    p.in.keeper_mode = ""; /* a daemon asks, so it should run */
    CHECK_SAYS(&p, check_keeper, DOCTOR_BAD, "nobody listens", "keeper.start");
    p.in.keeper_mode = NULL;
    p.in.keeper_external = true;
    CHECK_SAYS(&p, check_keeper, DOCTOR_BAD, "nobody listens at /run/ns/keeper.sock",
               "systemctl start nightshift-keeper");
    fake_file(&p.host, "/proc/net/unix", /* a connection, and somebody else's keeper */
              "Num RefCount Protocol Flags Type St Inode Path\n"
              "0000000000000000: 00000003 00000000 00000000 0001 03 4710 /run/ns/keeper.sock\n"
              "0000000000000000: 00000002 00000000 00010000 0001 01 4712 /x/run/ns/keeper.sock\n");
    CHECK_SAYS(&p, check_keeper, DOCTOR_BAD, "nobody listens", "systemctl");
    fake_file(&p.host, "/proc/net/unix",
              "0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/ns/keeper.sock\n");
    CHECK_SAYS(&p, check_keeper, DOCTOR_BAD, "may not be opened", "group");
    fake_file(&p.host, "/run/ns/keeper.sock", "");
    CHECK_SAYS(&p, check_keeper, DOCTOR_GOOD, "it runs", NULL);
    add_process(&p, "78", "nightshift-keep\n", "socket:[4711]");
    p.in.keeper_mode = "root";
    CHECK_SAYS(&p, check_keeper, DOCTOR_GOOD, "it runs, process 78, mode root", NULL);
    p.in.keeper_mode = "plain";
    CHECK_SAYS(&p, check_keeper, DOCTOR_GOOD, "mode plain: nothing contains", NULL);
    p.in.keeper_silent = "nightshift-keeper has not answered for 11 s";
    CHECK_SAYS(&p, check_keeper, DOCTOR_BAD, "not answered for 11 s", "/stack");
    p.in.keeper_silent = "";
    CHECK_SAYS(&p, check_keeper, DOCTOR_GOOD, "it runs", NULL);
}

static void a_table_of_rubbish_is_no_listener(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/proc/net/tcp", HEAD "   0: :1D09 x 0A\n" TCP("1D09", "0A", "x", "y"));
    fake_file(&p.host, "/proc/net/unix", "a b c 00010000 d e\nx\n");
    CHECK_SAYS(&p, check_port, DOCTOR_GOOD, "free", NULL);
    CHECK_SAYS(&p, check_keeper, DOCTOR_SKIP, "starts it", NULL);
}

static const struct test tests[] = {
    { "a port is free or ours", a_port_is_free_or_ours },
    { "who has the port is named", who_has_the_port_is_named },
    { "addresses of version 6 are compared", addresses_of_version_6_are_compared },
    { "the keeper is found without a connection", the_keeper_is_found_without_a_connection },
    { "a table of rubbish is no listener", a_table_of_rubbish_is_no_listener },
};
TEST_CASES(tests)
