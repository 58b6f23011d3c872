#include "auth/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/process.h"

#define ANSWER_MAX (512u << 10)

static const struct ask_program signin = { .name = "nightshift-signin",
                                           .event = "signin.failed",
                                           .failure = "sign-in does not work at the moment",
                                           .busy = "too many sign-ins at once",
                                           .at_once = ASK_AT_ONCE,
                                           .request_max = 64u << 10 };

struct list {
    struct ask_call *first, *last;
    size_t n;
};

struct ask_call {
    struct ask *ask;
    struct list *in; /* NULL: in none, between waiting and running */
    struct ask_call *prev, *next;
    ask_done_fn *fn;
    void *ctx;
    char *request; /* what is still to be written; NULL: all is */
    size_t n, written;
    struct process *child; /* NULL: waits, or is behind the socket */
    int fd;
    struct loop_watch *watch, *late;
    struct buf answer;
};

struct ask {
    struct loop *loop;
    struct log *log;
    const char *const *argv;
    const char *socket; /* or NULL */
    const struct ask_program *program;
    struct list running, waiting;
    struct loop_watch *soon; /* what waits is started from the loop, not from inside a callback */
    uint64_t patience_ms;
};

/* ---- lists ---- */

static void list_add(struct list *l, struct ask_call *c)
{
    c->in = l;
    c->prev = l->last;
    c->next = NULL;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    l->n++;
}

static void list_drop(struct ask_call *c)
{
    struct list *l = c->in;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->last = c->prev;
    l->n--;
    c->in = NULL;
}

/* The first, out of the list; NULL when there is none. */
static struct ask_call *list_take(struct list *l)
{
    struct ask_call *c = l->first;
    if (!c)
        return NULL;
    l->first = c->next;
    if (c->next)
        c->next->prev = NULL;
    else
        l->last = NULL;
    l->n--;
    c->in = NULL;
    return c;
}

/* ---- the end of a call ---- */

static void forget_request(struct ask_call *c)
{
    if (c->request)
        sodium_memzero(c->request, c->n);
    free(TAKE(c->request));
}

/* Out of its list, its child gone.  Only the memory is left, for those who have still to tell. */
static void detach(struct ask_call *c)
{
    struct ask *a = c->ask;
    if (c->in)
        list_drop(c);
    c->watch = loop_unwatch(c->watch);
    c->late = loop_unwatch(c->late);
    if (c->child)
        process_kill(c->child, SIGKILL);
    c->child = process_free(c->child);
    file_close_p(&c->fd);
    c->fd = -1;
    forget_request(c);
    if (a->waiting.first)
        loop_timer_set(a->soon, 0, 0);
}

static void call_free(struct ask_call *c)
{
    if (c->answer.p)
        sodium_memzero(c->answer.p, c->answer.n);
    buf_free(&c->answer);
    free(c);
}

static void tell(struct ask_call *c, const struct json *answer, const struct err *why)
{
    detach(c);
    c->fn(c->ctx, answer, why);
    call_free(c);
}

static void tell_failure(struct ask_call *c, const char *words, const struct process_exit *how)
{
    struct err e = { 0 };
    const struct ask_program *p = c->ask->program;
    log_event(c->ask->log, LOG_ERROR_, p->event, "why=%s code=%d signal=%d", words,
              how ? how->code : 0, how ? how->signal : 0);
    err_set(&e, ERR_UNAVAILABLE, "%s: %s", p->failure, words);
    err_hint(&e, "try again; if it stays so, the administrator can look at the server's log");
    tell(c, NULL, &e);
}

static void tell_failed(struct ask_call *c, const char *how_it_went, const struct process_exit *how)
{
    char words[128];
    snprintf(words, sizeof words, "%s %s", c->ask->program->name, how_it_went);
    tell_failure(c, words, how);
}

/* ---- the answer ---- */

