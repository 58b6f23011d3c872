#include "keeper/net.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/tool.h"
#include "sys/file.h"
#include "tests/lib/test.h"

/* All of it happens in namespaces of the test's own, so it meets no real installation and leaves
 * nothing behind.  The "host" is the test's network namespace; it has the address 198.51.100.1. */
#define HOST_IP "198.51.100.1"

struct world {
    struct loop *loop;
    struct net *net;
    char dir[64], run[96], state[96];
};

static void run_ok(const char *script)
{
    AUTO(buf_free) struct buf out = BUF(0);
    const char *argv[] = { "sh", "-c", script, NULL };
    struct process_exit how;
    struct err e;
    CHECK(tool_wait(argv, 20000, &out, &how, &e) == 0);
    if (how.code != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", script, out.p ? out.p : "");
}

/* New ones for each test, so that none meets what a failed one left. */
static void need_private_network(void)
{
    char path[TOOL_PATH_MAX];
    struct err e;
    if (geteuid() != 0)
        SKIP("needs root");
    if (tool_find("ip", NULL, "iproute2", path, &e) < 0)
        SKIP("%s", e.msg);
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
        SKIP("cannot have namespaces of its own: %s", strerror(errno));
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("none", "/sys", "sysfs", 0, NULL) == 0); /* shows the interfaces of our network */
    CHECK(mount("none", "/run", "tmpfs", 0, NULL) == 0);
    run_ok("ip link set lo up; ip link add out0 type bridge; ip addr add " HOST_IP "/24 dev out0;"
           "ip link set out0 up");
}

static void write_text(const char *path, const char *text)
{
    struct err e;
    CHECK(file_write(path, str_of(text), &e) == 0);
}

static void world_config(const struct world *w, struct net_config *c)
{
    *c = (struct net_config){ .loop = w->loop,
                              .run_dir = w->run,
                              .state_dir = w->state,
                              .range = "10.99.64.0/18",
                              .prefix = "nst",
                              .table = "nightshift_test" };
}

static void world_open(struct world *w, const struct net_config *change)
{
    struct err e;
    struct net_config c;
    need_private_network();
    *w = (struct world){ .loop = loop_new() };
    snprintf(w->dir, sizeof w->dir, "/run/nt.XXXXXX");
    CHECK(mkdtemp(w->dir));
    snprintf(w->run, sizeof w->run, "%s/run", w->dir);
    snprintf(w->state, sizeof w->state, "%s/state", w->dir);
    CHECK(mkdir(w->state, 0755) == 0);
    world_config(w, &c);
    if (change) {
        c.allow = change->allow;
        c.resolv_conf = change->resolv_conf;
        c.subnet_bits = change->subnet_bits;
        c.range = change->range ? change->range : c.range;
        c.idle_ms = change->idle_ms;
        c.account = change->account;
        c.accounts = change->accounts;
    }
    w->net = net_new(&c, &e);
    if (!w->net && e.code == ERR_UNAVAILABLE)
        SKIP("%s: %s", e.msg, e.hint);
    CHECK(w->net);
    net_sweep(w->net);
}

struct polled {
    struct world *w;
    bool (*fn)(const struct world *w);
};

static void poll_once(void *ctx)
{
    struct polled *p = ctx;
    if (p->fn(p->w))
        loop_stop(p->w->loop);
}

static void wait_until(struct world *w, bool (*fn)(const struct world *w))
{
    struct polled p = { w, fn };
    struct loop_watch *t = loop_timer(w->loop, poll_once, &p);
    loop_timer_set(t, 0, 2);
    loop_run(w->loop);
    loop_unwatch(t);
}

static bool at_rest(const struct world *w)
{
    struct net_counts c = net_counts(w->net);
    return c.back == 0 && c.making == 0 && c.removing == 0 && c.guarding == 0;
}

static void removed(void *ctx, const struct err *e)
{
    bool *done = ctx;
    if (!e)
        *done = true;
}

static unsigned entries(const char *dir, const char *lead)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));)
        n += strncmp(x->d_name, lead, strlen(lead)) == 0 && x->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* What the kernel and the files still have of us. */
static unsigned traces(const struct world *w)
{
    char path[160];
    unsigned n = entries("/sys/class/net", "veth") + entries("/sys/class/net", "nst");
    static const char *const dirs[] = { "netns", "net/conf", "net/ready" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", w->run, dirs[i]);
        n += entries(path, "");
    }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/net/ipam/nst%d", w->run, i);
        n += entries(path, "10.");
    }
    return n;
}

