#include "kube/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/json.h"
#include "sys/file.h"
#include "sys/process.h"

#define PATIENCE_MS 60000
#define PRINT_MAX (1u << 20)
#define COMPLAINT_MAX 300

struct mouth {
    int fd; /* our end */
    struct loop_watch *watch;
    struct buf text;
};

struct kube_plugin_run {
    kube_plugin_fn *fn;
    void *ctx;
    struct process *process;
    struct loop_watch *timer;
    struct mouth out, err;
    bool late;
};

static void mouth_close(struct mouth *m)
{
    m->watch = loop_unwatch(m->watch);
    file_close_p(&m->fd);
}

static void run_free(struct kube_plugin_run *r)
{
    mouth_close(&r->out);
    mouth_close(&r->err);
    loop_unwatch(r->timer);
    if (r->out.text.p)
        explicit_bzero(r->out.text.p, r->out.text.n);
    buf_free(&r->out.text);
    buf_free(&r->err.text);
    process_free(r->process);
    free(r);
}

void kube_plugin_stop(struct kube_plugin_run *r)
{
    if (!r)
        return;
    process_kill(r->process, SIGKILL);
    run_free(r);
}

/* All that is there now; what is too much is read and dropped. */
static void hear(struct mouth *m)
{
    char chunk[4096];
    ssize_t n;
    while (m->fd >= 0) {
        n = read(m->fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            mouth_close(m);
            return;
        }
        buf_add(&m->text, (struct str){ chunk, MIN((size_t)n, m->text.limit - m->text.n) });
        m->text.full = m->text.full || m->text.n == m->text.limit;
    }
}

static void on_mouth(void *ctx, unsigned events)
{
    (void)events;
    hear(ctx);
}

static void on_late(void *ctx)
{
    struct kube_plugin_run *r = ctx;
    r->late = true;
    process_kill(r->process, SIGKILL);
}

static int judge(const struct kube_plugin_run *r, const struct process_exit *how, struct err *e)
{
    struct str said = str_trim(buf_str(&r->err.text));
    if (r->late)
        return err_set(e, ERR_UNAVAILABLE, "it took longer than %d s", PATIENCE_MS / 1000);
    if (r->out.text.full)
        return err_set(e, ERR_TOO_LARGE, "it printed more than %u bytes", PRINT_MAX);
    if (how->signal)
        return err_set(e, ERR_UNAVAILABLE, "it was killed by signal %d", how->signal);
    if (how->code == 0)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "it ended with %d%s%.*s", how->code, said.n ? ": " : "",
            STR_ARG(said));
    return err_hint(e, "run it by hand to see what it wants; it may ask you to sign in again");
}

static void on_exit_(void *ctx, const struct process_exit *how)
{
    struct kube_plugin_run *r = ctx;
    struct err e = { 0 };
    hear(&r->out);
    hear(&r->err);
    bool failed = judge(r, how, &e) < 0;
    kube_plugin_fn *fn = r->fn;
    void *fn_ctx = r->ctx;
    struct buf printed = r->out.text;
    r->out.text = (struct buf){ 0 };
    run_free(r);
    fn(fn_ctx, buf_str(&printed), failed ? &e : NULL);
    if (printed.p)
        explicit_bzero(printed.p, printed.n);
    buf_free(&printed);
}

static int mouth_open(struct mouth *m, struct loop *l, int *out_theirs, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    m->fd = ends[0];
    *out_theirs = ends[1];
    if (fcntl(m->fd, F_SETFL, O_NONBLOCK) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    m->watch = loop_fd(l, m->fd, on_mouth, m, e);
    return m->watch ? loop_fd_set(m->watch, LOOP_READ, e) : -1;
}

/* ---- its environment ---- */

static bool is_said(const struct kube_plugin *plugin, const char *ours)
{
    size_t n = strcspn(ours, "=");
    if (n == strlen("KUBERNETES_EXEC_INFO") && strncmp(ours, "KUBERNETES_EXEC_INFO", n) == 0)
        return true;
    for (size_t i = 0; plugin->env[i]; i++)
        if (strncmp(plugin->env[i], ours, n + 1) == 0)
            return true;
    return false;
}

static const char *const *environment(const struct kube_plugin *plugin, struct arena *a)
{
    AUTO(buf_free) struct buf info = BUF(4096);
    struct json_out w = { .b = &info };
    size_t ours = 0, said = 0, n = 0;
    while (environ[ours])
        ours++;
    while (plugin->env[said])
        said++;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "kind", STR("ExecCredential"));
    json_put_str(&w, "apiVersion", str_of(plugin->api_version));
    json_begin(&w, "spec", '{');
    json_put_bool(&w, "interactive", false);
    json_end(&w, '}');
    json_end(&w, '}');
    const char **env = arena_array(a, const char *, ours + said + 2);
    env[n++] = arena_printf(a, "KUBERNETES_EXEC_INFO=%s", info.p);
    for (size_t i = 0; i < said; i++)
        env[n++] = plugin->env[i];
    for (size_t i = 0; i < ours; i++)
        if (!is_said(plugin, environ[i]))
            env[n++] = environ[i];
    return env;
}

struct kube_plugin_run *kube_plugin_run(struct loop *l, const struct kube_plugin *plugin,
                                        kube_plugin_fn *fn, void *ctx, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(file_close_p) int out = -1;
    AUTO(file_close_p) int complaints = -1;
    struct kube_plugin_run *r = xcalloc(1, sizeof *r);
    r->fn = fn;
    r->ctx = ctx;
    r->out = (struct mouth){ .fd = -1, .text = BUF(PRINT_MAX) };
    r->err = (struct mouth){ .fd = -1, .text = BUF(COMPLAINT_MAX) };
    r->timer = loop_timer(l, on_late, r);
    if (mouth_open(&r->out, l, &out, e) == 0 && mouth_open(&r->err, l, &complaints, e) == 0) {
        struct process_spec spec = { .argv = plugin->argv,
                                     .env = environment(plugin, &a),
                                     .fd = { PROCESS_NO_FD, out, complaints },
                                     .new_group = true };
        r->process = process_spawn(l, &spec, on_exit_, r, e);
    }
    if (!r->process) {
        run_free(r);
        return NULL;
    }
    loop_timer_set(r->timer, PATIENCE_MS, 0);
    return r;
}
