/* The fields of a job, each wrong in every way: refused by its name, with a way out, and nothing is written down.
 *
 * The fields come from what OpenAPI prints, so a new one without a row in `fields` fails. */
#include <stdio.h>

#include "tests/lib/asking.h"

/* One value a line, as JSON; @N is a text of N letters, [@N] a list of N of them, {@N} an object with such a key. */
#define NOT_TEXT "5\n1.5\ntrue\n[]\n{}\n"
#define CONTROL "'a\\u0000b'\n'a\\nb'\n'\\u001b[31mred'\n'\\u007f'\n"
#define TEXT(more) NOT_TEXT CONTROL "@" #more "\n"
#define PATH NOT_TEXT CONTROL "''\n'here'\n'./x'\n'/a/../b'\n'/..'\n/@4095\n"
#define NUMBER                                                                                     \
    "'many'\n''\ntrue\n[]\n{}\n-1\n-0.5\n1e99\n18446744073709551616\n-9223372036854775808\n"
#define WORD "5\ntrue\n[]\n{}\n''\n'nonsense'\n'a\\u0000b'\n@65\n'NORMAL '\n"
#define FLAG "0\n1\n'yes'\n''\n[]\n{}\n"
#define SIZE                                                                                       \
    "''\n'big'\n'16 Gi'\n'-1Gi'\n'1Mi '\n'0'\n'1K'\n'999999Ti'\n@65\ntrue\n[]\n{}\n-1\n0\n1.5\n"   \
    "9223372036854775808\n'1\\u0000Gi'\n"
#define DURATION                                                                                   \
    "''\n'soon'\n'-1h'\n'1 h'\n'1h1h'\n'1s1h'\n'99999d'\n'1:60'\n@65\ntrue\n[]\n{}\n-1\n1.5\n"     \
    "9223372036854775808\n'1\\u0000h'\n"
#define SIGNAL "''\n'NOPE'\n'usr1'\n0\n65\n-1\n1.5\ntrue\n[]\n{}\n'SIG'\n@17\n"

static const struct {
    const char *name, *values;
} fields[] = {
    { "name", TEXT(254) },
    { "tenant", TEXT(254) },
    { "reservation", TEXT(254) },
    { "profile", TEXT(254) "'no-such-profile'\n" },
    { "command", "[]\n''\n['']\n[5]\n[['true']]\n5\ntrue\n{}\n['a\\u0000b']\n'a\\u0000b'\n[@4097]"
                 "\n@131073\n" },
    { "workdir", PATH },
    { "cwd", PATH },
    { "env", "5\n'A=b'\n[]\n{'':'x'}\n{'1A':'x'}\n{'A=B':'x'}\n{'A "
             "B':'x'}\n{'A':null}\n{'A':[]}\n{'A':{}}\n"
             "{'A':'a\\u0000b'}\n{@257}\n" },
    { "image", TEXT(1025) },
    { "volumes",
      "5\n'/a:/b'\n{}\n[5]\n['a:/b']\n['/a:b']\n['/a:b:rx']\n['/a:/../b']\n['/a\\n:/b']\n[{}]\n"
      "[{'from':5}]\n[{'from':'/a','to':'b'}]\n[{'from':'/a','colour':1}]\n[{'from':'/"
      "a','ro':'yes'}]\n" },
    { "resources.gpus", NUMBER "17\n1.5\n" },
    { "resources.gpu_share", NUMBER "0\n1\n0.0001\n" },
    { "resources.gpu_mem", SIZE },
    { "resources.mem", SIZE },
    { "resources.scratch", SIZE },
    { "resources.gpu_type", TEXT(1025) },
    { "resources.devices",
      "5\n'a/b'\n[]\ntrue\n{'':1}\n{'a b':1}\n{'/a':1}\n{'a\\u0000b':1}\n{'a':0}\n{'a':-1}\n"
      "{'a':1.5}\n{'a':'1'}\n{'a':65536}\n{'a':null}\n{@254}\n"
      "{'a1':1,'a2':1,'a3':1,'a4':1,'a5':1,'a6':1,'a7':1,'a8':1,'a9':1}\n" },
    { "resources.cpus", NUMBER "0\n0.0001\n4097\n'0'\n'1.0001'\n'1 '\n'm'\n" },
    { "replicas", NUMBER "0\n1.5\n4097\n" },
    { "placement.scope", WORD },
    { "placement.layout", WORD },
    { "placement.linked", FLAG },
    { "max_time", DURATION },
    { "priority", WORD },
    { "begin", "true\n[]\n{}\n''\n'tomorrow'\n'now+2h'\n'2026-03-01'\n'2026-03-01T12:30:00'\n"
               "'2026-02-30T12:30:00Z'\n0\n-1\n1.5\n1772368200\n253402300800000\n" },
    { "after", "true\n{}\n''\n'late:7'\n'never:7'\n'7_3'\n0\n-1\n1.5\n[0]\n[[7]]\n['ok:']\n[null]\n"
               "[9007199254740992]\n[987654321]\n'any:987654321'\n" },
    { "freeze.mode", WORD },
    { "freeze.signal", SIGNAL },
    { "freeze.grace", DURATION },
    { "retries", NUMBER "1.5\n101\n" },
    { "requeue", FLAG },
    { "array",
      "5\n[]\n{}\ntrue\n''\n'9-0'\n'0-'\n'-9'\n'a-b'\n'0-9:0'\n'0-100000'\n'0-99999999999'\n'1,2'\n"
      "'0-9\\u0000'\n" },
    { "network", WORD },
    { "kind", WORD },
    { "held", FLAG },
    { "tty", FLAG },
    { "stdin", FLAG },
};
static const char *const sections[] = { "resources", "placement", "freeze" };

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
    CHECK_STATUS(ask(k, "ana", "GET /v1/whoami"), 200); /* their token is made */
}