static void world_close(struct world *w)
{
    bool done = false;
    net_remove_all(w->net, removed, &done);
    wait_until(w, at_rest);
    CHECK(done);
    CHECK_INT(traces(w), 0);
    w->net = net_free(w->net);
    w->loop = loop_free(w->loop);
    run_ok("! nft list table inet nightshift_test 2>/dev/null");
}

struct taken {
    struct world *w;
    bool done, waiting;
    char path[128], address[16], gateway[16];
    struct err e;
};

static void on_taken(void *ctx, const struct net_place *p, const struct err *e)
{
    struct taken *t = ctx;
    t->done = true;
    if (p) {
        snprintf(t->path, sizeof t->path, "%s", p->path);
        snprintf(t->address, sizeof t->address, "%s", p->address);
        snprintf(t->gateway, sizeof t->gateway, "%s", p->gateway);
    } else {
        t->e = *e;
    }
    if (t->waiting)
        loop_stop(t->w->loop);
}

static void begin_take(struct world *w, const char *tenant, struct taken *t)
{
    *t = (struct taken){ .w = w };
    net_take(w->net, str_of(tenant), on_taken, t);
}

static void finish_take(struct taken *t)
{
    t->waiting = true;
    if (!t->done)
        loop_run(t->w->loop);
}

static struct taken take(struct world *w, const char *tenant)
{
    struct taken t;
    begin_take(w, tenant, &t);
    finish_take(&t);
    if (!t.path[0])
        test_fail(__FILE__, __LINE__, "%s", t.e.msg);
    return t;
}

/* A socket that lives in the namespace at path (NULL: the host's), held by us. */
static int socket_in(const char *path, int type)
{
    AUTO(file_close_p) int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    AUTO(file_close_p)
    int ns = open(path ? path : "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(home >= 0 && ns >= 0 && setns(ns, CLONE_NEWNET) == 0);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(setns(home, CLONE_NEWNET) == 0 && fd >= 0);
    return fd;
}

static struct sockaddr_in at(const char *ip, uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
    CHECK(inet_pton(AF_INET, ip, &a.sin_addr) == 1);
    return a;
}

static int listen_in(const char *path, const char *ip, uint16_t port)
{
    int fd = socket_in(path, SOCK_STREAM), yes = 1;
    struct sockaddr_in a = at(ip, port);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 8) == 0);
    return fd;
}

static bool comes_within(int fd, short events, int wait_ms)
{
    struct pollfd p = { .fd = fd, .events = events };
    int rc;
    while ((rc = poll(&p, 1, wait_ms)) < 0 && errno == EINTR) /* a child of the loop has ended */
        continue;
    return rc > 0;
}

static bool comes(int fd, short events)
{
    return comes_within(fd, events, TEST_PATIENCE_MS);
}

/* 0 when a connection came about, else its errno.  Resets it, so that nothing lingers. */
static int connect_by(int fd, const char *ip, uint16_t port, int wait_ms)
{
    struct sockaddr_in a = at(ip, port);
    struct linger hard = { .l_onoff = 1 };
    int error = 0;
    socklen_t n = sizeof error;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS)
        return errno;
    if (!comes_within(fd, POLLOUT, wait_ms))
        return ETIMEDOUT;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0);
    return error;
}

static int connect_within(const char *path, const char *ip, uint16_t port, int wait_ms)
{
    AUTO(file_close_p) int fd = socket_in(path, SOCK_STREAM);
    return connect_by(fd, ip, port, wait_ms);
}

static int connect_from(const char *path, const char *ip, uint16_t port)
{
    return connect_within(path, ip, port, TEST_PATIENCE_MS);
}

static int connect_from_here(const char *ip, uint16_t port)
{
    AUTO(file_close_p) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return connect_by(fd, ip, port, TEST_PATIENCE_MS);
}

static void tasks_of_a_tenant_reach_each_other(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision"), b = take(&w, "vision");
    CHECK(strcmp(a.path, b.path) != 0 && strcmp(a.address, b.address) != 0);
    CHECK(strncmp(a.address, "10.99.64.", 9) == 0);
    CHECK_STR(a.gateway, "10.99.64.1");
    AUTO(file_close_p) int server = listen_in(a.path, "0.0.0.0", 80);
    CHECK_INT(connect_from(b.path, a.address, 80), 0);
    CHECK_INT(connect_from(NULL, a.address, 80), 0); /* the host reaches tasks: proxies need it */
    net_give_back(w.net, a.path);
    net_give_back(w.net, b.path);
    world_close(&w);
}

