/* OpenAPI and the reference, printed from the table of routes. */
#include <stdio.h>

#include "api/state.h"
#include "spec/tenant.h"

static const char schemas[] = /* the members of components/schemas that are no table's */
#include "schemas.json.inc"
    ;

/* Names of tokens and machines. */
#define NAME_SCHEMA                                                                                \
    "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_@-][A-Za-z0-9._@-]*$\",\"maxLength\":200}"
#define REF "{\"$ref\":\"#/components/schemas/%s\"}"

/* "/v1/jobs/:id" -> "/v1/jobs/{id}" */
static void path_text(const char *path, struct buf *out)
{
    for (const char *p = path; *p; p++) {
        if (*p != ':') {
            buf_addc(out, *p);
            continue;
        }
        size_t n = strcspn(p + 1, "/");
        buf_printf(out, "{%.*s}", (int)n, p + 1);
        p += n;
    }
}

static int route_status(const struct route *r)
{
    return r->status ? r->status : 200;
}

/* ---- parameters ---- */

static void words_schema(const struct api_param *p, struct buf *out)
{
    buf_addz(out, "{\"type\":\"string\",\"enum\":[\"");
    for (const char *c = p->words; *c; c++)
        buf_printf(out, *c == '|' ? "\",\"" : "%c", *c);
    buf_addz(out, "\"]}");
}

static void param_schema(const struct api_param *p, struct buf *out)
{
    switch (p->kind) {
    case PARAM_TEXT:
        buf_printf(out,
                   "{\"type\":\"string\",\"minLength\":%llu,\"maxLength\":%llu,"
                   "\"pattern\":\"^[^\\\\u0000-\\\\u001f\\\\u007f]*$\"}",
                   (unsigned long long)p->min,
                   (unsigned long long)(p->max ? p->max : PARAM_TEXT_MAX));
        return;
    case PARAM_NUMBER:
        buf_printf(out, "{\"type\":\"integer\",\"minimum\":%llu,\"maximum\":%llu}",
                   (unsigned long long)p->min, (unsigned long long)p->max);
        return;
    case PARAM_WORD: words_schema(p, out); return;
    case PARAM_WORDS:
        buf_printf(out, "{\"type\":\"string\",\"pattern\":\"^(all|(%s)(,(%s))*)$\"}", p->words,
                   p->words);
        return;
    case PARAM_HEX:
        buf_printf(out, "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{%llu,%llu}$\"}",
                   (unsigned long long)p->min, (unsigned long long)p->max);
        return;
    case PARAM_PLACE:
        buf_addz(out, "{\"type\":\"string\","
                      "\"pattern\":\"^[0-9]{1,9}[.][0-9]{1,15}[.][0-9]{1,15}$\"}");
        return;
    }
}

static const char *path_schema(const char *name)
{
    static const struct {
        const char *name, *schema;
    } rows[] = {
        { "id", "{\"$ref\":\"#/components/schemas/Number\"}" },
        { "client",
          "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-][A-Za-z0-9._-]*$\",\"maxLength\":64}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].schema;
    return NAME_SCHEMA;
}

static void put_path_param(struct json_out *w, const char *name)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(name));
    json_put_str(w, "in", STR("path"));
    json_put_bool(w, "required", true);
    json_put_raw(w, "schema", str_of(path_schema(name)));
    json_end(w, '}');
}

static void put_param(struct json_out *w, const struct api_param *p)
{
    AUTO(buf_free) struct buf schema = BUF(4096);
    param_schema(p, &schema);
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(p->name));
    json_put_str(w, "in", p->header ? STR("header") : STR("query"));
    json_put_bool(w, "required", p->required);
    json_put_str(w, "description", str_of(p->help));
    json_put_raw(w, "schema", buf_str(&schema));
    json_end(w, '}');
}

static void put_params(struct json_out *w, const struct route *r)
{
    json_begin(w, "parameters", '[');
    for (const char *p = strchr(r->path, ':'); p; p = strchr(p + 1, ':')) {
        char name[32] = "";
        size_t n = MIN(strcspn(p + 1, "/"), sizeof name - 1);
        memcpy(name, p + 1, n);
        put_path_param(w, name);
    }
    for (const struct api_param *p = r->param; p && p->name; p++)
        put_param(w, p);
    json_end(w, ']');
}