static void put_value(struct buf *b, struct str value)
{
    size_t n = 0;
    const char *at = memchr(value.p, '@', value.n);
    if (!at) {
        buf_add(b, value);
        return;
    }
    n = strtoul(at + 1, NULL, 10);
    bool list = value.p[0] == '[', key = value.p[0] == '{';
    buf_addz(b, key ? "{'" : list ? "[" : value.p[0] == '/' ? "'/" : "'");
    for (size_t i = 0; i < n; i++)
        buf_addz(b, !list ? "x" : i ? ",'x'" : "'x'");
    buf_addz(b, key ? "':1}" : list ? "]" : "'");
}

/* {"command":["true"]} with that field, which may be one of a section. */
static void spec_with(struct buf *b, const char *field, struct str value)
{
    const char *dot = strchr(field, '.');
    buf_addz(b, "{");
    if (strcmp(field, "command") != 0)
        buf_addz(b, "'command':['true'],");
    if (dot)
        buf_printf(b, "'%.*s':{'%s':", (int)(dot - field), field, dot + 1);
    else
        buf_printf(b, "'%s':", field);
    put_value(b, value);
    buf_addz(b, dot ? "}}" : "}");
    for (char *p = b->p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
}

/* A refusal that programs and people can use.  Says what is not so. */
static bool is_whole(struct answer *a, int status, const char *field, const char *last,
                     const char *what)
{
    const char *detail = at_str(a, "detail"), *hint = at_str(a, "hint");
    bool good = a->status == status && strcmp(at_str(a, "field"), field) == 0 &&
                strstr(detail, last) && strcmp(hint, "(none)") != 0 &&
                strlen(detail) + strlen(hint) < 400;
    if (!good)
        fprintf(stderr, "%.150s: %d, not %d of %s: %.500s\n", what, a->status, status, field,
                a->text);
    return good;
}

static const char *last_of(const char *field)
{
    const char *dot = strrchr(field, '.');
    return dot ? dot + 1 : field;
}

static struct answer *submit(struct asking *k, const char *call, const char *body)
{
    return ask_so(k,
                  &(struct question){
                      .who = "ana", .request = call, .bytes = body, .type = "application/json" });
}

static bool is_section(const char *name)
{
    bool is = false;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        is = is || strcmp(name, sections[i]) == 0;
    return is;
}

static bool has_row(const char *name)
{
    bool has = false;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        has = has || strcmp(fields[i].name, name) == 0;
    return has;
}

static void every_field_of_a_job_has_its_row(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, NULL, "GET /v1/openapi.json");
    const struct json *all = at(a, "components.schemas.JobSpec.properties");
    size_t n = 0;
    for (struct json_member m = { 0 }; json_next_member(all, &m);) {
        const struct json *inner = is_section(m.key.p) ? json_find(m.value, "properties") : NULL;
        for (struct json_member i = { 0 }; inner && json_next_member(inner, &i); n++)
            if (!has_row(say(&k, "%s.%s", m.key.p, i.key.p)))
                test_fail(__FILE__, __LINE__, "%s.%s has no row in fields", m.key.p, i.key.p);
        if (!inner && !has_row(m.key.p))
            test_fail(__FILE__, __LINE__, "%s has no row in fields", m.key.p);
        n += !inner;
    }
    CHECK_INT(n, ARRAY_LEN(fields));
    asking_end(&k);
}

