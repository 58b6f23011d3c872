#include "auth/ask.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "tests/lib/test.h"

#define CALLS_MAX 80

struct told {
    int n; /* how often */
    enum err_code code;
    char words[400], reason[96];
    bool has_answer;
};

struct room {
    struct loop *loop;
    struct ask *ask;
    struct loop_watch *bound;
    struct told told[CALLS_MAX];
    size_t expected, done;
    bool late;
};

static void on_bound(void *ctx)
{
    struct room *r = ctx;
    r->late = true;
    loop_stop(r->loop);
}

static void room_clear(struct room *r)
{
    ask_free(r->ask);
    loop_free(r->loop);
}

static struct room *room_open(struct room *r, const char *const *argv)
{
    r->loop = loop_new();
    r->ask = ask_new(r->loop, NULL, argv);
    r->bound = loop_timer(r->loop, on_bound, r);
    return r;
}

struct wish {
    struct room *room;
    struct told *told;
};

static void on_told(void *ctx, const struct json *answer, const struct err *why)
{
    struct wish *w = ctx;
    w->told->n++;
    w->told->code = why ? why->code : ERR_NONE;
    w->told->has_answer = answer != NULL;
    snprintf(w->told->words, sizeof w->told->words, "%s", why ? why->msg : "");
    snprintf(w->told->reason, sizeof w->told->reason, "%s", why ? why->field : "");
    if (++w->room->done == w->room->expected)
        loop_stop(w->room->loop);
}

/* Until so many were told. */
static void wait_for(struct room *r, size_t expected)
{
    r->expected = expected;
    loop_timer_set(r->bound, 30000, 0);
    if (r->done < expected)
        loop_run(r->loop);
    CHECK(!r->late && r->done == expected);
}

static void ask_one(const char *const *argv, const char *request, uint64_t patience_ms,
                    struct told *out)
{
    AUTO(room_clear) struct room r = { 0 };
    struct err e;
    room_open(&r, argv);
    if (patience_ms)
        ask_set_patience(r.ask, patience_ms);
    struct wish w = { &r, &r.told[0] };
    CHECK(ask_start(r.ask, str_of(request), on_told, &w, &e));
    CHECK_INT(r.told[0].n, 0); /* never from within */
    wait_for(&r, 1);
    *out = r.told[0];
}

static void ask_shell(const char *script, const char *request, struct told *out)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    ask_one(argv, request, 0, out);
}

static void the_real_program_answers(void)
{
    const char *build = getenv("NIGHTSHIFT_BUILD");
    char path[4096];
    struct told t;
    if (!build)
        SKIP("NIGHTSHIFT_BUILD is not set");
    snprintf(path, sizeof path, "%s/nightshift-signin", build);
    const char *const argv[] = { path, NULL };
    ask_one(argv, "{\"do\":\"hash\",\"password\":\"x\"}", 0, &t);
    CHECK(t.code == ERR_NONE && t.has_answer);
    ask_one(argv, "{\"do\":\"password\",\"hash\":null,\"password\":\"x\"}", 0, &t);
    CHECK(t.code == ERR_DENIED && t.has_answer);
    CHECK_STR(t.reason, "wrong_password");
    CHECK_STR(t.words, "the user name or the password is wrong");
    ask_one(argv, "nonsense", 0, &t);
    CHECK(t.code == ERR_INVALID);
}

static void a_large_question_arrives_whole(void)
{
    AUTO(buf_free) struct buf question = BUF(1u << 20);
    struct told t;
    while (question.n < 65536)
        buf_addc(&question, 'q');
    ask_shell("[ \"$(wc -c)\" = 65536 ] && echo '{\"ok\":true}'", question.p, &t);
    CHECK(t.code == ERR_NONE && t.has_answer);
    AUTO(room_clear) struct room r = { 0 };
    const char *const argv[] = { "true", NULL };
    struct err e = { 0 };
    room_open(&r, argv);
    buf_addc(&question, 'q');
    CHECK(!ask_start(r.ask, buf_str(&question), on_told, NULL, &e) && e.code == ERR_TOO_LARGE);
}

