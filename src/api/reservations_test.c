/* Machines that are one tenant's for a time: what is said of them, what is refused, who gets in and who leaves. */
#include "tests/lib/asking.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define SAVES                                                                                      \
    "{'command':['sleep','999999'],'tenant':'lab','env':{'SIM_SAVE_MS':'1000'},"                   \
    "'freeze':{'mode':'signal','grace':'10s'},'resources':{'gpus':1}}"
#define STAYS                                                                                      \
    "{'command':['sleep','999999'],'tenant':'lab','freeze':{'mode':'none'},'resources':{'gpus':1}" \
    "}"
#define PUPIL                                                                                      \
    "{'command':['sleep','999999'],'tenant':'course','reservation':'class','max_time':'2h',"       \
    "'freeze':{'mode':'none'},'resources':{'gpus':1}}"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "lab", NULL);
    asking_tenant(k, "course", NULL);
    asking_person(k, "ana", "lab", "member");
    asking_person(k, "tea", "course", "member");
    asking_person(k, "ops", NULL, "operator");
}

static struct answer *reserve(struct asking *k, const char *name, const char *body)
{
    return ask_with(k, "root", say(k, "PUT /v1/reservations/%s", name), body);
}

/* desk1 is the course's for an hour, an hour from now. */
static int64_t for_course(struct asking *k)
{
    int64_t from_ms = k->t.now_ms + HOUR;
    struct answer *a =
        reserve(k, "class",
                say(k, "{'tenant':'course','from_ms':%lld,'for':'1h','nodes':['desk1']}",
                    (long long)from_ms));
    CHECK_STATUS(a, 200);
    CHECK_STR(at_str(a, "open"), "false");
    CHECK_INT(at_int(a, "from_ms"), from_ms);
    CHECK_INT(at_int(a, "until_ms"), from_ms + HOUR);
    return from_ms;
}

static void wait_until(struct asking *k, int64_t t_ms)
{
    asking_wait(k, t_ms - k->t.now_ms);
}

/* ---- what is said of them ---- */

static void a_reservation_is_shown_changed_and_given_up(void)
{
    struct asking k;
    begin(&k);
    int64_t from_ms = for_course(&k);
    struct answer *a = ask(&k, "tea", "GET /v1/reservations");
    CHECK_INT(at_len(a, "reservations"), 1);
    CHECK_STR(at_str(a, "reservations.0.name"), "class");
    CHECK_INT(at_int(a, "reservations.0.gpus"), 4);
    a = ask(&k, "tea", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.reserved.name"), "class");
    CHECK_INT(at_int(a, "nodes.0.reserved.from_ms"), from_ms);
    asking_again(&k);
    CHECK_INT(at_int(ask(&k, "tea", "GET /v1/reservations/class"), "from_ms"), from_ms);
    a = CHECK_STATUS(reserve(&k, "class", say(&k, "{'from_ms':%lld}", (long long)k.t.now_ms)), 200);
    CHECK_STR(at_str(a, "open"), "true");
    CHECK_INT(at_int(a, "until_ms"), from_ms + HOUR); /* as it was said before */
    a = CHECK_STATUS(ask(&k, "root", "DELETE /v1/reservations/class"), 200);
    CHECK_STR(at_str(a, "nodes.0"), "desk1");
    CHECK_INT(at_len(ask(&k, "tea", "GET /v1/reservations"), "reservations"), 0);
    CHECK_STR(at_str(ask(&k, "tea", "GET /v1/nodes"), "nodes.0.reserved"), "null");
    asking_end(&k);
}

static void they_are_listed_in_the_order_in_which_they_begin(void)
{
    static const int hours[] = { 9, 3, 6 };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(hours); i++)
        CHECK_STATUS(
            reserve(&k, say(&k, "r%d", hours[i]),
                    say(&k, "{'tenant':'course','from_ms':%lld,'for':'1h','nodes':['desk1']}",
                        (long long)(k.t.now_ms + hours[i] * HOUR))),
            200);
    struct answer *a = ask(&k, "root", "GET /v1/reservations");
    CHECK_STR(at_str(a, "reservations.0.name"), "r3");
    CHECK_STR(at_str(a, "reservations.1.name"), "r6");
    CHECK_STR(at_str(a, "reservations.2.name"), "r9");
    asking_end(&k);
}

static void whose_it_is_is_told_to_those_who_see_that_tenant_alone(void)
{
    struct asking k;
    begin(&k);
    for_course(&k);
    struct answer *a = CHECK_STATUS(ask(&k, "ana", "GET /v1/reservations"), 200);
    CHECK_INT(at_len(a, "reservations"), 1);
    CHECK_STR(at_str(a, "reservations.0.name"), "null");
    CHECK_STR(at_str(a, "reservations.0.tenant"), "null");
    CHECK_STR(at_str(a, "reservations.0.nodes.0.name"), "desk1");
    CHECK(!strstr(a->text, "course"));
    CHECK(!strstr(ask(&k, "ana", "GET /v1/nodes")->text, "class"));
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/reservations/class"), 404, "not_found", NULL,
                  "there is no reservation 'class', or it has ended");
    CHECK_STATUS(ask(&k, "ops", "GET /v1/reservations/class"), 200);
    asking_end(&k);
}