static void loopback_is_private(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision"), b = take(&w, "vision");
    AUTO(file_close_p) int server = listen_in(a.path, "127.0.0.1", 8000);
    AUTO(file_close_p) int hosts = listen_in(NULL, "127.0.0.1", 8001);
    CHECK_INT(connect_from(a.path, "127.0.0.1", 8000), 0);
    CHECK_INT(connect_from(b.path, "127.0.0.1", 8000), ECONNREFUSED);
    CHECK_INT(connect_from(a.path, "127.0.0.1", 8001), ECONNREFUSED);
    net_give_back(w.net, a.path);
    net_give_back(w.net, b.path);
    world_close(&w);
}

static void tenants_cannot_reach_each_other(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision"), b = take(&w, "speech");
    CHECK(strncmp(b.address, "10.99.65.", 9) == 0);
    AUTO(file_close_p) int server = listen_in(a.path, "0.0.0.0", 80);
    CHECK_INT(connect_from(b.path, a.address, 80), EHOSTUNREACH);
    CHECK_INT(connect_from(b.path, a.gateway, 80), EHOSTUNREACH);
    net_give_back(w.net, a.path);
    net_give_back(w.net, b.path);
    world_close(&w);
}

static bool rules_are_back(const struct world *w)
{
    return net_walls(w->net).reloads > 0 && net_walls(w->net).there;
}

static bool rules_are_lost(const struct world *w)
{
    return !net_walls(w->net).there;
}

static bool guards_know_the_address(const struct world *w)
{
    char file[160];
    AUTO(buf_free) struct buf text = BUF(1u << 16);
    struct err e;
    snprintf(file, sizeof file, "%s/net/guard/nst0.0", w->run);
    return file_read(file, 1u << 16, &text, &e) == 0 && strstr(text.p, "203.0.113.5");
}

/* Nobody turns the loop meanwhile: it is as with a keeper that is stopped. */
static void without_the_machines_rules_a_second_filter_holds(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision"), b = take(&w, "speech"), c = take(&w, "vision");
    AUTO(file_close_p) int server = listen_in(a.path, "0.0.0.0", 80);
    AUTO(file_close_p) int hosts = listen_in(NULL, "0.0.0.0", 8080);
    run_ok("nft flush ruleset");
    CHECK_INT(connect_from(b.path, a.address, 80), EHOSTUNREACH);
    CHECK_INT(connect_from(b.path, b.gateway, 8080), EHOSTUNREACH);
    CHECK_INT(connect_from(b.path, a.gateway, 8080), EHOSTUNREACH);
    CHECK_INT(connect_from(b.path, HOST_IP, 8080), EHOSTUNREACH);
    CHECK_INT(connect_from(c.path, a.address, 80), 0);
    CHECK_INT(connect_from(NULL, a.address, 80), 0);
    /* From elsewhere, as another tenant's machine would: what comes in is not let in. */
    run_ok("ip link add far type bridge; ip addr add 192.0.2.9/24 dev far; ip link set far up");
    AUTO(file_close_p) int fd = socket_in(NULL, SOCK_STREAM);
    struct sockaddr_in from = at("192.0.2.9", 0), to = at(a.address, 80);
    CHECK(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno == EINPROGRESS);
    CHECK_INT(connect_from(c.path, a.address, 80), 0); /* after it, and yet before it */
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    CHECK_INT(poll(&p, 1, 0), 0);
    net_give_back(w.net, a.path);
    net_give_back(w.net, b.path);
    net_give_back(w.net, c.path);
    world_close(&w);
}

static void rules_that_somebody_takes_away_come_back(void)
{
    static const char *const harm[] = {
        "nft flush ruleset",
        "nft delete table inet nightshift_test",
        "nft flush chain inet nightshift_test forward",
        "nft insert rule inet nightshift_test forward accept",
        "nft add element inet nightshift_test same '{ \"nst0\" . \"nst1\" }'",
    };
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision");
    for (size_t i = 0; i < ARRAY_LEN(harm); i++) {
        uint64_t before = net_walls(w.net).reloads;
        run_ok(harm[i]);
        struct taken b =
            take(&w, i % 2 ? "speech" : "vision"); /* finds it out, whatever was queued */
        CHECK_INT(net_walls(w.net).reloads, before + 1);
        run_ok("nft list chain inet nightshift_test forward | grep -q reject");
        run_ok("! nft list chain inet nightshift_test forward | grep -q '^[[:space:]]*accept'");
        net_give_back(w.net, b.path);
    }
    net_give_back(w.net, a.path);
    world_close(&w);
}