static void a_child_that_fails_is_an_error(void)
{
    static const char *const scripts[] = {
        "kill -SEGV $$",
        "exit 3",
        "exit 0",
        "echo '{\"ok\":true}'; exit 1",
        "echo '{\"ok\":true'",
        "echo '[]'",
        "echo '{\"ok\":\"true\"}'",
        "echo '{}'",
        "echo '{\"ok\":false}'",
        "exec 0<&- 1>&-; exit 0", /* listens to nothing */
    };
    struct told t;
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        ask_shell(scripts[i], "{}", &t);
        CHECK(t.n == 1 && t.code == ERR_UNAVAILABLE && !t.has_answer);
        CHECK(strstr(t.words, "nightshift-signin failed"));
    }
    const char *const missing[] = { "/no/such/program", NULL };
    ask_one(missing, "{}", 0, &t);
    CHECK(t.code == ERR_UNAVAILABLE && strstr(t.words, "no such program"));
}

static void a_child_that_writes_without_end_is_stopped(void)
{
    struct told t;
    ask_shell("yes", "{}", &t);
    CHECK(t.n == 1 && t.code == ERR_UNAVAILABLE && strstr(t.words, "without end"));
}

static void a_child_that_hangs_is_stopped(void)
{
    const char *const argv[] = { "sh", "-c", "sleep 900 & sleep 900", NULL };
    struct told t;
    ask_one(argv, "{}", 100, &t);
    CHECK(t.n == 1 && t.code == ERR_UNAVAILABLE && strstr(t.words, "too long"));
}

static void a_child_sees_nothing_of_ours(void)
{
    struct told t;
    CHECK(setenv("PLANTED", "hunter2", 1) == 0);
    ask_shell("cat >/dev/null; [ -z \"$PLANTED\" ] && "
              "! grep -q hunte[r]3 /proc/$$/cmdline && echo '{\"ok\":true}'",
              "{\"password\":\"hunter3\"}", &t);
    CHECK(t.code == ERR_NONE && t.has_answer);
}

#define NEEDLE_BYTES 48

static char needle_at(size_t i)
{
    return (char)('a' + (i * 7 + 3) % 26);
}

/* How often the needle is in our heap. */
static size_t needles_in_heap(void)
{
    AUTO(buf_free) struct buf maps = BUF(1u << 20);
    struct err e;
    struct str rest, line;
    size_t n = 0;
    CHECK(file_read("/proc/self/maps", 1u << 20, &maps, &e) == 0);
    rest = buf_str(&maps);
    while (str_next_line(&rest, &line)) {
        unsigned long from, to;
        bool is_heap = line.n > 6 && memcmp(line.p + line.n - 6, "[heap]", 6) == 0;
        if (!is_heap || sscanf(line.p, "%lx-%lx", &from, &to) != 2)
            continue;
        for (const char *p = (const char *)from; p + NEEDLE_BYTES <= (const char *)to; p++) {
            size_t k = 0;
            while (k < NEEDLE_BYTES && p[k] == needle_at(k))
                k++;
            n += k == NEEDLE_BYTES;
        }
    }
    return n;
}

/* A sanitizer has a heap of its own. */
static bool heap_is_seen(void)
{
    char *probe = xmalloc(NEEDLE_BYTES);
    for (size_t i = 0; i < NEEDLE_BYTES; i++)
        probe[i] = needle_at(i);
    bool seen = needles_in_heap() == 1;
    memset(probe, 'x', NEEDLE_BYTES);
    free(probe);
    return seen;
}

static void nothing_of_the_question_stays_in_memory(void)
{
    if (!heap_is_seen())
        SKIP("the heap is elsewhere");
    AUTO(room_clear) struct room r = { 0 };
    const char *const argv[] = { "sh", "-c", "cat >/dev/null; echo '{\"ok\":true}'", NULL };
    struct err e;
    char question[64 + NEEDLE_BYTES] = { 0 }; /* free() writes into the first bytes by itself */
    room_open(&r, argv);
    for (size_t i = 0; i < NEEDLE_BYTES; i++)
        question[64 + i] = needle_at(i);
    struct wish w = { &r, &r.told[0] };
    CHECK(ask_start(r.ask, (struct str){ question, sizeof question }, on_told, &w, &e));
    CHECK_INT(needles_in_heap(), 1); /* waits to be written */
    wait_for(&r, 1);
    CHECK_INT(needles_in_heap(), 0);
}