/* The code of a refusal; the program knows three. */
static enum err_code code_of(struct str slug)
{
    static const enum err_code known[] = { ERR_DENIED, ERR_INVALID };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_is(slug, err_info(known[i])->slug))
            return known[i];
    return ERR_UNAVAILABLE;
}

static int refusal_of(const struct json *answer, struct err *out)
{
    struct err e;
    struct str code, reason, message, hint = STR("");
    if (json_need_str(answer, "code", 64, &code, &e) < 0 ||
        json_need_str(answer, "reason", 64, &reason, &e) < 0 ||
        json_need_str(answer, "message", 1024, &message, &e) < 0 ||
        json_get_str(answer, "hint", 1024, &hint, &e) < 0)
        return -1;
    err_set(out, code_of(code), "%.*s", STR_ARG(message));
    err_hint(out, "%.*s", STR_ARG(hint));
    err_about(out, "%.*s", STR_ARG(reason));
    return 0;
}

static void read_answer(struct ask_call *c, const struct process_exit *how)
{
    struct err e = { 0 };
    bool ok = false;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&c->answer), &e);
    const struct json *answer = doc ? json_root(doc) : NULL;
    bool valid = how->code == 0 && how->signal == 0 && json_is_object(answer) &&
                 json_find(answer, "ok") && json_get_bool(answer, "ok", &ok, &e) == 0 &&
                 (ok || refusal_of(answer, &e) == 0);
    if (valid)
        tell(c, answer, ok ? NULL : &e);
    else
        tell_failed(c, "failed", how);
}

static void take_answer(struct ask_call *c)
{
    char piece[16384];
    ssize_t n = 1;
    while (!c->answer.full && (n = read(c->fd, piece, sizeof piece)) > 0)
        buf_add(&c->answer, (struct str){ piece, (size_t)n });
    sodium_memzero(piece, sizeof piece);
    if (n == 0 || (n < 0 && errno != EAGAIN)) /* a closed one would be readable for ever */
        c->watch = loop_unwatch(c->watch);
}

/* Behind a socket nobody tells how the program ended; whether the answer is whole shows by itself. */
static bool is_complete(const struct ask_call *c)
{
    return !c->child && !c->watch;
}

/* ---- the question ---- */

