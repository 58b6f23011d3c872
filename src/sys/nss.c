#include "sys/nss.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/parse.h"
#include "sys/aside.h"
#include "sys/clock.h"

#define FRESH_MS UINT64_C(2000)
#define STALE_MS UINT64_C(60000) /* so long they are who they were while it is asked again */
#define AWAY_MS                                                                                    \
    UINT64_C(3600000) /* and so long while nobody answers: a number may become another's */
#define LIMIT_S 10u
#define ASKS_MAX 8u      /* copies at once; what is asked next begins when one has ended */
#define KNOWN_MAX 20000u /* then all is forgotten */
#define LISTENERS_MAX 2u
#define KEY_MAX 280

/* What a copy says: the same program reads it. */
struct said {
    int told;
    struct err e;
    struct passwd_account account;
};

struct known {
    struct nss *n;
    char key[KEY_MAX];              /* "u1001", "nana" */
    int told;                       /* NSS_LATER: nothing yet */
    uint64_t told_ms, here_ms;      /* monotonic; of NSS_HERE */
    struct passwd_account *account; /* NSS_HERE */
    struct err e;                   /* NSS_AWAY */
    struct aside *asking;
};

struct listener {
    loop_fn *fn;
    void *ctx;
};

struct nss {
    struct nss_config config;
    struct names keys;
    struct known **known; /* by the number of its key */
    size_t cap, asking;
    struct listener listener[LISTENERS_MAX];
    size_t listeners;
};

static uint64_t mono_ms(void)
{
    return (uint64_t)clock_mono_ns() / 1000000;
}

static int look_here(const struct nss_question *q, struct passwd_account *out, struct err *e)
{
    return q->name ? passwd_by_name(q->name, out, e) : passwd_by_uid(q->uid, out, e);
}

struct nss *nss_new(const struct nss_config *c)
{
    struct nss *n = xcalloc(1, sizeof *n);
    n->config = *c;
    n->config.look = c->look ? c->look : look_here;
    n->config.fresh_ms = c->fresh_ms ? c->fresh_ms : FRESH_MS;
    n->config.limit_s = c->limit_s ? c->limit_s : LIMIT_S;
    return n;
}

static void forget_all(struct nss *n)
{
    for (size_t i = 0; i < n->keys.n; i++) {
        aside_free(n->known[i]->asking);
        free(n->known[i]->account);
        free(n->known[i]);
    }
    names_free(&n->keys);
    n->keys = (struct names){ 0 };
    n->asking = 0;
}

struct nss *nss_free(struct nss *n)
{
    if (!n)
        return NULL;
    forget_all(n);
    free(n->known);
    free(n);
    return NULL;
}

void nss_listen(struct nss *n, loop_fn *fn, void *ctx)
{
    if (n->listeners == LISTENERS_MAX)
        abort();
    n->listener[n->listeners++] = (struct listener){ fn, ctx };
}

/* ---- asking ---- */

static void look_in_the_copy(void *ctx, struct buf *out)
{
    struct known *k = ctx;
    struct said said = { 0 };
    uint64_t uid = 0;
    struct nss_question q = { .name = k->key[0] == 'n' ? k->key + 1 : NULL };
    if (!q.name && parse_u64(str_of(k->key + 1), UINT32_MAX, &uid, &said.e) < 0)
        abort(); /* we wrote it */
    q.uid = (uint32_t)uid;
    said.told = k->n->config.look(&q, &said.account, &said.e);
    buf_add(out, (struct str){ (const char *)&said, sizeof said });
}

/* Nobody is lost by an answer that did not come: they stay who they were. */
static void take_answer(struct known *k, const struct said *said)
{
    k->told_ms = mono_ms();
    if (said->told == NSS_AWAY && k->told == NSS_HERE && k->told_ms - k->here_ms < AWAY_MS)
        return;
    free(TAKE(k->account));
    k->told = said->told;
    k->e = said->e;
    if (said->told == NSS_HERE) {
        k->account = xmalloc(sizeof *k->account);
        *k->account = said->account;
        k->here_ms = k->told_ms;
    }
}

static void on_answer(void *ctx, const struct str *answer)
{
    struct known *k = ctx;
    struct nss *n = k->n;
    struct said said = { .told = NSS_AWAY };
    if (answer && answer->n == sizeof said) {
        memcpy(&said, answer->p, sizeof said);
    } else {
        err_set(&said.e, ERR_UNAVAILABLE,
                "this machine's accounts cannot be looked up: no answer in %u s",
                n->config.limit_s);
        err_hint(&said.e, "try again; if it stays so: getent passwd, on the server's machine");
    }
    k->asking = aside_free(k->asking);
    n->asking--;
    take_answer(k, &said);
    for (size_t i = 0; i < n->listeners; i++)
        n->listener[i].fn(n->listener[i].ctx);
}

/* Where no copy can be made that is the answer, unless another ends and it can be tried again. */
static void ask(struct nss *n, struct known *k)
{
    struct said said = { .told = NSS_AWAY };
    if (k->asking || n->asking == ASKS_MAX)
        return;
    k->asking = aside_begin(&(struct aside_ask){ .loop = n->config.loop,
                                                 .work = look_in_the_copy,
                                                 .done = on_answer,
                                                 .ctx = k,
                                                 .limit_s = n->config.limit_s,
                                                 .answer_max = sizeof said },
                            &said.e);
    n->asking += k->asking != NULL;
    if (!k->asking && n->asking == 0)
        take_answer(k, &said);
}

static struct known *find(struct nss *n, const char *key)
{
    uint32_t number = names_find(&n->keys, str_of(key));
    if (number != NAME_NONE)
        return n->known[number];
    if (n->keys.n >= KNOWN_MAX && n->asking == 0)
        forget_all(n);
    if (n->keys.n >= KNOWN_MAX)
        return NULL;
    number = names_intern(&n->keys, str_of(key));
    vec_grow(n->known, number, n->cap);
    struct known *k = n->known[number] = xcalloc(1, sizeof *k);
    k->n = n;
    k->told = NSS_LATER;
    snprintf(k->key, sizeof k->key, "%s", key);
    return k;
}

static int tell(struct nss *n, const char *key, struct passwd_account *out, struct err *e)
{
    struct known *k = find(n, key);
    err_set(e, ERR_UNAVAILABLE, "this machine's accounts are being looked up");
    err_hint(e, "try again in a moment");
    if (!k)
        return NSS_AWAY;
    uint64_t now_ms = mono_ms();
    bool fresh = k->told != NSS_LATER && now_ms - k->told_ms < n->config.fresh_ms;
    bool stale = k->told == NSS_HERE && now_ms - k->here_ms < STALE_MS;
    if (!fresh)
        ask(n, k);
    if (!fresh && !stale && n->asking)
        return NSS_LATER;
    if (k->told == NSS_HERE)
        *out = *k->account;
    if (k->told == NSS_AWAY)
        *e = k->e;
    return k->told;
}

int nss_by_uid(struct nss *n, uint32_t uid, struct passwd_account *out, struct err *e)
{
    char key[KEY_MAX];
    snprintf(key, sizeof key, "u%u", uid);
    return n ? tell(n, key, out, e) : passwd_by_uid(uid, out, e);
}

int nss_by_name(struct nss *n, const char *name, struct passwd_account *out, struct err *e)
{
    char key[KEY_MAX];
    if (snprintf(key, sizeof key, "n%s", name) >= KEY_MAX)
        return NSS_NONE;
    return n ? tell(n, key, out, e) : passwd_by_name(name, out, e);
}