static void the_loop_notices_by_itself(void)
{
    struct world w;
    world_open(&w, NULL);
    run_ok("nft flush ruleset");
    wait_until(&w, rules_are_back);
    run_ok("nft add table inet another; nft delete table inet another");
    struct taken a = take(&w, "vision");
    CHECK_INT(net_walls(w.net).reloads, 1); /* what others have is theirs */
    net_give_back(w.net, a.path);
    world_close(&w);
}

static void rules_that_cannot_be_loaded_cut_the_bridges(void)
{
    struct world w;
    char script[256];
    world_open(&w, NULL);
    struct taken a = take(&w, "vision"), b = take(&w, "vision"), none;
    AUTO(file_close_p) int server = listen_in(a.path, "0.0.0.0", 80);
    snprintf(script, sizeof script,
             "cd %s/net && rm rules.nft && mkdir rules.nft && nft flush ruleset", w.run);
    run_ok(script);
    wait_until(&w, rules_are_lost);
    begin_take(&w, "speech", &none);
    CHECK(none.done && !none.path[0] && none.e.code == ERR_UNAVAILABLE);
    CHECK(strstr(none.e.msg, "the firewall between tenants is gone"));
    run_ok("! ip -o link show nst0 | grep -q '[<,]UP'");
    snprintf(script, sizeof script, "rmdir %s/net/rules.nft", w.run);
    run_ok(script);
    wait_until(&w, rules_are_back);
    CHECK_INT(connect_from(b.path, a.address, 80), 0);
    net_give_back(w.net, a.path);
    net_give_back(w.net, b.path);
    world_close(&w);
}

static void a_new_address_of_the_host_is_closed_too(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision");
    run_ok("ip addr add 203.0.113.5/32 dev out0");
    wait_until(&w, guards_know_the_address);
    net_give_back(w.net, a.path);
    world_close(&w);
}

static void accounts_of_the_host_do_not_reach_tasks(void)
{
    struct world w;
    const uint32_t named = 4711;
    world_open(&w, &(struct net_config){ .account = &named, .accounts = 1 });
    struct taken a = take(&w, "vision");
    AUTO(file_close_p) int server = listen_in(a.path, "0.0.0.0", 80);
    CHECK_INT(connect_from(NULL, a.address, 80), 0);
    CHECK(seteuid(1001) == 0);
    int other = connect_from_here(a.address, 80);
    CHECK(seteuid(0) == 0 && seteuid(named) == 0);
    int hub = connect_from_here(a.address, 80);
    CHECK(seteuid(0) == 0);
    CHECK_INT(other, EHOSTUNREACH);
    CHECK_INT(hub, 0);
    net_give_back(w.net, a.path);
    world_close(&w);
}

static void a_task_reaches_of_the_host_what_is_allowed(void)
{
    struct world w;
    static const char *const allow[] = { "tcp:8081", "10.99.64.1:tcp:8082", NULL };
    world_open(&w, &(struct net_config){ .allow = allow });
    struct taken a = take(&w, "vision");
    AUTO(file_close_p) int one = listen_in(NULL, "0.0.0.0", 8080);
    AUTO(file_close_p) int two = listen_in(NULL, "0.0.0.0", 8081);
    AUTO(file_close_p) int three = listen_in(NULL, "0.0.0.0", 8082);
    CHECK_INT(connect_from(NULL, HOST_IP, 8080), 0);
    CHECK_INT(connect_from(a.path, HOST_IP, 8080), EHOSTUNREACH);
    CHECK_INT(connect_from(a.path, a.gateway, 8080), EHOSTUNREACH);
    CHECK_INT(connect_from(a.path, HOST_IP, 8081), 0);
    CHECK_INT(connect_from(a.path, a.gateway, 8082), 0);
    CHECK_INT(connect_from(a.path, HOST_IP, 8082), EHOSTUNREACH);
    net_give_back(w.net, a.path);
    world_close(&w);
}

