/* What all ways of signing in share: asking nightshift-signin, who somebody is here, and their session. */
#include "api/door.h"
#include "api/directory.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "api/audit.h"
#include "base/parse.h"
#include "store/directory.h"

#define THROTTLE_ENTRIES 8192
#define KNOWN_MS (INT64_C(90) * 86400 * 1000)
#define KNOWN_COOKIE "nightshift_known"
#define PERSON_JSON_MAX (1u << 20)
#define AGENT_MAX 100 /* bytes of a browser's name that are kept */

/* ---- a request that waits for nightshift-signin ---- */

struct waiting {
    struct call call;
    door_fn *fn;
    void *ctx;
    struct loop_watch *later; /* what is told is known, and it is too early */
    struct err why;
    struct waiting *prev, *next;
};

static void waiting_free(struct waiting *w)
{
    struct door *d = w->call.api->door;
    *(w->prev ? &w->prev->next : &d->waiting) = w->next;
    if (w->next)
        w->next->prev = w->prev;
    loop_unwatch(w->later);
    free(w);
}

static void refuse(const struct call *c, const struct err *e)
{
    if (c->status)
        http_reply_status(c->rq, c->status, e, c->field);
    else
        http_reply_error(c->rq, e, c->field);
}

static void on_later(void *ctx)
{
    struct waiting *w = ctx;
    refuse(&w->call, &w->why);
    waiting_free(w);
}

static void on_answer(void *ctx, const struct json *answer, const struct err *why)
{
    struct waiting *w = ctx;
    struct call c = w->call;
    struct err e = { 0 };
    bool refused = w->fn(&c, w->ctx, answer, why, &e) < 0;
    uint64_t now_ms = (uint64_t)clock_mono_ns() / 1000000;
    if (refused && c.tell_ms > now_ms) {
        w->call = c;
        w->why = e;
        w->later = loop_timer(c.api->config.loop, on_later, w);
        loop_timer_set(w->later, c.tell_ms - now_ms, 0);
        return;
    }
    if (refused)
        refuse(&c, &e);
    waiting_free(w);
}

struct ask *door_whom(const struct door *d, enum way way)
{
    const char *socket = d->api->config.signin_socket;
    return way == WAY_PAM && d->pam && access(socket, F_OK) == 0 ? d->pam : d->ask;
}

int door_ask(struct call *c, enum way way, struct buf *question, door_fn *fn, void *ctx,
             struct err *e)
{
    struct door *d = c->api->door;
    struct waiting *w = xcalloc(1, sizeof *w);
    *w = (struct waiting){ .call = *c, .fn = fn, .ctx = ctx, .next = d->waiting };
    if (w->next)
        w->next->prev = w;
    d->waiting = w;
    bool asked = buf_check(question, e) == 0 &&
                 ask_start(door_whom(d, way), buf_str(question), on_answer, w, e) != NULL;
    if (question->p)
        sodium_memzero(question->p, question->n);
    if (!asked)
        waiting_free(w);
    return asked ? 0 : -1;
}

/* ---- how soon ---- */

/* An address without its port; of IPv6 the network that one household has. */
static uint64_t place_of(const char *address)
{
    char text[64];
    struct in6_addr six;
    snprintf(text, sizeof text, "%s", address);
    char *colon = strrchr(text, ':');
    if (colon && (strchr(text, ':') == colon || text[0] == '['))
        *colon = '\0';
    char *bare = text[0] == '[' ? text + 1 : text;
    bare[strcspn(bare, "]")] = '\0';
    if (inet_pton(AF_INET6, bare, &six) == 1)
        return str_hash((struct str){ (const char *)six.s6_addr, 8 });
    return str_hash(str_of(bare));
}

uint64_t door_place(const struct call *c)
{
    const struct http_peer *peer = http_peer(c->rq);
    return peer->local ? str_hash((struct str){ (const char *)&peer->uid, sizeof peer->uid })
                       : place_of(peer->address);
}