static size_t start_many(struct room *r, struct wish *wishes, size_t n, struct err *e)
{
    size_t started = 0;
    for (size_t i = 0; i < n; i++) {
        wishes[i] = (struct wish){ r, &r->told[i] };
        started += ask_start(r->ask, STR("{}"), on_told, &wishes[i], e) != NULL;
    }
    return started;
}

static void so_many_and_no_more_at_once(void)
{
    AUTO(room_clear) struct room r = { 0 };
    struct wish wishes[CALLS_MAX];
    struct err e = { 0 };
    /* Each leaves a mark while it runs, and counts those of the others. */
    char folder[] = "/tmp/ask_testXXXXXX", script[400];
    CHECK(mkdtemp(folder));
    snprintf(script, sizeof script,
             "touch %s/$$; n=$(ls %s | wc -l); sleep 0.02; rm %s/$$; "
             "[ $n -le 4 ] && echo '{\"ok\":true}'",
             folder, folder, folder);
    const char *const argv[] = { "sh", "-c", script, NULL };
    room_open(&r, argv);
    CHECK_INT(start_many(&r, wishes, CALLS_MAX, &e), ASK_AT_ONCE + ASK_WAITING);
    CHECK(e.code == ERR_UNAVAILABLE);
    CHECK_STR(e.msg, "too many sign-ins at once");
    wait_for(&r, ASK_AT_ONCE + ASK_WAITING);
    for (size_t i = 0; i < ASK_AT_ONCE + ASK_WAITING; i++)
        CHECK(r.told[i].n == 1 && r.told[i].code == ERR_NONE);
    CHECK(rmdir(folder) == 0);
}

static void what_is_cancelled_is_not_told(void)
{
    AUTO(room_clear) struct room r = { 0 };
    const char *const argv[] = { "sh", "-c", "echo '{\"ok\":true}'", NULL };
    struct wish w[3] = { { &r, &r.told[0] }, { &r, &r.told[1] }, { &r, &r.told[2] } };
    struct err e;
    room_open(&r, argv);
    struct ask_call *first = ask_start(r.ask, STR("{}"), on_told, &w[0], &e);
    struct ask_call *second = ask_start(r.ask, STR("{}"), on_told, &w[1], &e);
    CHECK(first && second && ask_start(r.ask, STR("{}"), on_told, &w[2], &e));
    ask_cancel(second);
    wait_for(&r, 2);
    CHECK(r.told[0].n == 1 && r.told[1].n == 0 && r.told[2].n == 1);
}

/* As a service manager does it: each connection is the input and output of a program. */
struct door {
    struct room *room;
    const char *const *argv;
    int fd;
    struct process *child;
};

static void on_exit_ignore(void *ctx, const struct process_exit *how)
{
    struct door *d = ctx;
    (void)how;
    d->child = process_free(d->child);
}

static void on_knock(void *ctx, unsigned events)
{
    struct door *d = ctx;
    struct err e;
    (void)events;
    AUTO(file_close_p) int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    struct process_spec spec = { .argv = d->argv, .fd = { fd, fd, PROCESS_NO_FD } };
    d->child = process_spawn(d->room->loop, &spec, on_exit_ignore, d, &e);
    CHECK(d->child);
}

