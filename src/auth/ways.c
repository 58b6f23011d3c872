#include "auth/ways.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define SETTING_MAX 4096
#define SECRET_MAX 1024
#define RECHECK_MS (INT64_C(3600) * 1000)
#define RECHECK_LEAST_MS 1000
#define OIDC_DAYS 30
#define DAY_MS (INT64_C(86400) * 1000)

enum kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_NUMBER,
    KIND_SECRET /* the settings name a file: KEY_file */
};

#define NEEDED 1u
#define OURS 2u  /* nightshift-signin does not know it */
#define FINDS 4u /* it says where the provider is */

/* way, key, kind, flags, help */
static const struct row {
    enum way way;
    const char *key;
    enum kind kind;
    unsigned flags;
    const char *help;
} rows[] = {
    { WAY_PAM, "service", KIND_TEXT, 0, "file in /etc/pam.d (nightshift)" },
    { WAY_PAM, "title", KIND_TEXT, OURS, "what people read" },
    { WAY_LDAP, "url", KIND_TEXT, NEEDED, "ldaps://HOST or ldap://HOST" },
    { WAY_LDAP, "starttls", KIND_FLAG, 0, "encrypt an ldap:// connection (false)" },
    { WAY_LDAP, "insecure", KIND_FLAG, 0, "allow passwords over plain ldap:// (false)" },
    { WAY_LDAP, "ca_file", KIND_TEXT, 0, "who signed the server's certificate" },
    { WAY_LDAP, "timeout_s", KIND_NUMBER, 0, "seconds (5)" },
    { WAY_LDAP, "bind_dn", KIND_TEXT, 0, "whom we search as (anonymous)" },
    { WAY_LDAP, "bind_password", KIND_SECRET, 0, "its password" },
    { WAY_LDAP, "base", KIND_TEXT, NEEDED, "where people are" },
    { WAY_LDAP, "user_filter", KIND_TEXT, 0, "finds one, %u is the name ((uid=%u))" },
    { WAY_LDAP, "user_attr", KIND_TEXT, 0, "their name here (uid)" },
    { WAY_LDAP, "name_attr", KIND_TEXT, 0, "their full name (cn)" },
    { WAY_LDAP, "mail_attr", KIND_TEXT, 0, "their address (mail)" },
    { WAY_LDAP, "group_base", KIND_TEXT, 0, "where groups are (base)" },
    { WAY_LDAP, "group_filter", KIND_TEXT, 0,
      "finds the groups of %u or of the entry %d ((member=%d))" },
    { WAY_LDAP, "group_attr", KIND_TEXT, 0, "a group's name (cn)" },
    { WAY_LDAP, "nested", KIND_TEXT, 0, "groups in groups: no, yes, memberof or ad (no)" },
    { WAY_LDAP, "title", KIND_TEXT, OURS, "what people read" },
    { WAY_OIDC, "issuer", KIND_TEXT, NEEDED | FINDS, "the provider, exactly as it calls itself" },
    { WAY_OIDC, "client_id", KIND_TEXT, NEEDED, "what it calls us" },
    { WAY_OIDC, "client_secret", KIND_SECRET, 0, "our secret there" },
    { WAY_OIDC, "ca_file", KIND_TEXT, FINDS, "who signed its certificate" },
    { WAY_OIDC, "proxy", KIND_TEXT, FINDS, "how to reach it" },
    { WAY_OIDC, "scopes", KIND_TEXT, 0, "what we ask for (openid profile email)" },
    { WAY_OIDC, "prompt", KIND_TEXT, OURS,
      "what it is to ask anew: consent, login (what it likes)" },
    { WAY_OIDC, "user_claim", KIND_TEXT, 0, "their name here (preferred_username)" },
    { WAY_OIDC, "groups_claim", KIND_TEXT, 0, "their groups (groups)" },
    { WAY_OIDC, "title", KIND_TEXT, OURS, "what the button says" },
};

static const struct {
    const char *name, *title;
    enum person_kind kind;
} table[] = {
#define X(id, name, title, kind) { name, title, kind },
    WAYS(X)
#undef X
};

struct ways {
    bool has[WAY_COUNT];
    char *text[ARRAY_LEN(rows)]; /* NULL: not set */
    bool flag[ARRAY_LEN(rows)];
    struct group_role *group;
    size_t groups;
    int64_t recheck_ms;
    uint64_t oidc_days;
};