static void known_mac(const struct door *d, struct str user, int64_t until_ms, char out[static 65])
{
    uint8_t mac[32];
    AUTO(buf_free) struct buf text = BUF(1024);
    buf_printf(&text, "%lld %.*s", (long long)until_ms, STR_ARG(user));
    crypto_generichash(mac, sizeof mac, (const unsigned char *)text.p, text.n, d->key,
                       sizeof d->key);
    sodium_bin2hex(out, 65, mac, sizeof mac);
}

/* "UNTIL.MAC": this user has signed in in this browser before. */
static bool is_known(struct call *c, struct str user)
{
    const char *cookie = http_cookie(c->rq, KNOWN_COOKIE);
    struct str until, mac;
    int64_t until_ms;
    struct err none;
    char want[65];
    if (!cookie || !str_cut(str_of(cookie), '.', &until, &mac) || mac.n != 64 ||
        parse_i64(until, 0, INT64_MAX, &until_ms, &none) < 0 ||
        until_ms < clock_now_ms(&c->api->config.clock))
        return false;
    known_mac(c->api->door, user, until_ms, want);
    return sodium_memcmp(want, mac.p, 64) == 0;
}

struct attempt door_attempt(struct call *c, struct str user)
{
    const char *cookie = http_cookie(c->rq, KNOWN_COOKIE);
    struct attempt a = { .user = str_hash(user), .known = user.n && is_known(c, user) };
    a.place = a.known ? str_hash(str_of(cookie)) : door_place(c);
    return a;
}

int door_may_try(struct call *c, const struct attempt *a, struct err *e)
{
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    int64_t wait_ms = throttle_wait_ms(c->api->door->throttle, a, now_ms);
    if (wait_ms == 0)
        return 0;
    long long s = (long long)(wait_ms + 999) / 1000;
    c->status = 429;
    http_add_header(c->rq, "Retry-After", arena_printf(http_arena(c->rq), "%lld", s));
    err_set(e, ERR_UNAVAILABLE, "too many attempts failed: try again in %lld seconds", s);
    return err_hint(e, "a browser in which you have signed in before does not have to wait for "
                       "what others do");
}

int door_begin_try(struct call *c, const struct attempt *a, struct err *e)
{
    if (door_may_try(c, a, e) < 0)
        return -1;
    throttle_failed(c->api->door->throttle, a, clock_now_ms(&c->api->config.clock));
    return 0;
}

/* ---- who ---- */

static struct str text_of(const struct json *o, const char *key)
{
    struct str s = STR("");
    struct err none;
    return json_get_str(o, key, 1024, &s, &none) == 0 ? s : STR("");
}

/* Names that mean somebody to the machine itself are not given to people from elsewhere. */
static int check_name_is_free(struct call *c, enum way way, struct str name, struct err *e)
{
    bool machine =
        auth_is_root(c->api->config.auth, name) || (name.n > 4 && memcmp(name.p, "uid-", 4) == 0);
    if (way == WAY_LOCAL || !machine)
        return 0;
    err_set(e, ERR_DENIED, "the name '%.*s' belongs to the machine itself", STR_ARG(name));
    return err_hint(e, "the administrator can choose another claim or attribute for names");
}

static int check_same_person(struct call *c, enum way way, const struct person *x,
                             struct str subject, struct err *e)
{
    (void)c;
    if (x->disabled) {
        err_set(e, ERR_DENIED, "the account '%s' is disabled", x->name);
        return err_hint(e, "ask an administrator");
    }
    if (x->kind != PERSON_MACHINE && x->kind != way_kind(way)) {
        err_set(e, ERR_DENIED, "'%s' signs in another way here (%s)", x->name,
                person_kind_name(x->kind));
        return err_hint(e, "an administrator can change that: nightshift users set NAME --kind %s",
                        person_kind_name(way_kind(way)));
    }
    if (way == WAY_OIDC && x->subject[0] && !str_is(subject, x->subject)) {
        err_set(e, ERR_DENIED, "the name '%s' belongs to somebody else here", x->name);
        return err_hint(e, "ask an administrator: two people have the same name at the provider");
    }
    return 0;
}