static void who_is_no_operator_makes_and_ends_none(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/reservations/class", "{'for':'1h'}", 403, NULL, "'operator' or 'admin'" },
        { "DELETE /v1/reservations/class", NULL, 403, NULL, "'operator' or 'admin'" },
    };
    struct asking k;
    begin(&k);
    for_course(&k);
    CHECK_BAD(&k, "tea", rows);
    CHECK_BAD(&k, "ana", rows);
    CHECK_STATUS(ask_with(&k, "ops", "PUT /v1/reservations/class", "{'for':'90m'}"), 200);
    asking_end(&k);
}

static void what_may_still_run_there_is_named_with_how_it_leaves(void)
{
    struct asking k;
    begin(&k);
    uint64_t stays = asking_submit(&k, "ana", STAYS), saves = asking_submit(&k, "ana", SAVES);
    for_course(&k);
    struct answer *a = ask(&k, "ops", "GET /v1/reservations/class");
    CHECK_INT(at_len(a, "jobs"), 2);
    CHECK_INT(int_of(at_where(a, "jobs", "leaves", "stays"), "id"), stays);
    CHECK_STR(text_of(at_where(a, "jobs", "leaves", "stays"), "leaves_ms"), "null");
    CHECK_INT(int_of(at_where(a, "jobs", "leaves", "frozen"), "id"), saves);
    CHECK_INT(int_of(at_where(a, "jobs", "leaves", "frozen"), "leaves_ms") < k.t.now_ms + HOUR, 1);
    CHECK_STR(text_of(at_where(a, "jobs", "leaves", "stays"), "user"), "ana");
    asking_end(&k);
}

static void so_many_gpus_are_found_where_there_are_enough(void)
{
    static const struct sim_node two[] = {
        { "a1", "A100", 4, 40960, 16000, 65536 },
        { "b1", "H100", 2, 81920, 16000, 65536 },
    };
    static const struct sim_config sim = { .node = two, .nodes = 2 };
    struct asking k;
    asking_begin(&k, &(struct asking_site){ .sim = &sim });
    asking_tenant(&k, "course", NULL);
    struct answer *a =
        reserve(&k, "class", "{'tenant':'course','for':'1h','gpus':1,'gpu_type':'H100'}");
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "nodes.0.name"), "b1");
    a = reserve(&k, "more", "{'tenant':'course','for':'1h','gpus':3}");
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "nodes.0.name"), "a1");
    CHECK_REFUSED(reserve(&k, "most", "{'tenant':'course','for':'1h','gpus':1}"), 409, "conflict",
                  "gpus", "");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/reservations"), "reservations"), 2);
    asking_end(&k);
}

/* ---- a class ---- */

static void a_class_has_its_machine_from_the_second_it_begins(void)
{
    struct asking k;
    begin(&k);
    uint64_t before = asking_submit(&k, "ana", SAVES);
    int64_t from_ms = for_course(&k);
    uint64_t pupil = asking_submit(&k, "tea", PUPIL);
    struct answer *a = ask(&k, "tea", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)pupil));
    CHECK_STR(at_str(a, "reasons.0.code"), "reserved");
    CHECK_HAS(at_str(a, "reasons.0.text"), "its reservation 'class' begins");
    wait_until(&k, from_ms - 60000);
    CHECK_STR(asking_state(&k, before), "running");
    wait_until(&k, from_ms - 1);
    CHECK_STR(asking_state(&k, before), "frozen"); /* gone in time */
    CHECK_STR(asking_state(&k, pupil), "queued");
    wait_until(&k, from_ms);
    CHECK_STR(asking_state(&k, pupil), "running");
    uint64_t other = asking_submit(&k, "ana", "{'command':['true'],'resources':{'gpus':1}}");
    asking_wait(&k, 60000);
    CHECK_STR(asking_state(&k, other), "queued");
    a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)other));
    CHECK_HAS(at_str(a, "reasons.0.text"), "is free from 2023-11-15T00:13:20Z on (reserved)");
    CHECK(!strstr(a->text, "class")); /* it is no business of the lab's */
    asking_again(&k);
    CHECK_STR(asking_state(&k, pupil), "running");
    CHECK_STR(asking_state(&k, before), "frozen");
    wait_until(&k, from_ms + HOUR + 5000);
    CHECK_STR(asking_state(&k, before), "running"); /* behind it, by itself */
    CHECK_STR(asking_state(&k, other), "succeeded");
    CHECK_STR(asking_state(&k, pupil), "running");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/reservations"), "reservations"), 0);
    CHECK_STR(controlling_journal_differs(&k.t), "");
    asking_end(&k);
}

