/* print_tenant - what a tenant is on Kubernetes, one request a line as JSON: for tests/kube.
 *
 * usage: print_tenant [--prefix P] [--own NS] [--limit RESOURCE=N] [--member NAME=ROLE] [--removed] [--] TENANT
 *        print_tenant [--prefix P] --claim USER TENANT
 */
#include <stdio.h>

#include "base/parse.h"
#include "engine/kube/tenant_make.h"

#define MEMBERS 64

struct asked {
    struct tenant_site site;
    struct engine_tenant tenant;
    struct engine_member member[MEMBERS];
    struct str claim;
};

static void die(const char *what)
{
    fprintf(stderr, "print_tenant: %s\n", what);
    exit(2);
}

static void add_limit(struct asked *q, struct str name, struct str text)
{
    struct err e;
    for (int r = 0; r < RES_COUNT; r++)
        if (str_is(name, resource_name((enum resource)r)) &&
            parse_u64(text, UINT64_MAX, &q->tenant.limit.of[r], &e) == 0)
            return;
    die("--limit RESOURCE=N, in thousandths or MiB");
}

static void add_member(struct asked *q, struct str name, struct str role)
{
    static const char *const roles[] = {
#define X(id, name) name,
        ENGINE_MEMBER_ROLES(X)
#undef X
    };
    for (int r = 0; r < MEMBER_ROLE_COUNT && q->tenant.members < MEMBERS; r++)
        if (str_is(role, roles[r])) {
            q->member[q->tenant.members++] =
                (struct engine_member){ name, (enum engine_member_role)r };
            return;
        }
    die("--member NAME=viewer|member|lead");
}

static void read_option(struct asked *q, const char *name, const char *value)
{
    struct str left, right;
    str_cut(str_of(value), '=', &left, &right);
    if (strcmp(name, "--prefix") == 0)
        q->site.prefix = str_of(value);
    else if (strcmp(name, "--own") == 0)
        q->site.own = str_of(value);
    else if (strcmp(name, "--claim") == 0)
        q->claim = str_of(value);
    else if (strcmp(name, "--limit") == 0)
        add_limit(q, left, right);
    else if (strcmp(name, "--member") == 0)
        add_member(q, left, right);
    else
        die("an unknown option");
}

static void print(const struct tenant_object *o)
{
    AUTO(buf_free) struct buf b = BUF(4u << 20);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "method", str_of(o->method));
    json_put_str(&w, "path", str_of(o->path));
    if (o->body.n)
        json_put_raw(&w, "body", o->body);
    json_end(&w, '}');
    puts(b.p);
}

int main(int argc, char **argv)
{
    struct asked q = { .site = { STR("nightshift-"), STR("nightshift"), STR("nvidia.com/gpu"),
                                 STR("") },
                       .tenant = { .limit = AMOUNTS_NO_LIMIT } };
    struct tenant_object at[TENANT_OBJECTS];
    AUTO(arena_free) struct arena a = { 0 };
    size_t n = 0;
    struct err e;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0 && i + 2 == argc)
            q.tenant.name = str_of(argv[++i]);
        else if (strcmp(argv[i], "--removed") == 0)
            q.tenant.removed = true;
        else if (i + 1 < argc && argv[i][0] == '-')
            read_option(&q, argv[i], argv[i + 1]), i++;
        else
            q.tenant.name = str_of(argv[i]);
    }
    q.tenant.member = q.member;
    if (!q.tenant.name.n)
        die("which tenant?");
    if (q.claim.n) {
        struct tenant_claim c = { .tenant = q.tenant.name,
                                  .user = q.claim,
                                  .bytes = UINT64_C(1) << 30,
                                  .access = STR("ReadWriteOnce") };
        tenant_make_claim(&q.site, &c, &a, &at[n++]);
    } else if (tenant_site_check(&q.site, &e) < 0 ||
               tenant_make(&q.site, &q.tenant, &a, at, &n, &e) < 0) {
        die(e.msg);
    }
    for (size_t i = 0; i < n; i++)
        print(&at[i]);
    return 0;
}