/* ---- answers ---- */

static bool may_be_missing(const struct route *r)
{
    return strchr(r->path, ':') != NULL || (r->refuses & REFUSES_NOT_FOUND);
}

static bool always(const struct route *r)
{
    return r != NULL;
}

static bool has_role(const struct route *r)
{
    return r->access != ACCESS_PUBLIC;
}

static bool may_be_denied(const struct route *r)
{
    return has_role(r) || (r->refuses & REFUSES_DENIED);
}

static bool may_conflict(const struct route *r)
{
    return r->refuses & REFUSES_CONFLICT;
}

static bool has_body(const struct route *r)
{
    return r->body || r->body_is_bytes;
}

static bool has_typed_body(const struct route *r)
{
    return has_body(r) && !r->oauth; /* a form of another type is an invalid_request */
}

/* Every refusal, and the calls that can meet it. */
static const struct refusal_row {
    const char *status, *why;
    bool (*when)(const struct route *r);
} refusals[] = {
    { "400", "a field, a parameter or a header is wrong", always },
    { "401", "who is calling? The token is missing or not known", has_role },
    { "403", "whoever calls may not do this", may_be_denied },
    { "404", "it does not exist, or is not for the caller to see", may_be_missing },
    { "408", "the request did not arrive in time", always },
    { "409", "right, but not possible as things are", may_conflict },
    { "413", "the body is too large", has_body },
    { "415", "the body is of another type than the call takes", has_typed_body },
    { "429", "too many requests; see Retry-After", always },
    { "431", "the headers are too large", always },
    { "500", "the server failed; the log says why", always },
    { "503", "not now; try again", always },
};

static void put_links(struct json_out *w, const struct route *r)
{
    static const struct {
        const char *from, *name, *to, *param, *value;
    } links[] = {
        { "job_submit", "show", "job_get", "id", "$response.body#/id" },
        { "job_submit", "why", "job_why", "id", "$response.body#/id" },
        { "job_submit", "log", "job_log", "id", "$response.body#/id" },
        { "job_submit", "hold", "job_hold", "id", "$response.body#/id" },
        { "job_submit", "release", "job_release", "id", "$response.body#/id" },
        { "job_submit", "freeze", "job_freeze", "id", "$response.body#/id" },
        { "job_submit", "thaw", "job_thaw", "id", "$response.body#/id" },
        { "job_submit", "signal", "job_signal", "id", "$response.body#/id" },
        { "job_submit", "cancel", "job_cancel", "id", "$response.body#/id" },
        { "job_list", "next", "job_list", "before", "$response.body#/next" },
        { "token_create", "delete", "token_delete", "name", "$response.body#/name" },
    };
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (strcmp(links[i].from, r->id) != 0)
            continue;
        if (!any)
            json_begin(w, "links", '{');
        any = true;
        json_begin(w, links[i].name, '{');
        json_put_str(w, "operationId", str_of(links[i].to));
        json_begin(w, "parameters", '{');
        json_put_str(w, links[i].param, str_of(links[i].value));
        json_end(w, '}');
        json_end(w, '}');
    }
    if (any)
        json_end(w, '}');
}

static void put_success(struct json_out *w, const struct route *r)
{
    char status[8];
    snprintf(status, sizeof status, "%d", route_status(r));
    json_begin(w, status, '{');
    json_put_str(w, "description", STR("done"));
    if (r->answer || r->type) {
        json_begin(w, "content", '{');
        json_begin(w, r->answer ? "application/json" : r->type, '{');
        if (r->answer) {
            AUTO(buf_free) struct buf ref = BUF(256);
            buf_printf(&ref, REF, r->answer);
            json_put_raw(w, "schema", buf_str(&ref));
        } else {
            json_put_raw(w, "schema", STR("{\"type\":\"string\"}"));
        }
        json_end(w, '}');
        if (r->other_type)
            json_put_raw(w, r->other_type, STR("{}"));
        json_end(w, '}');
    }
    put_links(w, r);
    json_end(w, '}');
}

