#include "engine/local/local.h"

#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/process.h"
#include "tests/lib/conform.h"
#include "tests/lib/test.h"

#define OURS_UID 54321

struct
try {
    struct conform c;
    struct loop *loop;
    struct loop_watch *timer;
    struct process *keeper;
    char dir[64], state[80], run[80], socket[96], home[80], group[48];
    char program[512], init[512];
    bool keeper_gone;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void make_folders(struct try *t)
{
    *t = (struct try){ .loop = loop_new() };
    snprintf(t->dir, sizeof t->dir, "/tmp/nsl-XXXXXX");
    CHECK(mkdtemp(t->dir) != NULL);
    CHECK(chmod(t->dir, 0755) == 0);
    snprintf(t->state, sizeof t->state, "%s/state", t->dir);
    snprintf(t->run, sizeof t->run, "%s/run", t->dir);
    snprintf(t->home, sizeof t->home, "%s/home", t->dir);
    snprintf(t->socket, sizeof t->socket, "%s/run/keeper.sock", t->dir);
    snprintf(t->group, sizeof t->group, "%s", strrchr(t->dir, '/') + 1);
    CHECK(mkdir(t->state, 0755) == 0 && mkdir(t->run, 0755) == 0 && mkdir(t->home, 0755) == 0);
}

/* Control groups that the keeper made and cannot know to be the last. */
static void remove_groups(const struct try *t)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "/sys/fs/cgroup/*/%s", t->group);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        rmdir(found.gl_pathv[i]);
    globfree(&found);
}

static void remove_folders(struct try *t)
{
    conform_clear(&t->c);
    t->loop = loop_free(t->loop);
    nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    remove_groups(t);
}

static void open_local(struct try *t, const char *const *keeper_argv)
{
    struct local_config config = { .loop = t->loop,
                                   .clock = clock_wall(),
                                   .socket = t->socket,
                                   .state = t->state,
                                   .run = t->run,
                                   .keeper_argv = keeper_argv,
                                   .log_bytes = 1 << 20,
                                   .scratch_mib = 0,
                                   .pids_max = 256,
                                   .sink = conform_sink,
                                   .ctx = &t->c };
    t->c.engine = engine_local_new(&config);
}

/* ---- against a real keeper ---- */

static void on_time(void *ctx)
{
    loop_stop(ctx);
}

static void advance(void *ctx, int64_t ms)
{
    struct try *t = ctx;
    loop_timer_set(t->timer, (uint64_t)ms, 0);
    loop_run(t->loop);
}

static void program(void *ctx, const struct conform_program *p, struct arena *a, struct spec *out)
{
    static const struct spec_volume nowhere = { .from = { "/no/such/folder", 15 },
                                                .to = { "/data", 5 } };
    const char **argv = arena_array(a, const char *, 4);
    (void)ctx;
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] =
        arena_printf(a, "%s %s echo began; sleep %lld.%03lld & wait $!; exit %d",
                     p->ignores_term ? "trap '' TERM;" : "",
                     p->saves_with ? arena_printf(a, "trap 'exit %d' USR1;", p->saves_with) : "",
                     (long long)p->run_ms / 1000, (long long)p->run_ms % 1000, p->code);
    out->argv = argv;
    out->n_args = 3;
    if (p->cannot_start) {
        out->volume = &nowhere;
        out->n_volumes = 1;
    }
}