/* How many values of a field were not refused as they should be. */
static int try_values(struct asking *k, const char *field, const char *values)
{
    struct str rest = str_of(values), value;
    int wrong = 0;
    while (str_next_line(&rest, &value)) {
        AUTO(buf_free) struct buf body = BUF(1u << 20);
        spec_with(&body, field, value);
        struct answer *a = submit(k, "POST /v1/jobs", body.p);
        wrong += !is_whole(a, 400, field, last_of(field), body.p);
    }
    return wrong;
}

static void every_wrong_value_of_every_field_is_refused_by_its_name(void)
{
    struct asking k;
    int wrong = 0;
    begin(&k);
    uint64_t before = control_stats(k.t.c).commits;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        wrong += try_values(&k, fields[i].name, fields[i].values);
    CHECK_INT(wrong, 0);
    asking_settle(&k);
    CHECK_INT(control_stats(k.t.c).commits, before);
    asking_end(&k);
}

static void it_is_refused_the_same_way_before_it_is_submitted_and_with_its_place_in_a_batch(void)
{
    struct asking k;
    int wrong = 0;
    begin(&k);
    uint64_t before = control_stats(k.t.c).commits;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        AUTO(buf_free) struct buf body = BUF(1u << 20), batch = BUF(1u << 20);
        struct str rest = str_of(fields[i].values), value;
        str_next_line(&rest, &value);
        spec_with(&body, fields[i].name, value);
        buf_printf(&batch, "{\"jobs\":[{\"command\":[\"true\"]},%s]}", body.p);
        wrong += !is_whole(submit(&k, "POST /v1/jobs/check", body.p), 400, fields[i].name,
                           last_of(fields[i].name), body.p);
        wrong += !is_whole(submit(&k, "POST /v1/jobs", batch.p), 400,
                           say(&k, "jobs[1].%s", fields[i].name), last_of(fields[i].name), batch.p);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(control_stats(k.t.c).commits, before);
    asking_end(&k);
}