static void take_groups(struct person *x, const struct json *answer)
{
    const struct json *list = json_find(answer, "groups");
    struct str group[PERSON_GROUPS_MAX];
    struct err none;
    size_t n = 0;
    for (const struct json *v = json_is_array(list) ? json_first(list) : NULL;
         v && n < PERSON_GROUPS_MAX; v = json_next(list, v))
        if (json_as_str(v, GROUP_NAME_MAX, &group[n], &none) == 0)
            n++;
    person_set_groups(x, group, n);
}

void door_update(struct api *a, struct person *x, const struct json *answer)
{
    AUTO(buf_free) struct buf before = BUF(PERSON_JSON_MAX), after = BUF(PERSON_JSON_MAX);
    person_write(x, &before);
    if (text_of(answer, "name").n)
        person_set(&x->full_name, text_of(answer, "name"));
    if (text_of(answer, "mail").n)
        person_set(&x->mail, text_of(answer, "mail"));
    take_groups(x, answer);
    x->gone = false;
    person_write(x, &after);
    if (x->kept && str_eq(buf_str(&before), buf_str(&after)))
        return;
    keep_person(a, x);
    streams_end_of(a, str_of(x->name)); /* with other groups they may do less */
}

int door_welcome(struct call *c, enum way way, const struct json *answer, struct person **out,
                 struct err *e)
{
    struct people *p = auth_people(c->api->config.auth);
    const char *issuer = ways_setting(c->api->door->ways, WAY_OIDC, "issuer");
    struct str name = text_of(answer, "user"), sub = text_of(answer, "subject");
    struct str subject = STR("");
    if (way == WAY_OIDC && sub.n)
        subject =
            str_of(arena_printf(http_arena(c->rq), "%s|%.*s", issuer ? issuer : "", STR_ARG(sub)));
    const struct person *same = people_of_subject(p, subject);
    if (same) /* whatever the provider calls them now */
        name = str_of(same->name);
    if (person_check_name(name, e) < 0 || check_name_is_free(c, way, name, e) < 0)
        return -1;
    const struct person *was = people_find(p, name);
    if (was && check_same_person(c, way, was, subject, e) < 0)
        return -1;
    struct person *x = people_make(p, name);
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    x->created_ms = x->created_ms ? x->created_ms : now_ms;
    x->seen_ms = now_ms;
    x->kind = way_kind(way);
    if (subject.n)
        person_set(&x->subject, subject);
    if (way != WAY_LOCAL)
        door_update(c->api, x, answer);
    keep_person(c->api, x);
    *out = x;
    return 0;
}

/* ---- letting in ---- */

void door_set_cookie(struct call *c, const char *name, const char *text, int64_t for_ms)
{
    http_add_header(c->rq, "Set-Cookie",
                    arena_printf(http_arena(c->rq),
                                 "%s=%s; HttpOnly; SameSite=Lax; Path=/; Max-Age=%lld%s", name,
                                 text, (long long)(for_ms / 1000), is_secure(c) ? "; Secure" : ""));
}

struct entering {
    struct call call;
    char cookie[KEY_TEXT_BYTES];
    char user[PERSON_NAME_MAX + 1];
    loop_fn *answer;
    void *ctx;
};

static void on_in(void *ctx)
{
    struct entering *in = ctx;
    struct call *c = &in->call;
    int64_t until_ms = clock_now_ms(&c->api->config.clock) + KNOWN_MS;
    char mac[65];
    known_mac(c->api->door, str_of(in->user), until_ms, mac);
    door_set_cookie(c, "nightshift", in->cookie, c->api->config.session_ms);
    door_set_cookie(c, KNOWN_COOKIE,
                    arena_printf(http_arena(c->rq), "%lld.%s", (long long)until_ms, mac), KNOWN_MS);
    sodium_memzero(in->cookie, sizeof in->cookie);
    in->answer(in->ctx);
}

