/* Clients: the tools that people sign in to through us. */
#include <sodium.h>
#include <strings.h>

#include "auth/oauth_state.h"
#include "base/url.h"

char *oauth_copy(struct str s)
{
    char *z = xmalloc(s.n + 1);
    if (s.n)
        memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}

struct oauth *oauth_new(void)
{
    struct oauth *o = xcalloc(1, sizeof *o);
    o->grant = xcalloc(OAUTH_GRANTS_MAX, sizeof *o->grant);
    return o;
}

static void client_clear(struct oauth_client *c)
{
    for (size_t i = 0; i < c->redirects; i++)
        free(c->redirect[i]);
    free(c->redirect);
    free(c->id);
    free(c->name);
    *c = (struct oauth_client){ 0 };
}

struct oauth *oauth_free(struct oauth *o)
{
    if (!o)
        return NULL;
    for (size_t i = 0; i < o->clients; i++)
        client_clear(&o->client[i]);
    grants_clear(o);
    free(o->grant);
    free(o);
    return NULL;
}

void oauth_free_p(struct oauth **o)
{
    *o = oauth_free(*o);
}

/* ---- checks ---- */

int oauth_check_id(struct str id, struct err *e)
{
    bool good = id.n > 0 && id.n <= OAUTH_ID_MAX && id.p[0] != '.';
    for (size_t i = 0; i < id.n && good; i++)
        good = (id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= 'A' && id.p[i] <= 'Z') ||
               (id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] && strchr("-_.", id.p[i]));
    if (good)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' cannot be a client's id", (int)MIN(id.n, (size_t)60), id.p);
    return err_hint(e, "1 to %d letters, digits and - _ . (not first)", OAUTH_ID_MAX);
}

int oauth_check_redirect(struct str uri, struct err *e)
{
    struct url u;
    if (uri.n > OAUTH_REDIRECT_MAX) {
        err_set(e, ERR_INVALID, "an address of %zu bytes is too long", uri.n);
        return err_hint(e, "at most %d", OAUTH_REDIRECT_MAX);
    }
    if (url_parse(uri, &u, e) < 0)
        return -1;
    if (u.https || url_is_loopback(&u))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is not https: codes could be read on their way",
            (int)MIN(uri.n, (size_t)100), uri.p);
    return err_hint(e, "http is for 127.0.0.1, [::1] and localhost only");
}

bool oauth_has_redirect(const struct oauth_client *c, struct str uri)
{
    for (size_t i = 0; i < c->redirects; i++)
        if (str_is(uri, c->redirect[i]))
            return true;
    return false;
}

bool oauth_read_basic(struct str header, struct arena *a, struct str *out_id,
                      struct str *out_secret)
{
    static const char basic[] = "Basic ";
    size_t skip = sizeof basic - 1, n = 0;
    if (header.n <= skip || header.n > 2048 || strncasecmp(header.p, basic, skip) != 0)
        return false;
    char *text = arena_array(a, char, header.n);
    struct str id, secret;
    if (sodium_base642bin((unsigned char *)text, header.n, header.p + skip, header.n - skip, NULL,
                          &n, NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        !str_cut((struct str){ text, n }, ':', &id, &secret))
        return false;
    *out_id = id;
    *out_secret = secret;
    return true;
}

/* ---- the list ---- */

static struct oauth_client *find(struct oauth *o, struct str id)
{
    for (size_t i = 0; i < o->clients; i++)
        if (str_is(id, o->client[i].id))
            return &o->client[i];
    return NULL;
}

const struct oauth_client *oauth_find_client(const struct oauth *o, struct str id)
{
    return find((struct oauth *)(uintptr_t)o, id);
}

const struct oauth_client *oauth_client_at(const struct oauth *o, size_t i)
{
    return i < o->clients ? &o->client[i] : NULL;
}

int oauth_put_client(struct oauth *o, const struct oauth_client *c, struct err *e)
{
    struct oauth_client *at = find(o, str_of(c->id)), mine = *c;
    if (!at && o->clients == OAUTH_CLIENTS_MAX) {
        err_set(e, ERR_CONFLICT, "there are %d clients already", OAUTH_CLIENTS_MAX);
        return err_hint(e, "delete those that nobody uses: GET /v1/clients");
    }
    mine.id = xstrdup(c->id);
    mine.name = xstrdup(c->name);
    mine.redirect = xcalloc(c->redirects + 1, sizeof *mine.redirect);
    for (size_t i = 0; i < c->redirects; i++)
        mine.redirect[i] = xstrdup(c->redirect[i]);
    if (at)
        client_clear(at);
    else
        at = &o->client[o->clients++];
    *at = mine;
    return 0;
}

bool oauth_drop_client(struct oauth *o, struct str id)
{
    struct oauth_client *c = find(o, id);
    if (!c)
        return false;
    grants_drop_client(o, id);
    client_clear(c);
    *c = o->client[--o->clients];
    o->client[o->clients] = (struct oauth_client){ 0 };
    return true;
}

/* ---- as the store keeps it ---- */

void oauth_client_write(const struct oauth_client *c, struct buf *out)
{
    struct json_out w = { .b = out };
    char hash[2 * KEY_HASH_BYTES + 1];
    sodium_bin2hex(hash, sizeof hash, c->hash, sizeof c->hash);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(c->name));
    json_begin(&w, "redirect_uris", '[');
    for (size_t i = 0; i < c->redirects; i++)
        json_put_str(&w, NULL, str_of(c->redirect[i]));
    json_end(&w, ']');
    json_put_str(&w, "hash", str_of(c->has_secret ? hash : ""));
    json_put_i64(&w, "created_ms", c->created_ms);
    json_end(&w, '}');
}

static int read_redirects(const struct json *list, struct arena *a, struct oauth_client *c,
                          struct err *e)
{
    struct str uri;
    c->redirect = arena_array(a, char *, OAUTH_REDIRECTS_MAX);
    for (const struct json *v = list ? json_first(list) : NULL;
         v && c->redirects < OAUTH_REDIRECTS_MAX; v = json_next(list, v)) {
        if (json_as_str(v, OAUTH_REDIRECT_MAX, &uri, e) < 0 || oauth_check_redirect(uri, e) < 0)
            return -1;
        c->redirect[c->redirects++] = arena_strndup(a, uri.p, uri.n);
    }
    return 0;
}

int oauth_read_client(struct oauth *o, struct str id, struct str json, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(json, e);
    struct oauth_client c = { 0 };
    struct str name = STR(""), hash = STR("");
    size_t n = 0;
    if (!d || oauth_check_id(id, e) < 0 ||
        json_need_str(json_root(d), "name", OAUTH_NAME_MAX, &name, e) < 0 ||
        json_need_str(json_root(d), "hash", 2 * KEY_HASH_BYTES, &hash, e) < 0 ||
        json_get_i64(json_root(d), "created_ms", INT64_MIN, INT64_MAX, &c.created_ms, e) < 0 ||
        read_redirects(json_find(json_root(d), "redirect_uris"), &a, &c, e) < 0)
        return -1;
    c.has_secret = hash.n > 0;
    if (c.has_secret &&
        (sodium_hex2bin(c.hash, sizeof c.hash, hash.p, hash.n, NULL, &n, NULL) != 0 ||
         n != sizeof c.hash))
        return err_set(e, ERR_INVALID, "the hash of its secret cannot be read");
    c.id = arena_strndup(&a, id.p, id.n);
    c.name = arena_strndup(&a, name.p, name.n);
    return oauth_put_client(o, &c, e);
}
