#include "cli/keyring.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/json.h"
#include "sys/file.h"

#define FILE_MAX (1u << 20)
#define ENTRIES_MAX 100

struct keyring {
    struct keyring_entry at[ENTRIES_MAX];
    size_t n;
    const char *last; /* NULL: none */
};

const char *keyring_path(struct arena *a)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/')
        return arena_printf(a, "%s/nightshift/servers.json", config);
    return home && home[0] == '/' ? arena_printf(a, "%s/.config/nightshift/servers.json", home)
                                  : NULL;
}

static const char *text_of(const struct json *o, const char *key, struct arena *a)
{
    struct str s = STR("");
    struct err none;
    if (json_get_str(o, key, 4096, &s, &none) < 0)
        s = STR("");
    return arena_strndup(a, s.p, s.n);
}

/* What cannot be read is as if it was not there. */
static void read_ring(struct arena *a, struct keyring *out)
{
    AUTO(buf_free) struct buf text = BUF(0);
    const char *path = keyring_path(a);
    struct err none;
    *out = (struct keyring){ 0 };
    if (!path || file_read(path, FILE_MAX, &text, &none) < 0)
        return;
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&text), &none);
    const struct json *o = d ? json_root(d) : NULL, *list = d ? json_find(o, "servers") : NULL;
    for (struct json_member m = { 0 };
         json_is_object(list) && out->n < ENTRIES_MAX && json_next_member(list, &m);) {
        struct keyring_entry *k = &out->at[out->n++];
        *k = (struct keyring_entry){ .server = arena_strndup(a, m.key.p, m.key.n),
                                     .token = text_of(m.value, "token", a),
                                     .user = text_of(m.value, "user", a) };
        if (json_get_i64(m.value, "expires_ms", 0, INT64_MAX, &k->expires_ms, &none) < 0)
            k->expires_ms = 0;
    }
    const char *last = d ? text_of(o, "last", a) : "";
    out->last = last[0] ? last : NULL;
}

static int write_ring(const struct keyring *r, struct arena *a, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(FILE_MAX);
    struct json_out w = { .b = &text, .indent = 2 };
    const char *path = keyring_path(a);
    if (!path) {
        err_set(e, ERR_UNAVAILABLE, "there is no home folder to keep the token in");
        return err_hint(e, "set HOME, or use NIGHTSHIFT_SERVER and NIGHTSHIFT_TOKEN");
    }
    json_begin(&w, NULL, '{');
    if (r->last)
        json_put_str(&w, "last", str_of(r->last));
    json_begin(&w, "servers", '{');
    for (size_t i = 0; i < r->n; i++) {
        json_begin(&w, r->at[i].server, '{');
        json_put_str(&w, "token", str_of(r->at[i].token));
        json_put_str(&w, "user", str_of(r->at[i].user));
        json_put_i64(&w, "expires_ms", r->at[i].expires_ms);
        json_end(&w, '}');
    }
    json_end(&w, '}');
    json_end(&w, '}');
    buf_addc(&text, '\n');
    if (buf_check(&text, e) < 0)
        return -1;
    char *folder = arena_printf(a, "%s", path);
    for (char *p = folder + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                return err_set(e, ERR_UNAVAILABLE, "cannot make %s: %s", folder, strerror(errno));
            *p = '/';
        }
    return file_write_private(path, buf_str(&text), e);
}

bool keyring_find(const char *server, struct arena *a, struct keyring_entry *out)
{
    struct keyring r;
    read_ring(a, &r);
    const char *want = server ? server : r.last;
    for (size_t i = 0; want && i < r.n; i++)
        if (strcmp(r.at[i].server, want) == 0) {
            *out = r.at[i];
            return true;
        }
    return false;
}

static size_t place_of(const struct keyring *r, const char *server)
{
    size_t i = 0;
    while (i < r->n && strcmp(r->at[i].server, server) != 0)
        i++;
    return i;
}

int keyring_put(const struct keyring_entry *k, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct keyring r;
    read_ring(&a, &r);
    size_t at = place_of(&r, k->server);
    if (at == ENTRIES_MAX) {
        err_set(e, ERR_CONFLICT, "you are signed in to %d servers already", ENTRIES_MAX);
        return err_hint(e, "sign out of some: nightshift logout SERVER");
    }
    r.n += at == r.n;
    r.at[at] = *k;
    r.last = k->server;
    return write_ring(&r, &a, e);
}

int keyring_drop(const char *server, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct keyring r;
    read_ring(&a, &r);
    size_t at = place_of(&r, server);
    if (at == r.n) {
        err_set(e, ERR_NOT_FOUND, "you are not signed in to %s", server);
        return err_hint(e, "sign in with: nightshift login SERVER");
    }
    r.at[at] = r.at[--r.n];
    if (r.last && strcmp(r.last, server) == 0)
        r.last = r.n ? r.at[r.n - 1].server : NULL;
    return write_ring(&r, &a, e);
}