static int runs(void *ctx, struct task_id t)
{
    struct try *y = ctx;
    AUTO(buf_free) struct buf text = { 0 };
    char dir[300], path[320];
    struct err e;
    int n = 0;
    y->c.engine.ops->log_dir(y->c.engine.self, t, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/log.0", dir);
    if (file_read(path, 1 << 20, &text, &e) < 0)
        return 0;
    for (const char *at = text.p; at && (at = strstr(at, " stdout F began\n")); at++)
        n++;
    return n;
}

static void on_keeper_exit(void *ctx, const struct process_exit *how)
{
    struct try *t = ctx;
    (void)how;
    t->keeper_gone = true;
}

static void spawn_keeper(struct try *t)
{
    const char *argv[] = { t->program, "--state",      t->state,    "--run",
                           t->run,     "--mode",       "root",      "--cgroup",
                           t->group,   "--no-network", "--no-gpus", "--init",
                           t->init,    "--log-level",  "warn",      NULL };
    struct process_spec spec = { .argv = argv,
                                 .fd = { PROCESS_NO_FD, STDERR_FILENO, STDERR_FILENO },
                                 .new_group = true };
    struct err e = { 0 };
    t->keeper_gone = false;
    t->keeper = process_spawn(t->loop, &spec, on_keeper_exit, t, &e);
    CHECK_STR(e.msg, "");
}

static void end_keeper(struct try *t, int signo)
{
    process_kill(t->keeper, signo);
    while (!t->keeper_gone)
        advance(t, 10);
    t->keeper = process_free(t->keeper);
}

static void await_ready(struct try *t)
{
    size_t from = t->c.n;
    for (int i = 0; i < TEST_PATIENCE_MS / 10; i++) {
        for (size_t k = from; k < t->c.n; k++)
            if (t->c.seen[k].kind == ENGINE_READY)
                return;
        advance(t, 10);
    }
    test_fail(__FILE__, __LINE__, "the keeper did not answer");
}

/* Skips where there is no keeper or no root. */
static void open_keeper(struct try *t)
{
    const char *build = getenv("NIGHTSHIFT_BUILD");
    char path[512];
    snprintf(path, sizeof path, "%s/nightshift-keeper", build ? build : "");
    if (!build || access(path, X_OK) < 0)
        SKIP("there is no nightshift-keeper in $NIGHTSHIFT_BUILD");
    if (geteuid() != 0)
        SKIP("running tasks as other users needs root");
    make_folders(t);
    snprintf(t->program, sizeof t->program, "%s", path);
    snprintf(t->init, sizeof t->init, "%s/nightshift-init", build);
    CHECK(chown(t->home, OURS_UID, OURS_UID) == 0);
    t->timer = loop_timer(t->loop, on_time, t->loop);
    t->c =
        (struct conform){ .user = { STR("conform"), str_of(t->home), OURS_UID, OURS_UID, NULL, 0 },
                          .advance = advance,
                          .program = program,
                          .runs = runs,
                          .ctx = t,
                          .patience_ms = TEST_PATIENCE_MS,
                          .quiet_ms = 300 };
    struct err e;
    spawn_keeper(t);
    open_local(t, NULL);
    CHECK(t->c.engine.ops->sync(t->c.engine.self, &e) == 0);
    await_ready(t);
}

static void close_keeper(struct try *t)
{
    t->c.engine.ops->free(t->c.engine.self);
    end_keeper(t, SIGTERM);
    remove_folders(t);
}

static void run_case(void (*fn)(struct conform *c))
{
    struct try t;
    open_keeper(&t);
    fn(&t.c);
    close_keeper(&t);
}

#define X(id, name)                                                                                \
    static void id##_conforms(void)                                                                \
    {                                                                                              \
        run_case(conform_##id);                                                                    \
    }
CONFORM_CASES(X)
#undef X

/* ---- against a keeper of our own ---- */

struct fake {
    struct try t;
    int listener, fd;
};

static int count_kind(const struct try *t, enum engine_event_kind kind)
{
    int n = 0;
    for (size_t i = 0; i < t->c.n; i++)
        n += t->c.seen[i].kind == kind;
    return n;
}

static void fake_begin(struct fake *f)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    make_folders(&f->t);
    f->fd = -1;
    f->t.timer = loop_timer(f->t.loop, on_time, f->t.loop);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", f->t.socket);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(f->listener >= 0 && bind(f->listener, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(listen(f->listener, 4) == 0);
    open_local(&f->t, NULL);
}

static void fake_end(struct fake *f)
{
    f->t.c.engine.ops->free(f->t.c.engine.self);
    file_close_p(&f->fd);
    file_close_p(&f->listener);
    remove_folders(&f->t);
}

/* It comes by itself. */
static void fake_await(struct fake *f)
{
    for (int i = 0; f->fd < 0 && i < TEST_PATIENCE_MS / 10; i++) {
        advance(&f->t, 10);
        f->fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    }
    CHECK(f->fd >= 0);
}

/* It asks first. */
static void fake_accept(struct fake *f)
{
    char line[64] = "";
    struct err e;
    CHECK(f->t.c.engine.ops->sync(f->t.c.engine.self, &e) == 0);
    fake_await(f);
    ssize_t n = read(f->fd, line, sizeof line - 1);
    CHECK(n > 0);
    CHECK_STR(line, "{\"do\":\"sync\"}\n");
}

static void fake_say(struct fake *f, const char *text)
{
    CHECK(write(f->fd, text, strlen(text)) == (ssize_t)strlen(text));
    advance(&f->t, 20);
}

static void fake_hang_up(struct fake *f)
{
    file_close_p(&f->fd);
    f->fd = -1;
    advance(&f->t, 30);
}

static void lines_may_come_in_pieces_and_bad_ones_are_passed_over(void)
{
    struct fake f;
    fake_begin(&f);
    fake_accept(&f);
    CHECK_STR(engine_local_mode(&f.t.c.engine), "");
    fake_say(&f, "{\"ev\":\"hello\",\"mode\":\"plain\",\"caps\":{\"pause\":true}}\n{\"ev\":\"rea");
    CHECK_STR(engine_local_mode(&f.t.c.engine), "plain");
    CHECK(f.t.c.engine.caps[CAP_PAUSE] && !f.t.c.engine.caps[CAP_SIGNAL]);
    CHECK_INT(f.t.c.n, 0);
    fake_say(&f, "dy\"}\nnonsense\n{\"ev\":\"sneezed\"}\n{\"ev\":\"started\",\"task\":\"x\"}\n");
    fake_say(&f, "{\"ev\":\"started\",\"task\":\"7.1.0\",\"t_ms\":5}\n");
    CHECK_INT(f.t.c.n, 2);
    CHECK_INT(f.t.c.seen[0].kind, ENGINE_READY);
    CHECK_INT(f.t.c.seen[1].kind, ENGINE_STARTED);
    CHECK_INT(f.t.c.seen[1].task.job, 7);
    fake_end(&f);
}

static void a_keeper_that_goes_is_away_and_is_asked_again_when_it_is_back(void)
{
    struct fake f;
    struct err e;
    fake_begin(&f);
    fake_accept(&f);
    fake_say(&f, "{\"ev\":\"ready\"}\n");
    fake_hang_up(&f);
    CHECK_INT(count_kind(&f.t, ENGINE_AWAY), 1);
    /* It connected again by itself; verbs work. */
    fake_await(&f);
    CHECK(f.t.c.engine.ops->forget(f.t.c.engine.self, (struct task_id){ 1, 2, 3 }, &e) == 0);
    char text[128] = "";
    CHECK(read(f.fd, text, sizeof text - 1) > 0);
    CHECK_STR(text, "{\"do\":\"sync\"}\n{\"do\":\"forget\",\"task\":\"1.2.3\"}\n");
    fake_end(&f);
}

static void a_keeper_is_away_once_until_it_tells_something(void)
{
    struct fake f;
    fake_begin(&f);
    fake_accept(&f);
    fake_say(&f, "{\"ev\":\"ready\"}\n");
    for (int i = 0; i < 3; i++) { /* the socket of one that is dying takes connections too */
        fake_hang_up(&f);
        fake_await(&f);
    }
    CHECK_INT(count_kind(&f.t, ENGINE_AWAY), 1);
    fake_say(&f, "{\"ev\":\"started\",\"task\":\"7.1.0\",\"t_ms\":5}\n");
    fake_hang_up(&f);
    CHECK_INT(count_kind(&f.t, ENGINE_AWAY), 2);
    fake_end(&f);
}

static void without_a_keeper_verbs_succeed_and_nothing_happens(void)
{
    struct fake f;
    struct err e;
    fake_begin(&f);
    const struct engine_ops *o = f.t.c.engine.ops;
    void *self = f.t.c.engine.self;
    struct task_id t = { 1, 1, 0 };
    CHECK(o->stop(self, t, 5, END_STOPPED, &e) == 0 && o->signal(self, t, 10, &e) == 0);
    CHECK(o->pause(self, t, &e) == 0 && o->resume(self, t, &e) == 0 && o->forget(self, t, &e) == 0);
    CHECK(o->open_stream(self, t, &e) < 0 && strstr(e.msg, "1.1.0"));
    CHECK_INT(f.t.c.n, 0);
    fake_end(&f);
}

static void a_line_without_end_ends_the_connection(void)
{
    struct fake f;
    AUTO(free_p) char *much = xmalloc(65536);
    fake_begin(&f);
    fake_accept(&f);
    memset(much, 'x', 65536);
    for (int i = 0; i < 40 && count_kind(&f.t, ENGINE_AWAY) == 0; i++) {
        ssize_t n = send(f.fd, much, 65536, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)n; /* it may be gone already */
        advance(&f.t, 5);
    }
    CHECK_INT(count_kind(&f.t, ENGINE_AWAY), 1);
    fake_end(&f);
}

/* ---- starting it ---- */

static void a_keeper_is_started_when_none_answers(void)
{
    struct try t;
    struct err e;
    char note[128], script[256];
    make_folders(&t);
    t.timer = loop_timer(t.loop, on_time, t.loop);
    snprintf(note, sizeof note, "%s/note", t.dir);
    snprintf(script, sizeof script, "echo begun >> %s; sleep 900", note);
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    open_local(&t, argv);
    CHECK(t.c.engine.ops->sync(t.c.engine.self, &e) == 0);
    AUTO(buf_free) struct buf text = { 0 };
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && access(note, F_OK) < 0; i++)
        advance(&t, 10);
    advance(&t, 100); /* it does not answer, but lives: no second one */
    CHECK(file_read(note, 100, &text, &e) == 0);
    CHECK_STR(text.p, "begun\n");
    engine_local_end(&t.c.engine);
    t.c.engine.ops->free(t.c.engine.self);
    remove_folders(&t);
}