/* A second network behind the host, which has no way back to the tasks' addresses. */
static void a_task_gets_out_behind_the_hosts_address(void)
{
    struct world w;
    world_open(&w, NULL);
    run_ok("mkdir -p /run/netns; ip netns add outside; ip link add up0 type veth peer name eth0 "
           "netns outside; ip addr add 203.0.113.1/24 dev up0; ip link set up0 up;"
           "ip -n outside addr add 203.0.113.2/24 dev eth0; ip -n outside link set eth0 up;"
           "iptables -P FORWARD DROP 2>/dev/null || true");
    w.net = net_free(w.net); /* the next one finds Docker's way of forwarding nothing */
    struct net_config c;
    struct err e;
    world_config(&w, &c);
    w.net = net_new(&c, &e);
    CHECK(w.net);
    net_sweep(w.net);
    struct taken a = take(&w, "vision");
    AUTO(file_close_p) int server = listen_in("/run/netns/outside", "0.0.0.0", 80);
    CHECK_INT(connect_from(a.path, "203.0.113.2", 80), 0);
    struct sockaddr_in from = { 0 };
    socklen_t n = sizeof from;
    AUTO(file_close_p) int conn = accept(server, (struct sockaddr *)&from, &n);
    CHECK(conn >= 0);
    CHECK_STR(inet_ntoa(from.sin_addr), "203.0.113.1");
    /* And nobody outside gets in, even with a route. */
    run_ok("ip -n outside route add 10.99.64.0/18 via 203.0.113.1");
    AUTO(file_close_p) int inside = listen_in(a.path, "0.0.0.0", 81);
    /* What is dropped is answered by nothing: the one thing here that a time has to show. */
    CHECK_INT(connect_within("/run/netns/outside", a.address, 81, 2000), ETIMEDOUT);
    net_give_back(w.net, a.path);
    world_close(&w);
    run_ok("iptables -P FORWARD ACCEPT 2>/dev/null || true; ip netns del outside;"
           "! iptables -S FORWARD 2>/dev/null | grep nst");
}

static bool has_idle(const struct world *w)
{
    return at_rest(w) && net_counts(w->net).idle > 0;
}

static bool took_back(const struct world *w)
{
    return at_rest(w) && net_counts(w->net).used == 0;
}