static void put_answers(struct json_out *w, const struct route *r)
{
    json_begin(w, "responses", '{');
    put_success(w, r);
    if (r->oauth)
        json_put_raw(w, "401", STR("{\"$ref\":\"#/components/responses/oauth\"}"));
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        AUTO(buf_free) struct buf ref = BUF(256);
        if (!refusals[i].when(r))
            continue;
        bool own = r->oauth && strcmp(refusals[i].status, "400") == 0;
        buf_printf(&ref, "{\"$ref\":\"#/components/responses/%s\"}",
                   own ? "oauth" : refusals[i].status);
        json_put_raw(w, refusals[i].status, buf_str(&ref));
    }
    json_end(w, '}');
}

static void put_refusals(struct json_out *w)
{
    json_begin(w, "responses", '{');
    json_put_raw(w, "oauth",
                 STR("{\"description\":\"an error of RFC 6749, or a text for whoever came by a "
                     "wrong link\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                     "\"#/components/schemas/OAuthError\"}},"
                     "\"text/plain; charset=utf-8\":{\"schema\":{\"type\":\"string\"}}}}"));
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const struct refusal_row *row = &refusals[i];
        json_begin(w, row->status, '{');
        json_put_str(w, "description", str_of(row->why));
        if (strcmp(row->status, "429") == 0)
            json_put_raw(w, "headers",
                         STR("{\"Retry-After\":{\"description\":\"seconds\",\"required\":true,"
                             "\"schema\":{\"type\":\"integer\",\"minimum\":1}}}"));
        json_put_raw(w, "content",
                     STR("{\"application/problem+json\":{\"schema\":"
                         "{\"$ref\":\"#/components/schemas/Problem\"}}}"));
        json_end(w, '}');
    }
    json_end(w, '}');
}

/* ---- the document ---- */

static const char *body_type(const struct route *r)
{
    if (!r->body)
        return "application/octet-stream";
    return r->oauth ? "application/x-www-form-urlencoded" : "application/json";
}

static void put_body(struct json_out *w, const struct route *r)
{
    AUTO(buf_free) struct buf ref = BUF(256);
    if (r->body)
        buf_printf(&ref, REF, r->body);
    else
        buf_addz(&ref, "{\"type\":\"string\",\"format\":\"binary\"}");
    json_begin(w, "requestBody", '{');
    json_put_bool(w, "required", !r->body_optional);
    json_begin(w, "content", '{');
    json_begin(w, body_type(r), '{');
    json_put_raw(w, "schema", buf_str(&ref));
    json_end(w, '}');
    json_end(w, '}');
    json_end(w, '}');
}

static void put_operation(struct json_out *w, const struct route *r)
{
    char method[8] = "";
    for (size_t i = 0; r->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)(r->method[i] | 0x20);
    json_begin(w, method, '{');
    json_put_str(w, "operationId", str_of(r->id));
    json_put_str(w, "summary", str_of(r->summary));
    put_reach(w, "x-reach", r); /* how far each role reaches with it */
    json_put_str(w, "x-scope", str_of(route_scope(r)));
    if (r->access == ACCESS_PUBLIC) {
        json_begin(w, "security", '[');
        json_end(w, ']');
    }
    put_params(w, r);
    if (has_body(r))
        put_body(w, r);
    put_answers(w, r);
    json_end(w, '}');
}

/* Rows of one path stand together in the table or apart; here they are one object. */
static void put_paths(struct json_out *w)
{
    json_begin(w, "paths", '{');
    for (size_t i = 0; i < api_routes_n; i++) {
        AUTO(buf_free) struct buf path = BUF(256);
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first = first && strcmp(api_routes[k].path, api_routes[i].path) != 0;
        if (!first)
            continue;
        path_text(api_routes[i].path, &path);
        json_begin(w, path.p, '{');
        for (size_t k = i; k < api_routes_n; k++)
            if (strcmp(api_routes[k].path, api_routes[i].path) == 0)
                put_operation(w, &api_routes[k]);
        json_end(w, '}');
    }
    json_end(w, '}');
}

static void put_states(struct json_out *w)
{
    json_begin(w, "JobState", '{');
    json_begin(w, "enum", '[');
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        json_put_str(w, NULL, str_of(job_state_name((enum job_state)i)));
    json_end(w, ']');
    json_end(w, '}');
}