static void the_machine_is_cleared_in_time_also_after_a_crash(void)
{
    struct asking k;
    begin(&k);
    uint64_t before = asking_submit(&k, "ana", SAVES);
    int64_t from_ms = for_course(&k);
    uint64_t pupil = asking_submit(&k, "tea", PUPIL);
    wait_until(&k, from_ms - 31000);
    asking_again(&k);
    wait_until(&k, from_ms);
    CHECK_STR(asking_state(&k, before), "frozen");
    CHECK_STR(asking_state(&k, pupil), "running");
    ask(&k, "tea", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)pupil));
    wait_until(&k, from_ms + HOUR);
    CHECK_STR(asking_state(&k, before), "running");
    asking_end(&k);
}

static void who_names_a_reservation_of_others_is_refused(void)
{
    struct asking k;
    begin(&k);
    for_course(&k);
    struct answer *a = ask_with(&k, "root", "POST /v1/jobs",
                                "{'command':['true'],'tenant':'lab','reservation':'class'}");
    CHECK_REFUSED(a, 403, "denied", "reservation", "'class' is not of tenant 'lab'");
    CHECK_HAS(at_str(a, "hint"), "course");
    ask(&k, "root", "DELETE /v1/reservations/class");
    a = ask_with(&k, "tea", "POST /v1/jobs", "{'command':['true'],'reservation':'class'}");
    CHECK_REFUSED(a, 404, "not_found", "reservation", "class");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/jobs?state=all"), "jobs"), 0);
    asking_end(&k);
}

/* ---- what is refused ---- */

#define PUT "PUT /v1/reservations/x"
#define HOUR_ON_DESK1 "'for':'1h','nodes':['desk1']"

