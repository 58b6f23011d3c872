/* Who may do what, as a table: printed from the routes (routes.c) and the reach of each role (auth/role.h). */
#include "api/state.h"

static void put_roles(struct json_out *w)
{
    json_begin(w, "roles", '[');
    for (int r = 0; r < ROLE_COUNT; r++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(role_name((enum role)r)));
        json_put_str(w, "help", str_of(role_help((enum role)r)));
        json_end(w, '}');
    }
    json_end(w, ']');
    json_begin(w, "reaches", '[');
    for (int k = REACH_NO + 1; k < REACH_COUNT; k++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(reach_name((enum reach)k)));
        json_put_str(w, "help", str_of(reach_help((enum reach)k)));
        json_end(w, '}');
    }
    json_end(w, ']');
}

void put_reach(struct json_out *w, const char *key, const struct route *r)
{
    json_begin(w, key, '{');
    for (int k = 0; k < ROLE_COUNT; k++)
        if (access_reach(r->access, (enum role)k) != REACH_NO)
            json_put_str(w, role_name((enum role)k),
                         str_of(reach_name(access_reach(r->access, (enum role)k))));
    json_end(w, '}');
}

/* Every access needs one scope at most. */
const char *route_scope(const struct route *r)
{
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (access_scope(r->access) & (1u << i))
            return token_scope_name((enum token_scope)i);
    return "";
}

int api_permissions(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    struct json_out w = { .b = &b };
    (void)e;
    json_begin(&w, NULL, '{');
    put_roles(&w);
    json_begin(&w, "calls", '[');
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        json_begin(&w, NULL, '{');
        json_put_str(&w, "method", str_of(r->method));
        json_put_str(&w, "path", str_of(r->path));
        json_put_str(&w, "summary", str_of(r->summary));
        json_put_bool(&w, "public", r->access == ACCESS_PUBLIC);
        json_put_str(&w, "scope", str_of(route_scope(r)));
        put_reach(&w, "reach", r);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

void api_print_permissions(struct buf *out)
{
    buf_addz(out, "| role | who that is |\n|---|---|\n");
    for (int r = 0; r < ROLE_COUNT; r++)
        buf_printf(out, "| `%s` | %s |\n", role_name((enum role)r), role_help((enum role)r));
    buf_addz(out, "\n| reach | of what |\n|---|---|\n");
    for (int k = REACH_NO + 1; k < REACH_COUNT; k++)
        buf_printf(out, "| `%s` | %s |\n", reach_name((enum reach)k), reach_help((enum reach)k));
    buf_addz(out, "\n| scope | what a token with it may be used for |\n|---|---|\n");
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        buf_printf(out, "| `%s` | %s |\n", token_scope_name((enum token_scope)i),
                   token_scope_help((enum token_scope)i));
    buf_addz(out, "\n| call | what |");
    for (int r = 0; r < ROLE_COUNT; r++)
        buf_printf(out, " %s |", role_name((enum role)r));
    buf_addz(out, " scope |\n|---|---|");
    for (int r = 0; r <= ROLE_COUNT; r++)
        buf_addz(out, "---|");
    buf_addc(out, '\n');
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        buf_printf(out, "| `%s %s` | %s |", r->method, r->path, r->summary);
        for (int k = 0; k < ROLE_COUNT; k++)
            buf_printf(out, " %s |", reach_name(access_reach(r->access, (enum role)k)));
        buf_printf(out, " %s |\n", r->access == ACCESS_PUBLIC ? "public" : route_scope(r));
    }
}