static size_t told_since(const struct try *t, size_t from, enum engine_event_kind kind,
                         uint64_t job)
{
    size_t n = 0;
    for (size_t i = from; i < t->c.n; i++)
        n += t->c.seen[i].kind == kind && t->c.seen[i].task.job == job;
    return n;
}

/* Jobs must not notice that a keeper dies. */
static void tasks_outlive_their_keeper(void)
{
    struct try t;
    open_keeper(&t);
    conform_start(&t.c, 1, (struct conform_program){ .run_ms = 10, .code = 5 });
    conform_start(&t.c, 2, (struct conform_program){ .run_ms = 1500, .code = 6 });
    conform_await(&t.c, ENGINE_ENDED, 1);
    conform_await(&t.c, ENGINE_STARTED, 2);
    size_t before = t.c.n;
    end_keeper(&t, SIGKILL);
    spawn_keeper(&t);
    await_ready(&t);
    CHECK_INT(told_since(&t, before, ENGINE_AWAY, 0), 1);
    CHECK_INT(told_since(&t, before, ENGINE_ENDED, 1), 1);
    CHECK_INT(conform_await(&t.c, ENGINE_ENDED, 2).code, 6);
    CHECK_INT(told_since(&t, before, ENGINE_ENDED, 2), 1);
    CHECK_INT(runs(&t, (struct task_id){ 2, 1, 0 }), 1);
    close_keeper(&t);
}

static const struct test tests[] = {
#define X(id, name) { name, id##_conforms },
    CONFORM_CASES(X)
#undef X
        { "tasks outlive their keeper, and the next one tells of them",
          tasks_outlive_their_keeper },
    { "lines may come in pieces, and bad ones are passed over",
      lines_may_come_in_pieces_and_bad_ones_are_passed_over },
    { "a keeper that goes is away, and is asked again when it is back",
      a_keeper_that_goes_is_away_and_is_asked_again_when_it_is_back },
    { "a keeper is away once, until it tells something",
      a_keeper_is_away_once_until_it_tells_something },
    { "without a keeper verbs succeed and nothing happens",
      without_a_keeper_verbs_succeed_and_nothing_happens },
    { "a line without end ends the connection", a_line_without_end_ends_the_connection },
    { "a keeper is started when none answers, and only one",
      a_keeper_is_started_when_none_answers },
};
TEST_CASES(tests)
