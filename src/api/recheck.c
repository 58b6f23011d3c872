/* People who signed in elsewhere are looked up there while they have sessions or tokens: who is gone there is gone here,
 * and whose groups changed has other roles at once.  With each round sessions that are over go, and when tokens were last used
 * is written down.
 *
 * Round by round: those to look up are gathered, and asked about one after the other, spread over the time that a
 * round has.  An answer that says nothing about the person changes nothing. */
#include <sodium.h>
#include <stdio.h>

#include "api/directory.h"
#include "api/door.h"
#include "base/map.h"

#define FIRST_MS 10000 /* after a start: the daemon may have been away for days */
#define BETWEEN_MS 20  /* two questions are apart at least */
#define GRANTS_MAX                                                                                 \
    4096 /* people of the provider who can be looked up; of others the session ends in time */
#define GRANT_TEXT_MAX 8192

/* What the provider gave to ask again with.  It never touches the disk. */
struct grant {
    char *user, *subject, *token;
    struct grant *next;
};

struct recheck {
    struct door *door;
    struct loop_watch *timer;
    struct ask_call *asking; /* NULL: nobody is asked about */
    struct names round;      /* whom this round asks about, */
    size_t at;               /* and who is next */
    int64_t round_ms;        /* when it began */
    struct grant *grants;
    size_t n_grants;
    enum way way; /* of the question */
    char user[PERSON_NAME_MAX + 1];
};

static const struct {
    enum person_kind kind;
    enum way way;
    const char *verb;
} looks[] = {
    { PERSON_LDAP, WAY_LDAP, "ldap_look" },
    { PERSON_PAM, WAY_PAM, "pam_look" },
    { PERSON_OIDC, WAY_OIDC, "oidc_refresh" },
};

/* ---- what the provider gave ---- */

static char *copy(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

static void forget(char *secret)
{
    sodium_memzero(secret, strlen(secret));
    free(secret);
}

static struct grant **find_grant(struct recheck *r, const char *user)
{
    struct grant **at = &r->grants;
    while (*at && strcmp((*at)->user, user) != 0)
        at = &(*at)->next;
    return at;
}

static void drop_grant(struct recheck *r, struct grant **at)
{
    struct grant *g = *at;
    if (!g)
        return;
    *at = g->next;
    forget(g->token);
    free(g->user);
    free(g->subject);
    free(g);
    r->n_grants--;
}

/* Without offline_access what it gives ends with the browser's session there: that would not say that they are gone. */
static bool asks_offline(const struct ways *w)
{
    const char *scopes = ways_setting(w, WAY_OIDC, "scopes");
    struct str rest = str_of(scopes ? scopes : ""), word;
    while (rest.n) {
        str_cut(rest, ' ', &word, &rest);
        if (str_is(word, "offline_access"))
            return true;
    }
    return false;
}

void recheck_keep(struct door *d, const struct person *x, const struct json *answer)
{
    struct recheck *r = d->recheck;
    struct str token = STR(""), subject = STR("");
    struct err none;
    if (!r || json_get_str(answer, "refresh_token", GRANT_TEXT_MAX, &token, &none) < 0 ||
        !token.n || json_get_str(answer, "subject", GRANT_TEXT_MAX, &subject, &none) < 0 ||
        !subject.n || !asks_offline(d->ways))
        return;
    drop_grant(r, find_grant(r, x->name));
    if (r->n_grants >= GRANTS_MAX)
        return;
    struct grant *g = xcalloc(1, sizeof *g);
    *g = (struct grant){
        .user = xstrdup(x->name), .subject = copy(subject), .token = copy(token), .next = r->grants
    };
    r->grants = g;
    r->n_grants++;
}

/* ---- a round ---- */

static int look_of(enum person_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(looks); i++)
        if (looks[i].kind == kind)
            return (int)i;
    return -1;
}

static bool is_looked_up(struct recheck *r, const struct person *x)
{
    int i = x && !x->disabled && !x->gone ? look_of(x->kind) : -1;
    return i >= 0 && ways_has(r->door->ways, looks[i].way) &&
           (x->kind != PERSON_OIDC || *find_grant(r, x->name));
}

static void begin_round(struct recheck *r)
{
    struct auth *auth = r->door->api->config.auth;
    const struct auth_key *k;
    int64_t since_ms = r->round_ms;
    names_free(&r->round);
    r->round = (struct names){ 0 };
    r->at = 0;
    r->round_ms = clock_now_ms(&r->door->api->config.clock);
    sessions_drop_over(r->door->api);
    for (int kind = 0; kind < KEY_KIND_COUNT; kind++)
        for (size_t i = 0; (k = auth_key_at(auth, (enum key_kind)kind, i)); i++) {
            if (kind == KEY_TOKEN && k->used_ms >= since_ms) /* sessions: when they are renewed */
                keep_key(r->door->api, KEY_TOKEN, k);
            if (names_find(&r->round, str_of(k->user)) == NAME_NONE &&
                is_looked_up(r, people_find(auth_people(auth), str_of(k->user))))
                names_intern(&r->round, str_of(k->user));
        }
    control_commit(r->door->api->config.control, (struct control_done){ 0 });
}

