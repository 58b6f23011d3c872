/* What happens, as it happens: server-sent events to those who may see them, from any number on. */
#include "tests/lib/asking.h"

#define HELD "{'command':['true'],'held':true}"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "eve", "speech", "member");
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* The number of the last event of a stream. */
static unsigned long long last_number(const char *text)
{
    unsigned long long n = 0;
    for (const char *p = text; (p = strstr(p, "id: ")); p++)
        n = strtoull(p + 4, NULL, 10);
    return n;
}

static void make_some(struct asking *k)
{
    static const char *const verbs[] = { "release", "hold", "release", "cancel" };
    CHECK_STATUS(ask_with(k, "root", "POST /v1/nodes/desk1/drain", "{}"), 200);
    uint64_t id = asking_submit(k, "ana", HELD);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        CHECK_STATUS(
            ask(k, "ana", say(k, "POST /v1/jobs/%llu/%s", (unsigned long long)id, verbs[i])), 200);
}

static void an_event_is_a_frame_with_its_number_kind_and_data(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/events");
    CHECK_STATUS(a, 200);
    CHECK_STR(a->type, "text/event-stream");
    asking_submit(&k, "ana", HELD);
    const char *text = hear(&k, a, "\"job\":1");
    CHECK_HAS(text, "id: ");
    CHECK_HAS(text, "event: job");
    CHECK_HAS(text, "data: {\"number\":");
    leave(&k, a);
    asking_end(&k);
}

static void they_go_on_after_the_last_one_seen_over_a_crash(void)
{
    struct asking k;
    begin(&k);
    make_some(&k);
    struct answer *a = ask(&k, "root", "GET /v1/events?after=0");
    const char *whole = say(&k, "%s", hear(&k, a, "\"state\":\"cancelled\""));
    leave(&k, a);
    unsigned long long last = last_number(whole),
                       first = strtoull(strstr(whole, "id: ") + 4, NULL, 10);
    unsigned long long middle = (first + last) / 2;
    asking_again(&k);
    struct question q = { .who = "root", .request = "GET /v1/events" };
    q.header[0] = (struct asked_header){ "Last-Event-ID", say(&k, "%llu", middle) };
    a = ask_so(&k, &q); /* as a browser says it */
    const char *rest = hear(&k, a, say(&k, "id: %llu\n", last));
    CHECK_HAS(rest, say(&k, "id: %llu\n", middle + 1));
    CHECK(!strstr(rest, say(&k, "id: %llu\n", middle)));
    for (unsigned long long n = middle + 1; n <= last; n++)
        CHECK(count(rest, say(&k, "id: %llu\n", n)) == count(whole, say(&k, "id: %llu\n", n)));
    leave(&k, a);
    asking_end(&k);
}

static void the_header_has_precedence_over_the_query(void)
{
    struct asking k;
    begin(&k);
    make_some(&k);
    struct question q = { .who = "root", .request = "GET /v1/events?after=0" };
    q.header[0] = (struct asked_header){ "Last-Event-ID", "1000000" };
    struct answer *a = ask_so(&k, &q);
    asking_settle(&k);
    asking_submit(&k, "ana", HELD);
    struct answer *other = ask(&k, "root", "GET /v1/events?after=0");
    hear(&k, other, "\"job\":2"); /* what was to come has come */
    hear(&k, a, "");
    CHECK(!strstr(a->text, "\"job\":1"));
    leave(&k, a);
    leave(&k, other);
    asking_end(&k);
}

static void what_happens_to_another_tenants_things_is_not_told(void)
{
    struct asking k;
    begin(&k);
    struct answer *mine = ask(&k, "ana", "GET /v1/events?after=0");
    asking_submit(&k, "eve", "{'command':['sleep','9999'],'name':'secret'}");
    asking_submit(&k, "ana", "{'command':['sleep','9999'],'name':'mine'}");
    hear(&k, mine, "\"job\":2");
    CHECK(!strstr(mine->text, "\"job\":1,") && !strstr(mine->text, "secret") &&
          !strstr(mine->text, "\"eve\""));
    struct answer *all = ask(&k, "root", "GET /v1/events?after=0");
    hear(&k, all, "\"job\":2");
    CHECK_HAS(all->text, "\"job\":1");
    leave(&k, mine);
    leave(&k, all);
    asking_end(&k);
}

static void who_leaves_and_who_stays_are_apart(void)
{
    struct asking k;
    begin(&k);
    struct answer *gone = ask(&k, "ana", "GET /v1/events"),
                  *stays = ask(&k, "ana", "GET /v1/events");
    leave(&k, gone);
    asking_submit(&k, "ana", HELD);
    hear(&k, stays, "\"job\":1");
    CHECK(!strstr(gone->text, "\"job\":1"));
    leave(&k, stays);
    asking_end(&k);
}

static void whoever_may_see_less_has_nothing_open_any_more(void)
{
    static const struct {
        const char *request, *body;
        bool more; /* they may: it goes on */
    } acts[] = {
        { "PUT /v1/tenants/vision/members/ana", "{'role':'viewer'}", false },
        { "PUT /v1/tenants/vision/members/ana", "{'role':'lead'}", true },
        { "PUT /v1/users/ana", "{'role':'operator'}", false },
        { "PUT /v1/users/ana", "{'role':'none'}", false },
        { "DELETE /v1/tokens/spare?user=ana", NULL, false },
        { "DELETE /v1/tenants/vision/members/ana", NULL, false },
    };
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "ana", "POST /v1/tokens", "{'name':'spare'}"), 201);
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        struct answer *a = ask(&k, "ana", "GET /v1/events");
        CHECK_AT(i, ask_with(&k, "root", acts[i].request, acts[i].body)->status < 300);
        if (!acts[i].more) {
            hear_all(&k, a);
            continue;
        }
        asking_submit(&k, "ana", HELD);
        hear(&k, a, "\"job\":");
        leave(&k, a);
    }
    asking_end(&k);
}

static void streams_end_when_the_server_stops(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/events");
    api_stop(k.api);
    hear_all(&k, a);
    CHECK(asked_over(a->rq));
    asking_end(&k);
}

static void the_journal_begins_where_it_is_asked_to(void)
{
    struct asking k;
    begin(&k);
    make_some(&k);
    const char *whole = say(&k, "%s", hear_all(&k, ask(&k, "root", "GET /v1/journal")));
    CHECK_HAS(whole, "\"ev\":\"submit\"");
    CHECK_STATUS(ask(&k, "root", "GET /v1/journal?since_ms=1"), 200);
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/journal"), 403, "denied", NULL, "'admin'");
    asking_end(&k);
}

static const struct test tests[] = {
    { "an event is a frame with its number, its kind and its data",
      an_event_is_a_frame_with_its_number_kind_and_data },
    { "events go on after the last one seen, over a crash: none lost, none twice",
      they_go_on_after_the_last_one_seen_over_a_crash },
    { "the header has precedence over the query", the_header_has_precedence_over_the_query },
    { "what happens to another tenant's things is not told",
      what_happens_to_another_tenants_things_is_not_told },
    { "who leaves and who stays are apart", who_leaves_and_who_stays_are_apart },
    { "whoever may see less has nothing open any more",
      whoever_may_see_less_has_nothing_open_any_more },
    { "streams end when the server stops", streams_end_when_the_server_stops },
    { "the journal is for administrators, from a time on",
      the_journal_begins_where_it_is_asked_to },
};
TEST_CASES(tests)
