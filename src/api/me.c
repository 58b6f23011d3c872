/* Who am I, where my jobs go, and the notice that testers accept. */
#include <stdio.h>

#include "api/audit.h"
#include "api/directory.h"

int api_whoami(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    size_t n;
    struct people *p = auth_people(c->api->config.auth);
    const struct place *at = people_places(p, str_of(c->who.user), http_arena(c->rq), &n);
    const struct person *x = people_find(p, str_of(c->who.user));
    (void)e;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "user", str_of(c->who.user));
    json_put_str(&w, "full_name", str_of(x ? x->full_name : ""));
    if (c->who.uid == UINT32_MAX)
        json_put_null(&w, "uid");
    else
        json_put_u64(&w, "uid", c->who.uid);
    json_put_str(&w, "role", str_of(role_name(site_role(c))));
    json_put_str(&w, "via", str_of(via_name(c->who.via)));
    json_begin(&w, "scopes", '[');
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (c->who.scopes & (1u << i))
            json_put_str(&w, NULL, str_of(token_scope_name((enum token_scope)i)));
    json_end(&w, ']');
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(&w, NULL, at[i].tenant);
    json_end(&w, ']');
    json_begin(&w, "roles", '{');
    for (size_t i = 0; i < n; i++)
        json_put_str(&w, arena_strndup(http_arena(c->rq), at[i].tenant.p, at[i].tenant.n),
                     str_of(role_name(at[i].role)));
    json_end(&w, '}');
    if (x && x->tenant[0])
        json_put_str(&w, "default_tenant", str_of(x->tenant));
    else
        json_put_null(&w, "default_tenant");
    if (notice_pending(c))
        json_put_str(&w, "notice", str_of(c->api->config.notice));
    else
        json_put_null(&w, "notice");
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- where one's jobs go ---- */

static void on_chosen(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

int api_default_tenant_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "tenant" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct people *people = auth_people(c->api->config.auth);
    struct str tenant = STR("");
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "tenant";
    if (json_need_str(json_root(d), "tenant", NAME_MAX_BYTES, &tenant, e) < 0)
        return -1;
    if (tenant.n && !people_has_tenant(people, tenant)) {
        err_set(e, ERR_NOT_FOUND, "field 'tenant': there is no tenant '%.*s'", STR_ARG(tenant));
        return err_hint(e, "see those there are: nightshift tenants");
    }
    if (tenant.n && !may(c, ACCESS_SUBMIT, &(struct subject){ .tenant = tenant })) {
        err_set(e, ERR_DENIED, "field 'tenant': '%s' may not submit for '%.*s'", c->who.user,
                STR_ARG(tenant));
        return err_hint(e, "your tenants: nightshift status");
    }
    c->field = NULL;
    struct person *x = people_make(people, str_of(c->who.user));
    api_audit(c, &(struct audit_change){
                     .what = AUDIT_USER_TENANT, .subject = str_of(c->who.user), .tenant = tenant });
    person_set(&x->tenant, tenant);
    keep_person(c->api, x);
    control_commit(c->api->config.control, (struct control_done){ on_chosen, c->rq });
    return 0;
}

/* ---- the notice ---- */

/* Which one it is: another text is another notice. */
static const char *notice_id(const struct call *c, char out[static 24])
{
    snprintf(out, 24, "%016llx", (unsigned long long)str_hash(str_of(c->api->config.notice)));
    return out;
}

bool notice_pending(const struct call *c)
{
    const struct person *x = people_find(auth_people(c->api->config.auth), str_of(c->who.user));
    char id[24];
    return c->api->config.notice && c->who.via == VIA_SESSION &&
           (!x || strcmp(x->notice, notice_id(c, id)) != 0);
}

static void on_accepted(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

int api_notice_accept(struct call *c, struct err *e)
{
    char id[24];
    if (!c->api->config.notice) {
        err_set(e, ERR_CONFLICT, "there is no notice here");
        return err_hint(e, "nothing has to be accepted");
    }
    struct person *x = people_make(auth_people(c->api->config.auth), str_of(c->who.user));
    person_set(&x->notice, str_of(notice_id(c, id)));
    keep_person(c->api, x);
    api_audit(c, &(struct audit_change){ .what = AUDIT_NOTICE_ACCEPT,
                                         .subject = str_of(c->who.user),
                                         .reason = str_of(c->api->config.notice) });
    control_commit(c->api->config.control, (struct control_done){ on_accepted, c->rq });
    return 0;
}