const char *way_name(enum way w)
{
    return (size_t)w < ARRAY_LEN(table) ? table[w].name : "?";
}

enum person_kind way_kind(enum way w)
{
    return table[w].kind;
}

static void forget(char *secret)
{
    if (secret)
        sodium_memzero(secret, strlen(secret));
    free(secret);
}

struct ways *ways_free(struct ways *w)
{
    if (!w)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        forget(w->text[i]);
    for (size_t i = 0; i < w->groups; i++)
        free((char *)(uintptr_t)w->group[i].group.p);
    free(w->group);
    free(w);
    return NULL;
}

void ways_free_p(struct ways **w)
{
    *w = ways_free(*w);
}

/* ---- reading ---- */

static int read_secret(const char *path, char **out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct stat st;
    if (stat(path, &st) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot read %s: %s", path, strerror(errno));
        return err_hint(e, "put the secret there, in a file of root's with mode 0600");
    }
    if (st.st_mode & 077) {
        err_set(e, ERR_INVALID, "%s can be read by others (mode %04o)", path,
                (unsigned)(st.st_mode & 07777));
        return err_hint(e, "chmod 0600 %s", path);
    }
    if (file_read(path, SECRET_MAX, &text, e) < 0)
        return -1;
    struct str s = str_trim(buf_str(&text));
    *out = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(*out, s.p, s.n);
    sodium_memzero(text.p, text.n);
    return 0;
}

static int read_row(struct ways *w, size_t i, const struct json *o, struct err *e)
{
    const struct row *r = &rows[i];
    char key[64];
    struct str s = STR("");
    uint64_t n = 0;
    snprintf(key, sizeof key, "%s%s", r->key, r->kind == KIND_SECRET ? "_file" : "");
    if (!json_find(o, key))
        return (r->flags & NEEDED) ? err_set(e, ERR_INVALID, "'%s' is missing: %s", key, r->help)
                                   : 0;
    switch (r->kind) {
    case KIND_FLAG: w->text[i] = xstrdup(""); return json_get_bool(o, key, &w->flag[i], e);
    case KIND_NUMBER:
        if (json_get_u64(o, key, 1000, &n, e) < 0)
            return -1;
        w->text[i] = xcalloc(24, 1);
        snprintf(w->text[i], 24, "%llu", (unsigned long long)n);
        return 0;
    case KIND_TEXT:
    case KIND_SECRET: break;
    }
    if (json_get_str(o, key, SETTING_MAX, &s, e) < 0)
        return -1;
    char *text = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(text, s.p, s.n);
    if (r->kind == KIND_TEXT) {
        w->text[i] = text;
        return 0;
    }
    int rc = read_secret(text, &w->text[i], e);
    free(text);
    return rc;
}

static int read_way(struct ways *w, enum way way, const struct json *o, struct err *e)
{
    const char *keys[ARRAY_LEN(rows)];
    char space[ARRAY_LEN(rows)][64];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].way == way) {
            snprintf(space[n], sizeof space[n], "%s%s", rows[i].key,
                     rows[i].kind == KIND_SECRET ? "_file" : "");
            keys[n] = space[n];
            n++;
        }
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object with its settings is needed");
    if (json_only(o, keys, n, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].way == way && read_row(w, i, o, e) < 0)
            return -1;
    w->has[way] = true;
    return 0;
}

static int read_groups(struct ways *w, const struct json *o, struct err *e)
{
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object is needed: a role for each group");
    w->group = xcalloc(json_members(o) + 1, sizeof *w->group);
    for (struct json_member m = { 0 }; json_next_member(o, &m);) {
        struct str role;
        enum role r;
        if (json_as_str(m.value, 32, &role, e) < 0)
            return err_wrap(e, "%.*s", STR_ARG(m.key));
        if (!role_parse(role, ROLE_ON_SITE, &r)) {
            err_set(e, ERR_INVALID, "'%.*s' is not a role on the site", STR_ARG(role));
            return err_hint(e, "%s", role_words(ROLE_ON_SITE));
        }
        char *name = xcalloc(m.key.n + 1, 1);
        memcpy(name, m.key.p, m.key.n);
        w->group[w->groups++] = (struct group_role){ { name, m.key.n }, r };
    }
    return 0;
}