static unsigned send_more(struct ask_call *c)
{
    while (c->written < c->n) {
        ssize_t n = send(c->fd, c->request + c->written, c->n - c->written, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return LOOP_READ | LOOP_WRITE;
        if (n < 0) /* it does not listen; its exit tells the rest */
            break;
        c->written += (size_t)n;
    }
    forget_request(c);
    shutdown(c->fd, SHUT_WR);
    return LOOP_READ;
}

static void on_ready(void *ctx, unsigned events)
{
    struct ask_call *c = ctx;
    struct err e;
    if (events & LOOP_READ)
        take_answer(c);
    if (c->answer.full) {
        tell_failed(c, "writes without end", NULL);
        return;
    }
    if (is_complete(c)) {
        read_answer(c, &(struct process_exit){ 0 });
        return;
    }
    bool more = (events & LOOP_WRITE) && c->request && c->watch;
    if (more && loop_fd_set(c->watch, send_more(c), &e) < 0)
        tell_failure(c, e.msg, NULL);
}

static void on_late(void *ctx)
{
    tell_failure(ctx, "it took too long and was stopped", NULL);
}

static void on_exit_of_child(void *ctx, const struct process_exit *how)
{
    struct ask_call *c = ctx;
    take_answer(c); /* what it wrote last */
    read_answer(c, how);
}

static int spawn(struct ask_call *c, struct err *e)
{
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    int ends[2];
    /* One socket is its standard input and output: our shutdown is its end of file. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
    c->fd = ends[0];
    AUTO(file_close_p) int child_end = ends[1];
    struct process_spec spec = { .argv = c->ask->argv,
                                 .env = env,
                                 .fd = { child_end, child_end, PROCESS_NO_FD },
                                 .new_group = true };
    c->child = process_spawn(c->ask->loop, &spec, on_exit_of_child, c, e);
    return c->child ? 0 : -1;
}

static int connect_to(struct ask_call *c, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s", c->ask->socket);
    if (n < 0 || (size_t)n >= sizeof at.sun_path)
        return err_set(e, ERR_INVALID, "the path %s is too long for a socket", c->ask->socket);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&at, sizeof at) < 0)
        return err_set(e, ERR_UNAVAILABLE, "nobody answers at %s: %s", c->ask->socket,
                       strerror(errno));
    return 0;
}

static int start(struct ask_call *c, struct err *e)
{
    struct ask *a = c->ask;
    if ((a->socket ? connect_to(c, e) : spawn(c, e)) < 0)
        return -1;
    int flags = fcntl(c->fd, F_GETFL);
    if (flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot use a socket: %s", strerror(errno));
    c->watch = loop_fd(a->loop, c->fd, on_ready, c, e);
    if (!c->watch)
        return -1;
    list_add(&a->running, c);
    c->late = loop_timer(a->loop, on_late, c);
    loop_timer_set(c->late, a->patience_ms, 0);
    return loop_fd_set(c->watch, send_more(c), e);
}

static void start_waiting(void *ctx)
{
    struct ask *a = ctx;
    struct err e;
    struct ask_call *c;
    while (a->running.n < a->program->at_once && (c = list_take(&a->waiting)))
        if (start(c, &e) < 0)
            tell_failure(c, e.msg, NULL);
}

/* ---- outside ---- */

struct ask *ask_new(struct loop *l, struct log *log, const char *const *argv)
{
    struct ask *a = xcalloc(1, sizeof *a);
    *a = (struct ask){
        .loop = l, .log = log, .argv = argv, .program = &signin, .patience_ms = ASK_MS
    };
    a->soon = loop_timer(l, start_waiting, a);
    return a;
}

struct ask *ask_new_socket(struct loop *l, struct log *log, const char *path)
{
    struct ask *a = ask_new(l, log, NULL);
    a->socket = path;
    return a;
}

void ask_set_program(struct ask *a, const struct ask_program *p)
{
    a->program = p;
}

void ask_set_patience(struct ask *a, uint64_t ms)
{
    a->patience_ms = ms;
}

struct ask *ask_free(struct ask *a)
{
    if (!a)
        return NULL;
    struct ask_call *c;
    while ((c = list_take(&a->running)) || (c = list_take(&a->waiting)))
        ask_cancel(c);
    loop_unwatch(a->soon);
    free(a);
    return NULL;
}

void ask_free_p(struct ask **a)
{
    *a = ask_free(*a);
}

struct ask_call *ask_start(struct ask *a, struct str request, ask_done_fn *fn, void *ctx,
                           struct err *e)
{
    if (request.n > a->program->request_max) {
        err_set(e, ERR_TOO_LARGE, "the question is larger than %zu bytes", a->program->request_max);
        return NULL;
    }
    /* Those that can start at once do not wait, they are only still in that list. */
    size_t free_now = a->program->at_once - a->running.n;
    if (a->waiting.n >= ASK_WAITING + free_now) {
        err_set(e, ERR_UNAVAILABLE, "%s", a->program->busy);
        err_hint(e, "try again in a moment");
        return NULL;
    }
    struct ask_call *c = xcalloc(1, sizeof *c);
    *c = (struct ask_call){ .ask = a, .fn = fn, .ctx = ctx, .n = request.n, .fd = -1 };
    c->answer = BUF(ANSWER_MAX);
    c->request = xmalloc(request.n + 1);
    memcpy(c->request, request.p, request.n);
    list_add(&a->waiting, c);
    loop_timer_set(a->soon, 0, 0);
    return c;
}

void ask_cancel(struct ask_call *c)
{
    if (!c)
        return;
    detach(c);
    call_free(c);
}
