/* What every engine must keep (tests/lib/conform.h), of the Kubernetes engine on a real node.  Takes the
 * cluster from $KUBECONFIG; tests/lib/kube_conform_cases.py starts one. */
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/kube/kube.h"
#include "kube/config.h"
#include "sys/file.h"
#include "tests/lib/conform.h"
#include "tests/lib/test.h"

#define OURS_UID 54321
#define PATIENCE_MS 300000 /* as in tests/lib/patience.py */

struct
try {
    struct conform c;
    struct loop *loop;
    struct log *log;
    struct loop_watch *timer;
    char dir[64];
};

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        SKIP("%s is not set: see tests/lib/kube_conform_cases.py", name);
    return value;
}

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
    const char **argv = arena_array(a, const char *, 4);
    (void)ctx;
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] =
        arena_printf(a, "%s %s echo began; sleep %lld.%03lld & wait $!; exit %d",
                     p->ignores_term ? "trap '' TERM USR1;" : "",
                     p->saves_with ? arena_printf(a, "trap 'exit %d' USR1;", p->saves_with) : "",
                     (long long)p->run_ms / 1000, (long long)p->run_ms % 1000, p->code);
    out->argv = argv;
    out->n_args = 3;
    out->request.cpu_milli = 100; /* eight of them fit a small machine */
    if (p->cannot_start)
        out->image = STR("no such image");
}

static int runs(void *ctx, struct task_id task)
{
    struct try *t = ctx;
    AUTO(buf_free) struct buf text = { 0 };
    char dir[300], path[320];
    struct err e;
    int n = 0;
    t->c.engine.ops->log_dir(t->c.engine.self, task, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/log.0", dir);
    if (file_read(path, 1 << 20, &text, &e) < 0)
        return 0;
    for (const char *at = text.p; at && (at = strstr(at, " stdout F began\n")); at++)
        n++;
    return n;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void await_ready(struct try *t)
{
    for (int64_t waited = 0; waited <= PATIENCE_MS; waited += 10) {
        for (size_t k = 0; k < t->c.n; k++)
            if (t->c.seen[k].kind == ENGINE_READY)
                return;
        advance(t, 10);
    }
    test_fail(__FILE__, __LINE__, "the cluster did not answer");
}

/* Each case has the cluster as if alone: a pod of the last one, of the same number, may still be there. */
static void open_engine(struct try *t, const char *id, const char *node)
{
    char scheduler[16], prefix[20];
    struct err e = { 0 };
    struct kube_config *server = kube_config_load(setting("KUBECONFIG"), NULL, &e);
    CHECK_STR(e.msg, "");
    *t = (struct try){ .loop = loop_new(),
                       .log = log_new(stderr, LOG_WARN_, LOG_TEXT, clock_wall()) };
    snprintf(t->dir, sizeof t->dir, "/tmp/nsk-XXXXXX");
    CHECK(mkdtemp(t->dir) != NULL);
    t->timer = loop_timer(t->loop, on_time, t->loop);
    t->c = (struct conform){ .user = { STR("conform"), STR("/"), OURS_UID, OURS_UID, NULL, 0 },
                             .node = str_of(node),
                             .stop_signal = 10,
                             .asks_first = true,
                             .advance = advance,
                             .program = program,
                             .runs = runs,
                             .ctx = t,
                             .patience_ms = PATIENCE_MS };
    snprintf(scheduler, sizeof scheduler, "c%08x", (unsigned)str_hash(str_of(id)));
    snprintf(prefix, sizeof prefix, "%s-", scheduler);
    struct kube_engine_config config = { .loop = t->loop,
                                         .log = t->log,
                                         .clock = clock_wall(),
                                         .server = server,
                                         .site = { .scheduler = scheduler,
                                                   .image = setting("CONFORM_IMAGE"),
                                                   .init_image = setting("CONFORM_INIT_IMAGE"),
                                                   .init_path = setting("CONFORM_INIT_PATH"),
                                                   .gpu = "nvidia.com/gpu" },
                                         .space = "nightshift",
                                         .prefix = prefix,
                                         .state = t->dir,
                                         .identity = "conform",
                                         .log_bytes = 1 << 20,
                                         .lost_after_ms = 300000,
                                         .sink = conform_sink,
                                         .ctx = &t->c };
    CHECK(engine_kube_new(&config, &t->c.engine, &e) == 0);
    struct engine_tenant here = { .name = STR("vision"), .limit = AMOUNTS_NO_LIMIT };
    CHECK(t->c.engine.ops->tenant(t->c.engine.self, &here, &e) == 0);
    CHECK(t->c.engine.ops->sync(t->c.engine.self, &e) == 0);
    await_ready(t);
}

static void close_engine(struct try *t)
{
    t->c.engine.ops->free(t->c.engine.self);
    conform_clear(&t->c);
    loop_free(t->loop);
    log_free(t->log);
    nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void run_case(const char *id, void (*fn)(struct conform *c))
{
    struct try t;
    open_engine(&t, id, setting("CONFORM_NODE"));
    fn(&t.c);
    close_engine(&t);
}

#define X(id, name)                                                                                \
    static void id##_conforms(void)                                                                \
    {                                                                                              \
        run_case(#id, conform_##id);                                                               \
    }
CONFORM_CASES(X)
#undef X

static const struct test tests[] = {
#define X(id, name) { name, id##_conforms },
    CONFORM_CASES(X)
#undef X
};
TEST_CASES(tests)
