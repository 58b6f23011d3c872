/* OpenAPI and the reference, printed from the table of routes. */
#include <stdio.h>

#include "api/state.h"

static const char *const bodies[] = {
    [BODY_NONE] = NULL,
    [BODY_SPEC] = "{\"oneOf\":[{\"$ref\":\"#/components/schemas/Job\"},{\"type\":\"object\","
                  "\"required\":[\"jobs\"],\"additionalProperties\":false,\"properties\":{\"jobs\":"
                  "{\"type\":\"array\",\"minItems\":1,\"maxItems\":1000,\"items\":"
                  "{\"$ref\":\"#/components/schemas/Job\"}}}}]}",
    [BODY_OPTIONAL] = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":"
                      "{\"reason\":{\"type\":\"string\"}}}",
    [BODY_SIGNAL] =
        "{\"type\":\"object\",\"required\":[\"signal\"],\"additionalProperties\":false,"
        "\"properties\":{\"signal\":{\"enum\":[\"HUP\",\"INT\",\"QUIT\",\"USR1\",\"USR2\","
        "\"TERM\",\"CONT\",\"KILL\"]}}}",
    [BODY_TOKEN] = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                   "\"name\":{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9-]{0,50}$\"},"
                   "\"user\":{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9-]{0,50}$\"},"
                   "\"expires\":{\"type\":\"string\",\"pattern\":\"^[1-9][0-9]?[hd]$\"},\"role\":{"
                   "\"enum\":[\"member\",\"admin\"]}}}",
    [BODY_SESSION] = "{\"type\":\"object\",\"required\":[\"token\"],\"additionalProperties\":false,"
                     "\"properties\":{\"token\":{\"type\":\"string\"}}}",
    [BODY_FRAMES] = "{\"type\":\"string\",\"format\":\"binary\"}",
};

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

static void put_param(struct json_out *w, const char *name, const char *in, const char *schema,
                      const char *help)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(name));
    json_put_str(w, "in", str_of(in));
    json_put_bool(w, "required", strcmp(in, "path") == 0);
    if (help)
        json_put_str(w, "description", str_of(help));
    json_put_raw(w, "schema", str_of(schema));
    json_end(w, '}');
}

static void put_params(struct json_out *w, const struct route *r)
{
    json_begin(w, "parameters", '[');
    for (const char *p = strchr(r->path, ':'); p; p = strchr(p + 1, ':')) {
        char name[32] = "";
        size_t n = MIN(strcspn(p + 1, "/"), sizeof name - 1);
        memcpy(name, p + 1, n);
        put_param(w, name, "path", strcmp(name, "id") == 0 ? QUERY_NUMBER : QUERY_TEXT, NULL);
    }
    for (const struct api_query *q = r->query; q && q->name; q++)
        put_param(w, q->name, "query", q->schema, q->help);
    json_end(w, ']');
}

static void put_answers(struct json_out *w, const struct route *r)
{
    char status[8];
    snprintf(status, sizeof status, "%d", r->status);
    json_begin(w, "responses", '{');
    json_begin(w, status, '{');
    json_put_str(w, "description", STR("done"));
    if (r->status != 204) {
        json_begin(w, "content", '{');
        json_begin(w, r->type ? r->type : "application/json", '{');
        json_end(w, '}');
        json_end(w, '}');
    }
    json_end(w, '}');
    json_begin(w, "default", '{');
    json_put_str(w, "description", STR("refused, with the reason"));
    json_begin(w, "content", '{');
    json_begin(w, "application/problem+json", '{');
    json_put_raw(w, "schema", STR("{\"$ref\":\"#/components/schemas/Problem\"}"));
    json_end(w, '}');
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
    json_put_str(w, "summary", str_of(r->summary));
    json_put_str(w, "x-role", str_of(role_name(r->role)));
    if (r->role == ROLE_PUBLIC) {
        json_begin(w, "security", '[');
        json_end(w, ']');
    }
    put_params(w, r);
    if (bodies[r->body]) {
        json_begin(w, "requestBody", '{');
        json_put_bool(w, "required", r->body != BODY_OPTIONAL && r->body != BODY_TOKEN);
        json_begin(w, "content", '{');
        json_begin(w, r->body == BODY_FRAMES ? "application/octet-stream" : "application/json",
                   '{');
        json_put_raw(w, "schema", str_of(bodies[r->body]));
        json_end(w, '}');
        json_end(w, '}');
        json_end(w, '}');
    }
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

void api_print_openapi(struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "openapi", STR("3.1.0"));
    json_begin(w, "info", '{');
    json_put_str(w, "title", STR("Nightshift"));
    json_put_str(w, "version", STR(NS_VERSION));
    json_end(w, '}');
    json_put_raw(w, "security", STR("[{\"token\":[]}]"));
    put_paths(w);
    json_begin(w, "components", '{');
    json_put_raw(w, "securitySchemes",
                 STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
    json_begin(w, "schemas", '{');
    spec_print_schema(w, "Job");
    json_put_raw(w, "Problem",
                 STR("{\"type\":\"object\",\"required\":[\"status\",\"code\",\"detail\"],"
                     "\"properties\":{\"status\":{\"type\":\"integer\"},\"code\":{\"type\":"
                     "\"string\"},\"detail\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},"
                     "\"field\":{\"type\":\"string\"}}}"));
    json_end(w, '}');
    json_end(w, '}');
    json_end(w, '}');
}

void api_print_reference(struct buf *out)
{
    buf_addz(out, "| call | who | what |\n|---|---|---|\n");
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        AUTO(buf_free) struct buf path = BUF(256);
        path_text(r->path, &path);
        buf_printf(out, "| `%s %s` | %s | %s", r->method, path.p, role_name(r->role), r->summary);
        for (const struct api_query *q = r->query; q && q->name; q++)
            buf_printf(out, "<br>`?%s=` %s", q->name, q->help);
        buf_addz(out, " |\n");
    }
}