int door_let_in(struct call *c, const struct person *x, const struct auth_key *like,
                struct door_then then, struct err *e)
{
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    const char *agent = http_header(c->rq, "User-Agent");
    struct entering *in = arena_new(http_arena(c->rq), struct entering);
    struct auth_key k = *like;
    k.name = arena_printf(http_arena(c->rq), "%s, %s from %s", like->name,
                          agent ? arena_printf(http_arena(c->rq), "%.*s", AGENT_MAX, agent)
                                : "a program",
                          http_peer(c->rq)->address);
    k.user = x->name;
    k.created_ms = k.used_ms = now_ms;
    k.expires_ms = now_ms + c->api->config.session_ms;
    if (like->expires_ms)
        k.expires_ms = MIN(k.expires_ms, like->expires_ms);
    *in = (struct entering){ .call = *c, .answer = then.fn, .ctx = then.ctx };
    snprintf(in->user, sizeof in->user, "%s", x->name);
    auth_make_key(SESSION_PREFIX, in->cookie);
    auth_hash_key(str_of(in->cookie), k.hash);
    if (auth_put_key(c->api->config.auth, KEY_SESSION, &k, e) < 0)
        return -1;
    keep_key(c->api, KEY_SESSION, &k);
    snprintf(c->who.user, sizeof c->who.user, "%s", x->name);
    c->who.via = VIA_SESSION;
    api_audit(c, &(struct audit_change){ .what = AUDIT_SIGNIN,
                                         .subject = str_of(c->who.user),
                                         .reason = str_of(k.name) });
    control_commit(c->api->config.control, (struct control_done){ on_in, in });
    return 0;
}

bool door_next_is_ours(struct str next)
{
    if (next.n == 0 || next.n > NEXT_MAX || next.p[0] != '/' || (next.n > 1 && next.p[1] == '/'))
        return false;
    for (size_t i = 0; i < next.n; i++)
        if ((unsigned char)next.p[i] <= ' ' || next.p[i] == '\\' || next.p[i] == 127)
            return false;
    return true;
}

/* ---- opening and closing ---- */

/* Kept, so that browsers stay known over a restart. */
static int load_key(struct door *d, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_entry *row;
    size_t n, len = 0;
    if (store_entries(d->api->config.store, DIRECTORY_STATE, &a, &row, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (str_is(row[i].name, "door-key") && row[i].body.n == 66 &&
            sodium_hex2bin(d->key, sizeof d->key, row[i].body.p + 1, 64, NULL, &len, NULL) == 0 &&
            len == sizeof d->key)
            return 0;
    char hex[65], body[67];
    randombytes_buf(d->key, sizeof d->key);
    sodium_bin2hex(hex, sizeof hex, d->key, sizeof d->key);
    snprintf(body, sizeof body, "\"%s\"", hex);
    store_put_entry(control_batch(d->api->config.control), DIRECTORY_STATE,
                    &(struct store_entry){ STR("door-key"), str_of(body) });
    control_commit(d->api->config.control, (struct control_done){ 0 });
    return 0;
}

int door_open(struct api *a, struct err *e)
{
    struct door *d = xcalloc(1, sizeof *d);
    size_t n;
    a->door = d;
    d->api = a;
    d->ways = a->config.ways;
    d->throttle = throttle_new(THROTTLE_ENTRIES);
    d->ask = ask_new(a->config.loop, a->config.log, a->config.signin_argv);
    if (a->config.signin_socket)
        d->pam = ask_new_socket(a->config.loop, a->config.log, a->config.signin_socket);
    auth_set_provider_ms(a->config.auth, ways_provider_ms(d->ways));
    const struct group_role *g = ways_groups(d->ways, &n);
    people_set_site_groups(auth_people(a->config.auth), g, n);
    if (!d->ask || load_key(d, e) < 0)
        return -1;
    recheck_open(d);
    setup_open(d);
    return 0;
}

void door_close(struct api *a)
{
    struct door *d = a->door;
    struct err e;
    if (!d)
        return;
    recheck_close(d);
    ask_free(d->ask);
    ask_free(d->pam);
    err_set(&e, ERR_UNAVAILABLE, "the server is being stopped");
    err_hint(&e, "sign in again in a moment");
    for (struct waiting *w = d->waiting, *next; w; w = next) {
        next = w->next;
        http_reply_error(w->call.rq, &e, NULL);
        free(w);
    }
    sso_free(d);
    login_free(d);
    throttle_free(d->throttle);
    sodium_memzero(d->key, sizeof d->key);
    free(d);
    a->door = NULL;
}