static void ask_at_door(const char *const *argv, const char *request, struct told *out)
{
    AUTO(room_clear) struct room r = { 0 };
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct err e;
    struct door d = { .room = &r, .argv = argv, .fd = socket(AF_UNIX, SOCK_STREAM, 0) };
    char folder[] = "/tmp/ask_testXXXXXX";
    CHECK(d.fd >= 0 && mkdtemp(folder));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/sock", folder);
    CHECK(bind(d.fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(d.fd, 8) == 0);
    r.loop = loop_new();
    r.ask = ask_new_socket(r.loop, NULL, at.sun_path);
    r.bound = loop_timer(r.loop, on_bound, &r);
    struct loop_watch *watch = loop_fd(r.loop, d.fd, on_knock, &d, &e);
    CHECK(watch && loop_fd_set(watch, LOOP_READ, &e) == 0);
    struct wish w = { &r, &r.told[0] };
    CHECK(ask_start(r.ask, str_of(request), on_told, &w, &e));
    wait_for(&r, 1);
    *out = r.told[0];
    process_free(d.child);
    loop_unwatch(watch);
    close(d.fd);
    CHECK(unlink(at.sun_path) == 0 && rmdir(folder) == 0);
}

static void behind_a_socket_it_answers_as_well(void)
{
    const char *build = getenv("NIGHTSHIFT_BUILD");
    char path[4096];
    struct told t;
    if (!build)
        SKIP("NIGHTSHIFT_BUILD is not set");
    snprintf(path, sizeof path, "%s/nightshift-signin", build);
    const char *const argv[] = { path, "--machine", NULL };
    ask_at_door(argv, "{\"do\":\"pam_look\",\"user\":\"no-such-user\"}", &t);
    CHECK(t.code == ERR_DENIED && t.has_answer);
    CHECK_STR(t.reason, "unknown_user");
    ask_at_door(argv, "{\"do\":\"hash\",\"password\":\"x\"}", &t);
    CHECK(t.code == ERR_INVALID && strstr(t.words, "no verb"));
    const char *const dies[] = { "sh", "-c", "printf '{\"ok\":tr'; kill -KILL $$", NULL };
    ask_at_door(dies, "{}", &t);
    CHECK(t.code == ERR_UNAVAILABLE && !t.has_answer);
}

static void a_socket_that_is_not_there_is_named(void)
{
    AUTO(room_clear) struct room r = { 0 };
    struct err e;
    r.loop = loop_new();
    r.ask = ask_new_socket(r.loop, NULL, "/nonexistent/signin.sock");
    r.bound = loop_timer(r.loop, on_bound, &r);
    struct wish w = { &r, &r.told[0] };
    CHECK(ask_start(r.ask, STR("{}"), on_told, &w, &e));
    wait_for(&r, 1);
    CHECK(r.told[0].code == ERR_UNAVAILABLE && strstr(r.told[0].words, "/nonexistent/signin.sock"));
}

static void all_are_cancelled_with_it(void)
{
    AUTO(room_clear) struct room r = { 0 };
    const char *const argv[] = { "sleep", "100", NULL };
    struct wish wishes[10];
    struct err e;
    room_open(&r, argv);
    CHECK_INT(start_many(&r, wishes, 10, &e), 10);
    loop_timer_set(r.bound, 50, 0); /* they run by then, or wait */
    loop_run(r.loop);
    r.ask = ask_free(r.ask);
    CHECK_INT(r.done, 0);
}

static const struct test tests[] = {
    { "the real program answers, and its refusals are errors", the_real_program_answers },
    { "a question of 64 KiB arrives whole, a larger one is refused",
      a_large_question_arrives_whole },
    { "a child that dies or answers nonsense is an error", a_child_that_fails_is_an_error },
    { "a child that writes without end is stopped", a_child_that_writes_without_end_is_stopped },
    { "a child that hangs is stopped", a_child_that_hangs_is_stopped },
    { "a child has nothing of our environment, nor secrets in its arguments",
      a_child_sees_nothing_of_ours },
    { "nothing of the question stays in memory", nothing_of_the_question_stays_in_memory },
    { "four run at once, 64 wait, more are refused", so_many_and_no_more_at_once },
    { "what is cancelled is not told", what_is_cancelled_is_not_told },
    { "behind a socket it answers as well", behind_a_socket_it_answers_as_well },
    { "a socket that is not there is named", a_socket_that_is_not_there_is_named },
    { "all are cancelled with the one who asks", all_are_cancelled_with_it },
};
TEST_CASES(tests)