static void what_is_wrong_is_refused_by_name_and_nothing_changes(void)
{
    static const struct bad rows[] = {
        { PUT, "{" HOUR_ON_DESK1 "}", 400, "tenant", "tenant" },
        { PUT, "{'tenant':'nobody'," HOUR_ON_DESK1 "}", 404, "tenant", "nobody" },
        { PUT, "{'tenant':''," HOUR_ON_DESK1 "}", 400, "tenant", "it is empty" },
        { PUT, "{'tenant':5," HOUR_ON_DESK1 "}", 400, "tenant", "tenant" },
        { PUT, "{'tenant':'course','nodes':['desk1']}", 400, "for", "for" },
        { PUT, "{'tenant':'course','until_ms':1700007200000," HOUR_ON_DESK1 "}", 400, "for",
          "for" },
        { PUT, "{'tenant':'course','for':'32d','nodes':['desk1']}", 400, "for", "for" },
        { PUT, "{'tenant':'course','for':'soon','nodes':['desk1']}", 400, "for", "soon" },
        { PUT, "{'tenant':'course','from_ms':1699990000000," HOUR_ON_DESK1 "}", 400, "for", "" },
        { PUT, "{'tenant':'course','from_ms':1799990000000," HOUR_ON_DESK1 "}", 400, "from_ms",
          "" },
        { PUT, "{'tenant':'course','from_ms':'now'," HOUR_ON_DESK1 "}", 400, "from_ms", "from_ms" },
        { PUT, "{'tenant':'course','from_ms':-1," HOUR_ON_DESK1 "}", 400, "from_ms", "from_ms" },
        { PUT, "{'tenant':'course','nodes':['desk1'],'until_ms':5}", 400, "until_ms", "" },
        { PUT, "{'tenant':'course','for':'1h'}", 400, "nodes", "nodes" },
        { PUT, "{'tenant':'course','for':'1h','nodes':[]}", 400, "nodes", "nodes" },
        { PUT, "{'tenant':'course','for':'1h','nodes':['none']}", 404, "nodes", "none" },
        { PUT, "{'tenant':'course','for':'1h','nodes':['desk1','desk1']}", 400, "nodes", "desk1" },
        { PUT, "{'tenant':'course','for':'1h','nodes':'desk1'}", 400, "nodes", "a list of names" },
        { PUT, "{'tenant':'course','gpus':1," HOUR_ON_DESK1 "}", 400, "gpus", "" },
        { PUT, "{'tenant':'course','gpu_type':'A100'," HOUR_ON_DESK1 "}", 400, "gpu_type", "" },
        { PUT, "{'tenant':'course','for':'1h','gpus':0}", 400, "gpus", "at least 1" },
        { PUT, "{'tenant':'course','for':'1h','gpus':-1}", 400, "gpus", "gpus" },
        { PUT, "{'tenant':'course','for':'1h','gpus':9999999}", 400, "gpus", "gpus" },
        { PUT, "{'tenant':'course','for':'1h','gpus':5}", 409, "gpus", "" },
        { PUT, "{'tenant':'course','for':'1h','gpus':1,'gpu_type':'none'}", 400, "gpu_type",
          "no machine has such GPUs" },
        { PUT, "{'tenant':'course','colour':1," HOUR_ON_DESK1 "}", 400, "colour", "colour" },
        { "PUT /v1/reservations/a%20b", "{'tenant':'course'," HOUR_ON_DESK1 "}", 400, "*", "" },
        { "GET /v1/reservations/none", NULL, 404, "*", "none" },
        { "DELETE /v1/reservations/none", NULL, 404, "*", "none" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/reservations"), "reservations"), 0);
    asking_end(&k);
}

static void a_refusal_of_a_field_says_what_to_do(void)
{
    static const char *const bodies[] = {
        ("{'tenant':'nobody'," HOUR_ON_DESK1 "}"),
        "{'tenant':'course','nodes':['desk1']}",
        "{'tenant':'course','for':'1h','gpus':0}",
        "{'tenant':'course','for':'1h','gpus':5}",
        "{'tenant':'course','for':'1h','nodes':['none']}",
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        if (strlen(at_str(ask_with(&k, "root", PUT, bodies[i]), "hint")) < 7)
            test_fail(__FILE__, __LINE__, "no hint for %s", bodies[i]);
    asking_end(&k);
}

static void two_cannot_have_a_machine_at_the_same_time(void)
{
    struct asking k;
    begin(&k);
    for_course(&k); /* in an hour */
    struct answer *a = reserve(&k, "two", "{'tenant':'lab','for':'61m','nodes':['desk1']}");
    CHECK_REFUSED(a, 409, "conflict", "*", "is reserved for 'class' at that time");
    CHECK_STATUS(reserve(&k, "two", "{'tenant':'lab','for':'59m','nodes':['desk1']}"), 200);
    a = reserve(&k, "two", "{'for':'2h'}"); /* nor by a change */
    CHECK_REFUSED(a, 409, "conflict", "*", "is reserved for 'class' at that time");
    CHECK_INT(at_int(ask(&k, "root", "GET /v1/reservations/two"), "until_ms"),
              k.t.now_ms + 59 * 60000);
    asking_end(&k);
}

static void who_reserved_and_gave_up_is_in_the_audit_with_before_and_after(void)
{
    struct asking k;
    begin(&k);
    for_course(&k);
    CHECK_STATUS(ask_with(&k, "ops", "PUT /v1/reservations/class", "{'for':'2h'}"), 200);
    CHECK_STATUS(ask(&k, "ops", "DELETE /v1/reservations/class"), 200);
    struct answer *a = ask(&k, "root", "GET /v1/audit?subject=class");
    CHECK_INT(at_len(a, "rows"), 3);
    CHECK_STR(at_str(a, "rows.0.what"), "reservation.delete");
    CHECK_STR(at_str(a, "rows.0.who"), "ops");
    CHECK_STR(at_str(a, "rows.0.tenant"), "course");
    CHECK_STR(at_str(a, "rows.1.what"), "reservation.set");
    CHECK_STR(at_str(a, "rows.2.who"), "root");
    CHECK_HAS(a->text, "desk1");
    asking_end(&k);
}

static const struct test tests[] = {
    { "a reservation is shown, changed and given up, also after a crash",
      a_reservation_is_shown_changed_and_given_up },
    { "they are listed in the order in which they begin",
      they_are_listed_in_the_order_in_which_they_begin },
    { "whose it is is told to those who see that tenant alone",
      whose_it_is_is_told_to_those_who_see_that_tenant_alone },
    { "who is no operator makes none and ends none", who_is_no_operator_makes_and_ends_none },
    { "what may still run there when it begins is named, with how it leaves",
      what_may_still_run_there_is_named_with_how_it_leaves },
    { "so many GPUs are found where there are enough",
      so_many_gpus_are_found_where_there_are_enough },
    { "a class has its machine from the second it begins, and the job before goes on behind it",
      a_class_has_its_machine_from_the_second_it_begins },
    { "the machine is cleared in time also after a crash",
      the_machine_is_cleared_in_time_also_after_a_crash },
    { "a job of another tenant that names it is refused, and one that comes too late",
      who_names_a_reservation_of_others_is_refused },
    { "what is wrong is refused by name, and nothing changes",
      what_is_wrong_is_refused_by_name_and_nothing_changes },
    { "a refusal of a field says what to do", a_refusal_of_a_field_says_what_to_do },
    { "two cannot have a machine at the same time", two_cannot_have_a_machine_at_the_same_time },
    { "who reserved and who gave up is in the audit",
      who_reserved_and_gave_up_is_in_the_audit_with_before_and_after },
};
TEST_CASES(tests)