static void wait(struct recheck *r)
{
    int64_t ms = ways_recheck_ms(r->door->ways) / (int64_t)MAX(r->round.n, (size_t)1);
    loop_timer_set(r->timer, (uint64_t)MAX(ms, (int64_t)BETWEEN_MS), 0);
}

/* ---- an answer ---- */

static void is_gone(struct recheck *r, struct person *x, const char *why)
{
    struct api *a = r->door->api;
    struct audit_row row = { .t_ms = clock_now_ms(&a->config.clock),
                             .who = STR("system"),
                             .via = STR("system"),
                             .what = str_of(audit_verb_name(AUDIT_USER_GONE)),
                             .subject = str_of(x->name),
                             .reason = str_of(why) };
    x->gone = true;
    keep_person(a, x);
    control_audit(a->config.control, &row);
    drop_keys_of(a, KEY_SESSION, str_of(x->name));
    drop_grant(r, find_grant(r, x->name));
    log_event(a->config.log, LOG_WARN_, "user.gone", "user=%s way=%s why=%s", x->name,
              way_name(r->way), why);
    streams_end_of(a, str_of(x->name));
}

/* That, and nothing else, says that there is no such person any more. */
static bool says_gone(const struct err *why)
{
    static const char *const reasons[] = { "unknown_user", "account_expired", "account_locked",
                                           "gone" };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (why->code == ERR_DENIED && strcmp(why->field, reasons[i]) == 0)
            return true;
    return false;
}

static void on_looked(void *ctx, const struct json *answer, const struct err *why)
{
    struct recheck *r = ctx;
    struct api *a = r->door->api;
    struct people *p = auth_people(a->config.auth);
    const struct person *found = people_find(p, str_of(r->user));
    r->asking = NULL;
    if (is_looked_up(r, found)) { /* nobody said otherwise meanwhile */
        struct person *x = people_make(p, str_of(r->user));
        if (why && says_gone(why))
            is_gone(r, x, why->field);
        else if (why)
            log_event(a->config.log, LOG_WARN_, "recheck.failed", "user=%s way=%s why=%s", r->user,
                      way_name(r->way), why->msg);
        else
            door_update(a, x, answer);
        if (!why && r->way == WAY_OIDC)
            recheck_keep(r->door, x, answer);
        control_commit(a->config.control, (struct control_done){ 0 });
    }
    wait(r);
}

static void ask_about(struct recheck *r, const struct person *x)
{
    AUTO(buf_free) struct buf q = BUF(64 << 10);
    struct json_out w = { .b = &q };
    int i = look_of(x->kind);
    struct err e;
    snprintf(r->user, sizeof r->user, "%s", x->name);
    r->way = looks[i].way;
    ways_ask(r->door->ways, r->way, looks[i].verb, &w);
    if (r->way == WAY_OIDC) {
        const struct grant *g = *find_grant(r, x->name);
        if (!g) { /* it went in the meantime */
            wait(r);
            return;
        }
        json_put_str(&w, "refresh_token", str_of(g->token));
        json_put_str(&w, "subject", str_of(g->subject));
    } else {
        json_put_str(&w, "user", str_of(x->name));
    }
    json_end(&w, '}');
    if (buf_check(&q, &e) == 0)
        r->asking = ask_start(door_whom(r->door, r->way), buf_str(&q), on_looked, r, &e);
    if (q.p)
        sodium_memzero(q.p, q.n);
    if (!r->asking) /* many sign in just now: the next round asks */
        wait(r);
}

static void on_time(void *ctx)
{
    struct recheck *r = ctx;
    const struct people *p = auth_people(r->door->api->config.auth);
    if (r->at >= r->round.n)
        begin_round(r);
    while (r->at < r->round.n) {
        const struct person *x = people_find(p, str_of(names_get(&r->round, (uint32_t)r->at++)));
        if (is_looked_up(r, x)) {
            ask_about(r, x);
            return;
        }
    }
    wait(r);
}

void recheck_open(struct door *d)
{
    int64_t first_ms = MIN(ways_recheck_ms(d->ways), (int64_t)FIRST_MS);
    struct recheck *r = xcalloc(1, sizeof *r);
    r->door = d;
    r->round_ms = clock_now_ms(&d->api->config.clock);
    r->timer = loop_timer(d->api->config.loop, on_time, r);
    loop_timer_set(r->timer, (uint64_t)first_ms, 0);
    d->recheck = r;
}

void recheck_close(struct door *d)
{
    struct recheck *r = d->recheck;
    if (!r)
        return;
    ask_cancel(r->asking);
    loop_unwatch(r->timer);
    while (r->grants)
        drop_grant(r, &r->grants);
    names_free(&r->round);
    free(r);
    d->recheck = NULL;
}