static int read_recheck(struct ways *w, const struct json *o, struct err *e)
{
    struct str text = STR("");
    if (json_get_str(o, "recheck", 32, &text, e) < 0 ||
        (text.n && parse_duration_ms(text, &w->recheck_ms, e) < 0))
        return -1;
    if (w->recheck_ms >= RECHECK_LEAST_MS && w->recheck_ms <= 30 * DAY_MS)
        return 0;
    err_set(e, ERR_INVALID, "recheck: '%.*s' is not between 1s and 30d", STR_ARG(text));
    return err_hint(e, "leave it out: 1h");
}

static int read_section(struct ways *w, const struct json *o, struct err *e)
{
    static const char *const keys[] = { "local",  "ldap",    "pam",      "oidc",
                                        "groups", "recheck", "oidc_days" };
    if (json_only(o, keys, ARRAY_LEN(keys), e) < 0 ||
        json_get_bool(o, "local", &w->has[WAY_LOCAL], e) < 0 || read_recheck(w, o, e) < 0 ||
        json_get_u64(o, "oidc_days", 10000, &w->oidc_days, e) < 0)
        return -1;
    for (int k = WAY_LOCAL + 1; k < WAY_COUNT; k++) {
        const struct json *part = json_find(o, way_name((enum way)k));
        if (part && read_way(w, (enum way)k, part, e) < 0)
            return err_wrap(e, "%s", way_name((enum way)k));
    }
    const struct json *groups = json_find(o, "groups");
    if (groups && read_groups(w, groups, e) < 0)
        return err_wrap(e, "groups");
    return 0;
}

struct ways *ways_read(const struct json *section, struct err *e)
{
    AUTO(ways_free_p) struct ways *w = xcalloc(1, sizeof *w);
    w->has[WAY_LOCAL] = true;
    w->recheck_ms = RECHECK_MS;
    w->oidc_days = OIDC_DAYS;
    if (section && read_section(w, section, e) < 0) {
        err_wrap(e, "signin");
        return NULL;
    }
    return TAKE(w);
}

/* ---- using ---- */

bool ways_has(const struct ways *w, enum way way)
{
    return w->has[way];
}

const char *ways_setting(const struct ways *w, enum way way, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].way == way && rows[i].kind == KIND_TEXT && strcmp(rows[i].key, key) == 0)
            return w->text[i];
    return NULL;
}

const char *ways_title(const struct ways *w, enum way way)
{
    const char *title = ways_setting(w, way, "title");
    return title ? title : table[way].title;
}

int64_t ways_recheck_ms(const struct ways *w)
{
    return w->recheck_ms;
}

int64_t ways_provider_ms(const struct ways *w)
{
    return (int64_t)w->oidc_days * DAY_MS;
}

const struct group_role *ways_groups(const struct ways *w, size_t *out_n)
{
    *out_n = w->groups;
    return w->group;
}

void ways_ask(const struct ways *w, enum way way, const char *verb, struct json_out *out)
{
    bool finds = strcmp(verb, "oidc_discover") == 0; /* the provider alone */
    json_begin(out, NULL, '{');
    json_put_str(out, "do", str_of(verb));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].way != way || (rows[i].flags & OURS) || !w->text[i] ||
            (finds && !(rows[i].flags & FINDS)))
            continue;
        if (rows[i].kind == KIND_FLAG)
            json_put_bool(out, rows[i].key, w->flag[i]);
        else if (rows[i].kind == KIND_NUMBER)
            json_put_raw(out, rows[i].key, str_of(w->text[i]));
        else
            json_put_str(out, rows[i].key, str_of(w->text[i]));
    }
    if (way == WAY_PAM && !ways_setting(w, way, "service"))
        json_put_str(out, "service", STR("nightshift"));
}

void ways_print_reference(struct buf *out)
{
    buf_addz(out, "| setting | meaning |\n|---|---|\n"
                  "| `local` | people may have a password here (true) |\n"
                  "| `groups` | roles on the site for groups: `{gpu-admins: admin}` |\n"
                  "| `recheck` | how often those who are signed in are looked up (1h) |\n"
                  "| `oidc_days` | tokens of people of the OpenID provider are good for so many "
                  "days after their last sign-in (30); 0: for as long as they say |\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        buf_printf(out, "| `%s.%s%s` | %s%s |\n", way_name(rows[i].way), rows[i].key,
                   rows[i].kind == KIND_SECRET ? "_file" : "", rows[i].help,
                   (rows[i].flags & NEEDED) ? "; needed" : "");
}