/* Too many, or too long, of what is right one by one. */
static void lists_have_their_bounds(void)
{
    static const struct {
        const char *field, *head, *part, *tail;
        int n;
    } rows[] = {
        { "env", "{'command':['true'],'env':{", "'A%d':'x'", "}}", 1025 },
        { "volumes", "{'command':['true'],'volumes':[", "'/a%d'", "]}", 65 },
        { "after", "{'command':['true'],'after':[", "'ok:%d'", "]}", 65 },
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf b = BUF(1u << 20);
        buf_addz(&b, rows[i].head);
        for (int n = 1; n <= rows[i].n; n++)
            buf_printf(&b, "%s%.*s%d%s", n > 1 ? "," : "",
                       (int)(strchr(rows[i].part, '%') - rows[i].part), rows[i].part, n,
                       strchr(rows[i].part, '%') + 2);
        buf_addz(&b, rows[i].tail);
        for (char *p = b.p; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        CHECK_REFUSED(submit(&k, "POST /v1/jobs", b.p), 400, "invalid", rows[i].field,
                      rows[i].field);
    }
    asking_end(&k);
}

#define T "'command':['true']"
static void what_is_right_alone_and_wrong_together_is_refused_by_the_name_of_one(void)
{
    static const struct bad rows[] = {
        { "POST /v1/jobs", "{}", 400, "command", "command" },
        { "POST /v1/jobs", "{'command':null}", 400, "command", "command" },
        { "POST /v1/jobs", "{" T ",'resources':{'gpus':1,'gpu_share':0.5}}", 400,
          "resources.gpu_share", "gpu_share" },
        { "POST /v1/jobs", "{" T ",'resources':{'gpus':1,'gpu_mem':'1Gi'}}", 400,
          "resources.gpu_mem", "gpu_mem" },
        { "POST /v1/jobs", "{" T ",'resources':{'gpu_type':'A100'}}", 400, "resources.gpu_type",
          "gpu_type" },
        { "POST /v1/jobs", "{" T ",'tty':true,'replicas':2}", 400, "tty", "tty" },
        { "POST /v1/jobs", "{" T ",'resources':5}", 400, "resources", "resources" },
        { "POST /v1/jobs", "{" T ",'resources':[]}", 400, "resources", "resources" },
        { "POST /v1/jobs", "{" T ",'placement':'node'}", 400, "placement", "placement" },
        { "POST /v1/jobs", "{" T ",'colour':1}", 400, "colour", "colour" },
        { "POST /v1/jobs", "{" T ",'Name':'x'}", 400, "Name", "Name" },
        { "POST /v1/jobs", "{" T ",'resources':{'gpu':1}}", 400, "resources.gpu", "gpu" },
        { "POST /v1/jobs", "{" T ",'resources':{'mem':'60Ti'}}", 400, "resources.mem", "mem" },
        { "POST /v1/jobs", "{" T ",'resources':{'gpus':16}}", 400, "resources.gpus", "gpus" },
        { "POST /v1/jobs", "{" T ",'resources':{'cpus':4000}}", 400, "resources.cpus", "cpus" },
        { "POST /v1/jobs", "{" T ",'replicas':4000}", 400, "replicas", "replicas" },
        { "POST /v1/jobs", "{" T ",'placement':{'scope':'node','layout':'spread'},'replicas':2}",
          400, "placement.layout", "layout" },
        { "POST /v1/jobs", "{" T ",'tenant':'nobody'}", 403, "tenant",
          "'ana' is not a member of 'nobody'" },
        { "POST /v1/jobs", "{" T ",'reservation':'none'}", 404, "reservation", "none" },
        { "POST /v1/jobs", "{'jobs':[]}", 400, "jobs", "a list of 1 to 1000 jobs" },
        { "POST /v1/jobs", "{'jobs':5}", 400, "jobs", "a list of 1 to 1000 jobs" },
        { "POST /v1/jobs", "{'jobs':{}}", 400, "jobs", "a list of 1 to 1000 jobs" },
        { "POST /v1/jobs", "{'jobs':[5]}", 400, "jobs[0]", "" },
        { "POST /v1/jobs", "{'jobs':[{" T "}],'name':'x'}", 400, "name", "" },
        { "POST /v1/jobs", "{'jobs':[{" T "},{" T ",'tenant':'other'}]}", 403, "jobs[1].tenant",
          "other" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "ana", rows);
    CHECK_REFUSED(ask_with(&k, "root", "POST /v1/jobs", "{" T ",'tenant':'nobody'}"), 404,
                  "not_found", "tenant", "nobody");
    asking_end(&k);
}

static void a_batch_is_of_one_tenant_and_of_a_thousand_jobs_at_most(void)
{
    struct asking k;
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    begin(&k);
    asking_tenant(&k, "speech", NULL);
    asking_person(&k, "ana", "speech", "member");
    CHECK_REFUSED(ask_with(&k, "ana", "POST /v1/jobs",
                           "{'jobs':[{" T ",'tenant':'vision'},{" T ",'tenant':'speech'}]}"),
                  400, "invalid", "jobs[1].tenant", "a batch is for one tenant");
    buf_addz(&b, "{\"jobs\":[");
    for (int i = 0; i < 1001; i++)
        buf_addz(&b, i ? ",{\"command\":[\"true\"]}" : "{\"command\":[\"true\"]}");
    buf_addz(&b, "]}");
    CHECK_REFUSED(submit(&k, "POST /v1/jobs", b.p), 400, "invalid", "jobs",
                  "a list of 1 to 1000 jobs");
    CHECK_INT(at_len(ask(&k, "ana", "GET /v1/jobs?state=all"), "jobs"), 0);
    asking_end(&k);
}

static const struct test tests[] = {
    { "every field of a job has its row", every_field_of_a_job_has_its_row },
    { "every wrong value of every field is refused by its name, with the way out, and changes "
      "nothing",
      every_wrong_value_of_every_field_is_refused_by_its_name },
    { "a job is refused the same way by /v1/jobs/check, and inside a batch with its place",
      it_is_refused_the_same_way_before_it_is_submitted_and_with_its_place_in_a_batch },
    { "lists have their bounds", lists_have_their_bounds },
    { "fields that are right alone and wrong together are refused by the name of one",
      what_is_right_alone_and_wrong_together_is_refused_by_the_name_of_one },
    { "a batch is of one tenant, and of a thousand jobs at most",
      a_batch_is_of_one_tenant_and_of_a_thousand_jobs_at_most },
};
TEST_CASES(tests)