static void a_clean_namespace_is_used_again(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision");
    wait_until(&w, at_rest);
    struct net_counts before = net_counts(w.net);
    CHECK(before.used == 1 && before.idle == 2);
    net_give_back(w.net, a.path);
    net_give_back(w.net, a.path); /* twice is once */
    wait_until(&w, took_back);
    CHECK(net_counts(w.net).idle == 3);
    struct taken again[3];
    bool seen = false;
    for (int i = 0; i < 3; i++) {
        again[i] = take(&w, "vision");
        seen |= strcmp(again[i].path, a.path) == 0 && strcmp(again[i].address, a.address) == 0;
    }
    CHECK(seen);
    struct taken other = take(&w, "speech"); /* another tenant never gets one of these */
    CHECK(strncmp(other.address, "10.99.65.", 9) == 0);
    for (int i = 0; i < 3; i++)
        net_give_back(w.net, again[i].path);
    net_give_back(w.net, other.path);
    world_close(&w);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void what_a_task_left_behind_is_not_met_by_the_next(void)
{
    struct world w;
    world_open(&w, NULL);
    struct taken with_socket = take(&w, "vision"), with_process = take(&w, "vision");
    AUTO(file_close_p) int forgotten = listen_in(with_socket.path, "0.0.0.0", 29500);
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed check must not leave it */
        int ns = open(with_process.path, O_RDONLY | O_CLOEXEC);
        if (setns(ns, CLONE_NEWNET) == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    char x;
    CHECK(read(ready[0], &x, 1) == 1);
    net_give_back(w.net, with_socket.path);
    net_give_back(w.net, with_process.path);
    wait_until(&w, took_back);
    CHECK(!exists(with_socket.path) && !exists(with_process.path));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    world_close(&w);
}

static void a_full_subnet_says_so_and_recovers(void)
{
    struct world w;
    world_open(&w, &(struct net_config){ .range = "10.99.64.0/26", .subnet_bits = 29 });
    struct taken t[5], more, late;
    for (int i = 0; i < 5; i++)
        t[i] = take(&w, "vision");
    begin_take(&w, "vision", &more);
    finish_take(&more);
    CHECK(!more.path[0] && more.e.code == ERR_QUOTA);
    CHECK(strstr(more.e.msg, "10.99.64.0/29") && strstr(more.e.msg, "5 of 5") && more.e.hint[0]);
    net_give_back(w.net, t[2].path);
    late = take(&w, "vision"); /* at once, without waiting for the loop */
    CHECK_STR(late.path, t[2].path);
    /* One that has to be removed first is waited for. */
    AUTO(file_close_p) int dirty = listen_in(t[4].path, "0.0.0.0", 80);
    net_give_back(w.net, t[4].path);
    struct taken last = take(&w, "vision");
    CHECK(last.path[0]);
    for (int i = 0; i < 4; i++)
        net_give_back(w.net, t[i].path);
    net_give_back(w.net, last.path);
    world_close(&w);
}

static bool all_gone(const struct world *w)
{
    struct net_counts c = net_counts(w->net);
    return at_rest(w) && c.idle == 0;
}

static void an_idle_tenant_keeps_nothing(void)
{
    struct world w;
    world_open(&w, &(struct net_config){ .idle_ms = 1 });
    struct taken a = take(&w, "vision");
    net_give_back(w.net, a.path);
    wait_until(&w, all_gone);
    CHECK_INT(traces(&w), 0); /* the bridge went too */
    world_close(&w);
}

/* A keeper of its own process, which takes one of each tenant and is then killed in the middle of
 * making more. */
static void killed_driver(const struct world *w, char *path_of_a_live_task)
{
    int out[2];
    CHECK(pipe2(out, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct world d = *w;
        struct net_config c;
        struct err e;
        d.loop = loop_new();
        world_config(&d, &c);
        c.idle = 8;
        d.net = net_new(&c, &e);
        if (!d.net)
            _exit(1);
        net_sweep(d.net);
        struct taken a = take(&d, "vision"), b = take(&d, "speech");
        (void)b;
        if (write(out[1], a.path, sizeof a.path) < 0)
            _exit(1);
        loop_run(d.loop); /* plugins at work */
        _exit(0);
    }
    close(out[1]);
    CHECK(read(out[0], path_of_a_live_task, 128) == 128);
    close(out[0]);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

static void a_killed_keeper_leaves_nothing_astray(void)
{
    struct world w;
    struct err e;
    struct net_config c;
    world_open(&w, NULL);
    for (int round = 0; round < 5; round++) {
        char alive[128];
        w.net = net_free(w.net);
        killed_driver(&w, alive);
        world_config(&w, &c);
        w.net = net_new(&c, &e);
        CHECK(w.net);
        struct net_place place;
        CHECK(net_adopt(w.net, alive, &e) == 0 && net_find(w.net, alive, &place, &e) == 0);
        CHECK(net_adopt(w.net, "/run/netns/elsewhere", &e) < 0 && e.code == ERR_NOT_FOUND);
        net_sweep(w.net);
        wait_until(&w, at_rest);
        CHECK(net_counts(w.net).used == 1 && exists(alive));
        AUTO(file_close_p) int server = listen_in(alive, "0.0.0.0", 80);
        CHECK_INT(connect_from(NULL, place.address, 80), 0);
        file_close_p(&server);
        server = -1;
        net_give_back(w.net, alive);
        wait_until(&w, took_back);
    }
    CHECK(has_idle(&w)); /* what was whole was kept */
    world_close(&w);
}

/* A plugin that says that it began and works only when the file `go` is there. */
static void make_slow_plugin(const struct world *w)
{
    char script[800];
    snprintf(
        script, sizeof script,
        "d=%s/cni; mkdir $d; ln -s $(ls -d /usr/lib/cni/host-local /opt/cni/bin/host-local "
        "/usr/libexec/cni/host-local 2>/dev/null | head -1) $d/host-local;"
        "printf '#!/bin/sh\\n>%s/begun; while [ ! -e %s/go ]; do sleep 0.01; done; exec %%s\\n' "
        "\"$(dirname $(readlink $d/host-local))/bridge\" >$d/bridge; chmod 755 $d/bridge",
        w->dir, w->dir, w->dir);
    run_ok(script);
}

static void a_plugin_that_outlived_its_keeper_is_waited_for(void)
{
    struct world w;
    struct err e;
    struct net_config c;
    char dir[96], go[96], begun[96];
    world_open(&w, NULL);
    w.net = net_free(w.net);
    make_slow_plugin(&w);
    snprintf(dir, sizeof dir, "%s/cni", w.dir);
    snprintf(go, sizeof go, "%s/go", w.dir);
    snprintf(begun, sizeof begun, "%s/begun", w.dir);
    const char *const dirs[] = { dir, NULL };
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct world d = w;
        d.loop = loop_new();
        world_config(&d, &c);
        c.plugin_dirs = dirs;
        d.net = net_new(&c, &e);
        if (!d.net)
            _exit(1);
        net_sweep(d.net);
        (void)take(&d, "vision");
        _exit(0);
    }
    while (!exists(begun))
        sched_yield();
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    world_config(&w, &c);
    w.net = net_new(&c, &e);
    CHECK(w.net);
    net_sweep(w.net);
    CHECK_INT(net_counts(w.net).removing, 1);
    write_text(go, "");
    wait_until(&w, at_rest);
    CHECK_INT(traces(&w), 0);
    world_close(&w);
}

static void after_a_reboot_old_files_are_cleared(void)
{
    struct world w;
    struct err e;
    struct net_config c;
    world_open(&w, NULL);
    struct taken a = take(&w, "vision");
    wait_until(&w, at_rest);
    w.net = net_free(w.net);
    run_ok("umount /run/nt.*/run/netns/nst*; ip -o link | awk -F': ' '/veth|nst/ {print $2}' |"
           "sed 's/@.*//' | while read -r l; do ip link del \"$l\" || true; done");
    world_config(&w, &c);
    w.net = net_new(&c, &e);
    CHECK(w.net);
    CHECK(net_adopt(w.net, a.path, &e) < 0);
    net_sweep(w.net);
    wait_until(&w, at_rest);
    CHECK_INT(traces(&w), 0);
    struct taken b = take(&w, "vision");
    CHECK(strncmp(b.address, "10.99.64.", 9) == 0); /* its subnet is still its own */
    net_give_back(w.net, b.path);
    world_close(&w);
}

static void a_resolver_on_loopback_is_reached_through_the_gateway(void)
{
    struct world w;
    char conf[] = "/tmp/nightshift-net-test.XXXXXX";
    AUTO(file_close_p) int conf_fd = mkostemp(conf, O_CLOEXEC);
    CHECK(conf_fd >= 0);
    write_text(conf, "search lab.example\nnameserver 127.0.0.9\nnameserver ::1\n");
    world_open(&w, &(struct net_config){ .resolv_conf = conf });
    struct taken a = take(&w, "vision");
    struct net_place place = { .path = a.path };
    memcpy(place.gateway, a.gateway, sizeof place.gateway);
    AUTO(buf_free) struct buf text = BUF(4096);
    net_resolv_conf(w.net, &place, &text);
    CHECK_STR(text.p, "search lab.example\nnameserver 10.99.64.1\n");

    AUTO(file_close_p) int server = socket_in(NULL, SOCK_DGRAM);
    struct sockaddr_in here = at("127.0.0.9", 53), from, gateway = at(a.gateway, 53);
    CHECK(bind(server, (struct sockaddr *)&here, sizeof here) == 0);
    AUTO(file_close_p) int client = socket_in(a.path, SOCK_DGRAM);
    CHECK(connect(client, (struct sockaddr *)&gateway, sizeof gateway) == 0);
    CHECK(send(client, "who", 3, 0) == 3);
    char got[8] = { 0 };
    socklen_t n = sizeof from;
    CHECK(comes(server, POLLIN));
    CHECK(recvfrom(server, got, sizeof got, 0, (struct sockaddr *)&from, &n) == 3);
    CHECK(sendto(server, "me", 2, 0, (struct sockaddr *)&from, n) == 2);
    CHECK(comes(client, POLLIN) && recv(client, got, sizeof got, 0) == 2);

    /* The machine moves to another network, with a resolver on an address of its own. */
    write_text(conf, "nameserver " HOST_IP "\n");
    buf_truncate(&text, 0);
    net_resolv_conf(w.net, &place, &text);
    CHECK_STR(text.p, "nameserver " HOST_IP "\n");
    wait_until(&w, at_rest);
    AUTO(file_close_p) int tcp = listen_in(NULL, HOST_IP, 53);
    CHECK_INT(connect_from(a.path, HOST_IP, 53), 0);
    unlink(conf);
    net_give_back(w.net, a.path);
    world_close(&w);
}

static void a_subnet_that_is_in_use_here_is_not_given(void)
{
    struct world w;
    world_open(&w, NULL);
    run_ok("ip route add 10.99.64.0/23 dev out0; ip route add 10.0.0.0/8 dev out0");
    struct taken a = take(&w, "vision");
    CHECK(strncmp(a.address, "10.99.66.", 9) == 0);
    net_give_back(w.net, a.path);
    w.net = net_free(w.net);
    run_ok("ip link del nst2; ip route add 10.99.66.0/24 dev out0");
    struct net_config c;
    struct err e;
    world_config(&w, &c);
    w.net = net_new(&c, &e);
    CHECK(w.net);
    net_sweep(w.net);
    wait_until(&w, took_back);
    net_free(w.net);
    run_ok("rm -rf /run/nt.*/run/net/conf/* && umount /run/nt.*/run/netns/* || true;"
           "rm -rf /run/nt.*/run/net* && ip link del nst2 || true");
    w.net = net_new(&c, &e);
    CHECK(w.net);
    net_sweep(w.net);
    run_ok("ip route add 10.99.64.0/18 dev out0"); /* all there are */
    struct taken b;
    begin_take(&w, "vision", &b);
    finish_take(&b);
    CHECK(!b.path[0] && b.e.code == ERR_CONFLICT && strstr(b.e.msg, "out0"));
    run_ok("ip route del 10.99.64.0/18 dev out0");
    struct taken again = take(&w, "vision"); /* it moves: its own are still another's */
    CHECK(strncmp(again.address, "10.99.67.", 9) == 0);
    net_give_back(w.net, again.path);
    world_close(&w);
}

static void what_is_missing_is_named(void)
{
    struct world w;
    struct err e = { 0 };
    struct net_config c;
    static const char *const nowhere[] = { "/run/no-such-folder", NULL };
    world_open(&w, NULL);
    world_config(&w, &c);
    CHECK(!net_new(&c, &e) && e.code == ERR_CONFLICT); /* only one keeper at a time */
    c.plugin_dirs = nowhere;
    CHECK(!net_new(&c, &e) && e.code == ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, "bridge") && strstr(e.hint, "containernetworking-plugins"));
    c.plugin_dirs = NULL;
    c.range = "10.99.64.1/18";
    CHECK(!net_new(&c, &e) && e.code == ERR_INVALID && strstr(e.hint, "10.99.64.0/18"));
    c.range = "10.99.64.0/30";
    CHECK(!net_new(&c, &e) && e.code == ERR_INVALID);
    c.range = NULL;
    c.prefix = "a\"; flush";
    w.net = net_free(w.net);
    CHECK(!net_new(&c, &e) && e.code == ERR_INVALID);
    world_config(&w, &c);
    static const char *const allow[] = { "tcp:80 accept; flush", NULL };
    c.allow = allow;
    CHECK(!net_new(&c, &e) && e.code == ERR_INVALID);
    c.allow = NULL;
    w.net = net_new(&c, &e);
    CHECK(w.net);
    net_sweep(w.net);
    world_close(&w);
}

static const struct test tests[] = {
    { "tasks of a tenant reach each other", tasks_of_a_tenant_reach_each_other },
    { "a task's loopback is its own", loopback_is_private },
    { "tenants cannot reach each other", tenants_cannot_reach_each_other },
    { "without the machine's rules a second filter holds",
      without_the_machines_rules_a_second_filter_holds },
    { "rules that somebody takes away come back", rules_that_somebody_takes_away_come_back },
    { "without a start the loop notices by itself", the_loop_notices_by_itself },
    { "rules that cannot be loaded cut the bridges", rules_that_cannot_be_loaded_cut_the_bridges },
    { "a new address of the host is closed too", a_new_address_of_the_host_is_closed_too },
    { "accounts of the host do not reach tasks, but for those named",
      accounts_of_the_host_do_not_reach_tasks },
    { "a task reaches of the host what is allowed and nothing else",
      a_task_reaches_of_the_host_what_is_allowed },
    { "a task gets out behind the host's address, and nobody gets in",
      a_task_gets_out_behind_the_hosts_address },
    { "a clean namespace is used again, by the same tenant", a_clean_namespace_is_used_again },
    { "what a task left behind is not met by the next",
      what_a_task_left_behind_is_not_met_by_the_next },
    { "a full subnet says so and recovers", a_full_subnet_says_so_and_recovers },
    { "an idle tenant keeps nothing", an_idle_tenant_keeps_nothing },
    { "a killed keeper leaves nothing astray", a_killed_keeper_leaves_nothing_astray },
    { "a plugin that outlived its keeper is waited for",
      a_plugin_that_outlived_its_keeper_is_waited_for },
    { "after a reboot old files are cleared", after_a_reboot_old_files_are_cleared },
    { "a resolver on loopback is reached through the gateway",
      a_resolver_on_loopback_is_reached_through_the_gateway },
    { "a subnet that is in use here is not given", a_subnet_that_is_in_use_here_is_not_given },
    { "what is missing or wrong is named", what_is_missing_is_named },
};
TEST_CASES(tests)