static void put_tenant_schema(struct json_out *w)
{
    json_begin(w, "TenantChange", '{');
    json_put_str(w, "type", STR("object"));
    json_put_bool(w, "additionalProperties", false);
    json_begin(w, "properties", '{');
    tenant_print_schema(w);
    json_end(w, '}');
    json_end(w, '}');
}

static void put_components(struct json_out *w)
{
    json_begin(w, "components", '{');
    json_put_raw(w, "securitySchemes",
                 STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
    put_refusals(w);
    json_begin(w, "schemas", '{');
    spec_print_schema(w, "JobSpec");
    put_tenant_schema(w);
    spec_print_signals(w, "SignalName");
    put_states(w);
    buf_addc(w->b, ',');
    buf_add(w->b, (struct str){ schemas, sizeof schemas - 1 });
    json_end(w, '}');
    json_end(w, '}');
}

void api_print_openapi(struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "openapi", STR("3.1.0"));
    json_begin(w, "info", '{');
    json_put_str(w, "title", STR("Nightshift"));
    json_put_str(w, "version", STR(NS_VERSION));
    json_put_raw(w, "license", STR("{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}"));
    json_end(w, '}');
    json_put_raw(w, "security", STR("[{\"token\":[]}]"));
    put_paths(w);
    put_components(w);
    json_end(w, '}');
}

/* ---- the reference ---- */

static void print_words(const struct api_param *p, struct buf *out)
{
    if (!p->words)
        return;
    buf_addz(out, p->kind == PARAM_WORDS ? ": of `" : ": `");
    for (const char *c = p->words; *c; c++)
        buf_printf(out, *c == '|' ? "`, `" : "%c", *c);
    buf_addz(out, "`");
}

/* "member (own), lead (tenant), operator, admin" */
static void print_reach(const struct route *r, struct buf *out)
{
    const char *comma = "";
    if (r->access == ACCESS_PUBLIC || access_reach(r->access, ROLE_NONE) != REACH_NO) {
        buf_addz(out, r->access == ACCESS_PUBLIC ? "anybody" : "whoever is signed in");
        return;
    }
    for (int k = 0; k < ROLE_COUNT; k++) {
        enum reach reach = access_reach(r->access, (enum role)k);
        if (reach == REACH_NO)
            continue;
        buf_printf(out, "%s%s", comma, role_name((enum role)k));
        if (reach != REACH_ALL)
            buf_printf(out, " (%s)", reach_name(reach));
        comma = ", ";
    }
}

static void print_route(const struct route *r, struct buf *out)
{
    AUTO(buf_free) struct buf path = BUF(256);
    path_text(r->path, &path);
    buf_printf(out, "| `%s %s` | ", r->method, path.p);
    print_reach(r, out);
    buf_printf(out, " | %s", r->summary);
    if (r->body)
        buf_printf(out, "<br>body: `%s`%s", r->body, r->body_optional ? ", may be left out" : "");
    for (const struct api_param *p = r->param; p && p->name; p++) {
        buf_printf(out, p->header ? "<br>`%s:` %s" : "<br>`?%s=` %s", p->name, p->help);
        print_words(p, out);
    }
    buf_printf(out, " | %d", route_status(r));
    if (r->answer || r->type)
        buf_printf(out, " `%s`", r->answer ? r->answer : r->type);
    if (r->other_type)
        buf_printf(out, ", `%s`", r->other_type);
    buf_addz(out, " |");
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (refusals[i].when != always && refusals[i].when(r))
            buf_printf(out, " %s", refusals[i].status);
    buf_addz(out, " |\n");
}

void api_print_reference(struct buf *out)
{
    buf_addz(out, "| call | who | what | answer | refusals |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < api_routes_n; i++)
        print_route(&api_routes[i], out);
    buf_addz(out, "\nEvery call may also be refused with");
    for (size_t i = 0, n = 0; i < ARRAY_LEN(refusals); i++)
        if (refusals[i].when == always)
            buf_printf(out, "%s %s", n++ ? "," : "", refusals[i].status);
    buf_addz(out, ".\n\n| status | means |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        buf_printf(out, "| %s | %s |\n", refusals[i].status, refusals[i].why);
}
