/* Clients: the tools that people sign in to through us, registered by administrators.  See oauth.c. */
#include "api/state.h"
#include "auth/oauth.h"
#include "store/directory.h"

static void put_client(struct json_out *w, const struct oauth_client *c, const char *secret)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "id", str_of(c->id));
    json_put_str(w, "name", str_of(c->name));
    json_begin(w, "redirect_uris", '[');
    for (size_t i = 0; i < c->redirects; i++)
        json_put_str(w, NULL, str_of(c->redirect[i]));
    json_end(w, ']');
    json_put_bool(w, "has_secret", c->has_secret);
    json_put_i64(w, "created_ms", c->created_ms);
    if (secret)
        json_put_str(w, "secret", str_of(secret));
    json_end(w, '}');
}

int api_client_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct oauth_client *x;
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "clients", '[');
    for (size_t i = 0; (x = oauth_client_at(c->api->oauth, i)); i++)
        put_client(&w, x, NULL);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- changing ---- */

static int read_redirects(struct call *c, const struct json *o, struct oauth_client *x,
                          struct err *e)
{
    const struct json *list = json_find(o, "redirect_uris");
    struct str uri;
    c->field = "redirect_uris";
    if ((!list && x->redirects == 0) || (list && (!json_is_array(list) || json_len(list) == 0 ||
                                                  json_len(list) > OAUTH_REDIRECTS_MAX))) {
        err_set(e, ERR_INVALID, "field 'redirect_uris' must be a list of 1 to %d addresses",
                OAUTH_REDIRECTS_MAX);
        return err_hint(e, "e.g. [\"https://hub.example/hub/oauth_callback\"]");
    }
    if (list) {
        x->redirect = arena_array(http_arena(c->rq), char *, OAUTH_REDIRECTS_MAX);
        x->redirects = 0;
    }
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        if (json_as_str(v, OAUTH_REDIRECT_MAX, &uri, e) < 0 || oauth_check_redirect(uri, e) < 0)
            return err_wrap(e, "field 'redirect_uris'");
        x->redirect[x->redirects++] = arena_strndup(http_arena(c->rq), uri.p, uri.n);
    }
    c->field = NULL;
    return 0;
}

/* A secret is made when there is to be one and there is none, or when another is wanted. */
static int read_secret(struct call *c, const struct json *o, struct oauth_client *x,
                       const char **out, struct err *e)
{
    bool wanted = x->has_secret, anew = false;
    c->field = "secret";
    if (json_get_bool(o, "secret", &wanted, e) < 0)
        return -1;
    c->field = "new_secret";
    if (json_get_bool(o, "new_secret", &anew, e) < 0)
        return -1;
    if (anew && !wanted) {
        err_set(e, ERR_INVALID, "field 'new_secret': the client is to have none");
        return err_hint(e, "leave out one of the two, or set \"secret\": true");
    }
    c->field = NULL;
    if (wanted && (anew || !x->has_secret || !x->created_ms)) {
        char *text = arena_array(http_arena(c->rq), char, KEY_TEXT_BYTES);
        auth_make_key(OAUTH_SECRET_PREFIX, text);
        auth_hash_key(str_of(text), x->hash);
        *out = text;
    }
    x->has_secret = wanted;
    return 0;
}

static int read_client(struct call *c, const struct json *o, struct oauth_client *x,
                       const char **out_secret, struct err *e)
{
    struct str name = str_of(x->name);
    c->field = "name";
    if (json_get_str(o, "name", OAUTH_NAME_MAX, &name, e) < 0)
        return -1;
    x->name = arena_strndup(http_arena(c->rq), name.p, name.n);
    return read_redirects(c, o, x, e) < 0 || read_secret(c, o, x, out_secret, e) < 0 ? -1 : 0;
}

struct client_later {
    struct http_request *rq;
    struct str body;
};

static void on_put(void *ctx)
{
    struct client_later *l = ctx;
    http_reply(l->rq, 200, "application/json", l->body);
}

static void on_deleted(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

static void keep_client(struct call *c, const struct oauth_client *x)
{
    AUTO(buf_free) struct buf body = BUF(64 << 10);
    oauth_client_write(x, &body);
    store_put_entry(control_batch(c->api->config.control), DIRECTORY_CLIENT,
                    &(struct store_entry){ str_of(x->id), buf_str(&body) });
}

int api_client_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "name", "redirect_uris", "secret", "new_secret" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    struct arena *a = http_arena(c->rq);
    struct client_later *l = arena_new(a, struct client_later);
    const struct oauth_client *was = oauth_find_client(c->api->oauth, c->param[0]);
    struct oauth_client x = { .has_secret = true };
    const char *secret = NULL;
    c->field = "client";
    if (oauth_check_id(c->param[0], e) < 0)
        return err_wrap(e, "client");
    c->field = NULL;
    if (was)
        x = *was;
    x.id = arena_strndup(a, c->param[0].p, c->param[0].n);
    if (!was)
        x.name = x.id;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_client(c, json_root(d), &x, &secret, e) < 0)
        return -1;
    if (!was)
        x.created_ms = clock_now_ms(&c->api->config.clock);
    put_client(&w, &x, secret); /* x may have parts of the one that it replaces */
    if (oauth_put_client(c->api->oauth, &x, e) < 0)
        return -1;
    keep_client(c, oauth_find_client(c->api->oauth, c->param[0]));
    *l = (struct client_later){ c->rq, { arena_strndup(a, b.p, b.n), b.n } };
    control_commit(c->api->config.control, (struct control_done){ on_put, l });
    return 0;
}

int api_client_delete(struct call *c, struct err *e)
{
    if (!oauth_drop_client(c->api->oauth, c->param[0])) {
        err_set(e, ERR_NOT_FOUND, "there is no client '%.*s'", (int)MIN(c->param[0].n, (size_t)60),
                c->param[0].p);
        return err_hint(e, "see those there are: GET /v1/clients");
    }
    store_delete_entry(control_batch(c->api->config.control), DIRECTORY_CLIENT, c->param[0]);
    control_commit(c->api->config.control, (struct control_done){ on_deleted, c->rq });
    return 0;
}
