#include "journal/journal.h"

#include "core/policy.h"
#include "tests/lib/test.h"

/* One event of each kind with every field in use, and the line it must be. */
static const struct after two_afters[] = { { { 7 }, 1, AFTER_OK }, { { 20 }, 100, AFTER_BAD } };
static const struct model_limit two_limits[] = { { { "A100|H100", 9 }, 4000 }, { { "T4", 2 }, 0 } };
static const struct slot two_slots[] = { { 3, 0x81, 1000 }, { 7, 0, 0 } };

static struct event_node changed_node(void)
{
    return (struct event_node){ .name = STR("srv1"),
                                .model = STR("A100"),
                                .devices = STR("x/nic=1"),
                                .gpus = 2,
                                .gpu_mem_mib = 40960,
                                .cpu_milli = 63000,
                                .mem_mib = 262143,
                                .link = { 0, 1 } };
}

static struct event_tenant whole_tenant(const struct amounts *half)
{
    return (struct event_tenant){ .name = STR("vision"),
                                  .parent = STR("lab"),
                                  .weight_milli = 2000,
                                  .guarantee_milli = 8000,
                                  .limit = *half,
                                  .user_limit = *half,
                                  .model_limit = two_limits,
                                  .model_limits = 2,
                                  .pools = STR("desks|-"),
                                  .until_ms = 1700000009000,
                                  .budget_gpu_milli_ms = 3600000000,
                                  .budget_from_ms = -4,
                                  .budget_until_ms = 1700000008000,
                                  .removed = true };
}

static struct amounts half_limit(void)
{
    struct amounts half = AMOUNTS_NO_LIMIT;
    half.of[RES_GPU] = 4000;
    half.of[RES_JOBS] = 0;
    return half;
}

static struct event of(enum event_kind kind)
{
    struct event ev = { .t_ms = 1700000000123, .kind = kind };
    struct amounts half = half_limit();
    switch (kind) {
    case EVENT_POLICY:
        for (size_t i = 0; policy_key(i); i++)
            *policy_value(&ev.policy, policy_key(i)) = (int64_t)i;
        break;
    case EVENT_MODEL: ev.model = (struct event_model){ STR("A100"), 2500 }; break;
    case EVENT_TENANT: ev.tenant = whole_tenant(&half); break;
    case EVENT_USER: ev.user = (struct event_user){ STR("vision"), STR("ann \"x\""), 500 }; break;
    case EVENT_POOL: ev.pool = (struct event_pool){ STR("desks"), STR("Mon-Fri 20-08") }; break;
    case EVENT_BURST: ev.burst = (struct event_burst){ STR("vision"), 5, 3, -7, 9, 0, 0 }; break;
    case EVENT_RESERVE:
        ev.reserve = (struct event_reserve){ STR("class"), STR("course"), 5, 1700000000000,
                                             STR("srv1,srv2") };
        break;
    case EVENT_NODE:
        ev.node =
            (struct event_node){ STR("srv1"),    STR("A100"), STR("sw"), STR("desks"), STR("c\"1"),
                                 STR("x/nic=2"), 4,           40960,     64000,        262144,
                                 { 0, 0, 1, 1 } };
        break;
    case EVENT_NODE_CHANGE: ev.node = changed_node(); break;
    case EVENT_NODE_TRAITS: /* of the same form */
    case EVENT_NODE_POOL:
        ev.node_pool = (struct event_node_pool){ STR("srv1"), STR("desks") };
        break;
    case EVENT_JOB_TRAITS: ev.job_traits = (struct event_job_traits){ { 42 }, STR("c|d") }; break;
    case EVENT_NODE_STATE:
        ev.node_state = (struct event_node_state){ STR("srv1"), NODE_DRAIN };
        break;
    case EVENT_SUBMIT:
        ev.submit = (struct event_submit){
            .id = { 42 },
            .tenant = STR("vision"),
            .user = STR("ann"),
            .models = STR("A100|V100"),
            .devices = STR("x/mig-1g=2"),
            .request = { .replicas = 2,
                         .gpus = 3,
                         .gpu_mem_mib = 1024,
                         .cpu_milli = 1500,
                         .mem_mib = 2048,
                         .scope = SCOPE_SWITCH,
                         .layout = LAYOUT_SPREAD,
                         .linked = 1,
                         .disk_mib = 10240,
                         .notebook = 1 },
            .priority = PRIO_HIGH,
            .held = true,
            .begin_ms = 1700000003000,
            .after = two_afters,
            .afters = 2,
            .known = true,
            .frozen = 2,
            .since_ms = -7,
            .wait_ms = -5,
            .ran_ms = 600000,
            .taken = 3,
            .thaw_cost_ms = 30000,
            .restarts = true,
            .limit_ms = 3600000,
            .family = 4000000000,
            .traits = STR("c2|c1"),
        };
        break;
    case EVENT_JOB: ev.job = (struct event_job){ { 42 }, JOB_EV_FREEZE }; break;
    case EVENT_PLACE: ev.place = (struct event_place){ { 42 }, two_slots, 2 }; break;
    case EVENT_TAKE: ev.take = (struct event_take){ { 42 }, { 43 }, TAKE_BUDGET }; break;
    case EVENT_PROMISE: ev.place = (struct event_place){ { 42 }, two_slots, 2 }; break;
    case EVENT_RUNS:
        ev.runs = (struct event_runs){ STR("vision"), STR("ann"), 77,    3,        5,
                                       12500,         7200000,    99000, 360000000 };
        break;
    case EVENT_WAIT: ev.wait = (struct event_wait){ STR("vision"), 2, 90000 }; break;
    case EVENT_TIMES: ev.times = (struct event_times){ 3, 800, 4200 }; break;
    case EVENT_LEDGER:
        ev.ledger = (struct ledger_row){
            20000, STR("vision"), { 1, 2, 3, 4, 5, 6 }, { 7000000000000000, 8, 9, 10 }
        };
        break;
    case EVENT_PAST:
        ev.past = (struct event_past){ STR("vision"), STR("ana"), 123456789012, 4000, 77, 8 };
        break;
    case EVENT_DEMAND:
        ev.demand = (struct event_demand){ .models = STR("A100|V100"),
                                           .cpu_milli = 4000,
                                           .mem_mib = 1024,
                                           .count = 7,
                                           .gpus = 2,
                                           .milli = 1000 };
        break;
    case EVENT_PASS:
    case EVENT_KIND_COUNT: break;
    }
    return ev;
}

#define T "{\"t\":1700000000123,\"ev\":"
static const char *const lines[] = {
    [EVENT_POLICY] = T "\"policy\",\"half_life_ms\":0,\"age_step_ms\":1,\"age_max_steps\":2,"
                       "\"claim_after_ms\":3,\"claims_max\":4,\"cpu_cost_milli\":5,"
                       "\"past_milli\":6,\"take_back\":7,\"take_gain_milli\":8,"
                       "\"min_run_ms\":9,\"thaw_run_ms\":10,\"express_part_milli\":11,"
                       "\"express_milli\":12,\"review_ms\":13,\"window_lead_ms\":14,"
                       "\"budget_freezes\":15}\n",
    [EVENT_MODEL] = T "\"model\",\"name\":\"A100\",\"cost_milli\":2500}\n",
    [EVENT_TENANT] = T "\"tenant\",\"name\":\"vision\",\"parent\":\"lab\",\"weight_milli\":2000,"
                       "\"guarantee_milli\":8000,\"limit\":{\"gpus\":4000,\"jobs\":0},"
                       "\"user_limit\":{\"gpus\":4000,\"jobs\":0},"
                       "\"model_limit\":[[\"A100|H100\",4000],[\"T4\",0]],"
                       "\"pools\":\"desks|-\",\"until_ms\":1700000009000,"
                       "\"budget\":3600000000,\"budget_from_ms\":-4,"
                       "\"budget_until_ms\":1700000008000,\"removed\":true}\n",
    [EVENT_USER] = T "\"user\",\"tenant\":\"vision\",\"user\":\"ann \\\"x\\\"\","
                     "\"weight_milli\":500}\n",
    [EVENT_POOL] = T "\"pool\",\"name\":\"desks\",\"calendar\":\"Mon-Fri 20-08\"}\n",
    [EVENT_NODE] = T "\"node\",\"name\":\"srv1\",\"model\":\"A100\",\"switch\":\"sw\","
                     "\"pool\":\"desks\",\"traits\":\"c\\\"1\",\"devices\":\"x/nic=2\",\"gpus\":4,"
                     "\"gpu_mem_mib\":40960,\"cpu_milli\":64000,\"mem_mib\":262144,"
                     "\"links\":[0,0,1,1]}\n",
    [EVENT_NODE_CHANGE] = T "\"node_change\",\"name\":\"srv1\",\"model\":\"A100\","
                            "\"devices\":\"x/nic=1\",\"gpus\":2,\"gpu_mem_mib\":40960,"
                            "\"cpu_milli\":63000,\"mem_mib\":262143,\"links\":[0,1]}\n",
    [EVENT_NODE_STATE] = T "\"node_state\",\"name\":\"srv1\",\"state\":\"drain\"}\n",
    [EVENT_SUBMIT] = T "\"submit\",\"job\":42,\"tenant\":\"vision\",\"user\":\"ann\","
                       "\"models\":\"A100|V100\",\"devices\":\"x/"
                       "mig-1g=2\",\"replicas\":2,\"gpus\":3,\"gpu_mem_mib\":1024,"
                       "\"cpu_milli\":1500,\"mem_mib\":2048,\"disk_mib\":10240,"
                       "\"notebook\":1,\"within\":\"switch\","
                       "\"layout\":\"spread\",\"linked\":1,\"priority\":\"high\",\"held\":true,"
                       "\"begin_ms\":1700000003000,\"after\":[[7,1,\"ok\"],[20,100,\"bad\"]],"
                       "\"known\":true,\"frozen\":2,\"since_ms\":-7,\"wait_ms\":-5,"
                       "\"ran_ms\":600000,\"taken\":3,\"thaw_cost_ms\":30000,"
                       "\"restarts\":true,\"limit_ms\":3600000,\"family\":4000000000,"
                       "\"traits\":\"c2|c1\"}\n",
    [EVENT_NODE_TRAITS] = T "\"node_traits\",\"name\":\"srv1\",\"traits\":\"desks\"}\n",
    [EVENT_JOB_TRAITS] = T "\"job_traits\",\"job\":42,\"traits\":\"c|d\"}\n",
    [EVENT_JOB] = T "\"job\",\"job\":42,\"what\":\"freeze\"}\n",
    [EVENT_PLACE] = T "\"place\",\"job\":42,\"slots\":[[3,129,1000],[7,0,0]]}\n",
    [EVENT_TAKE] = T "\"take\",\"job\":42,\"by\":43,\"why\":\"budget\"}\n",
    [EVENT_PROMISE] = T "\"promise\",\"job\":42,\"slots\":[[3,129,1000],[7,0,0]]}\n",
    [EVENT_RUNS] =
        T "\"runs\",\"tenant\":\"vision\",\"user\":\"ann\",\"family\":77,\"size\":3,\"bin\":5,"
          "\"ended_milli\":12500,\"exposed_ms\":7200000,\"works_milli\":99000,"
          "\"work_ms\":360000000}\n",
    [EVENT_WAIT] = T "\"wait\",\"tenant\":\"vision\",\"size\":2,\"wait_ms\":90000}\n",
    [EVENT_TIMES] = T "\"times\",\"class\":3,\"p50_milli\":800,\"p90_milli\":4200}\n",
    [EVENT_RESERVE] = T "\"reserve\",\"name\":\"class\",\"tenant\":\"course\",\"from_ms\":5,"
                        "\"until_ms\":1700000000000,\"nodes\":\"srv1,srv2\"}\n",
    [EVENT_NODE_POOL] = T "\"node_pool\",\"name\":\"srv1\",\"pool\":\"desks\"}\n",
    [EVENT_BURST] = T "\"burst\",\"tenant\":\"vision\",\"hour\":5,\"jobs\":3,"
                      "\"sum_milli\":-7,\"squares_milli\":9}\n",
    [EVENT_LEDGER] = T "\"ledger\",\"day\":20000,\"tenant\":\"vision\",\"entitled\":1,\"got\":2,"
                       "\"lent\":3,\"borrowed\":4,\"frozen\":5,\"wanted\":6,"
                       "\"total\":7000000000000000,\"held\":8,\"idle\":9,\"away\":10}\n",
    [EVENT_PASS] = T "\"pass\"}\n",
    [EVENT_PAST] = T "\"past\",\"tenant\":\"vision\",\"user\":\"ana\","
                     "\"cost_ms\":123456789012,\"job_milli\":4000,\"spent\":77,\"late\":8}\n",
    [EVENT_DEMAND] = T "\"demand\",\"models\":\"A100|V100\",\"gpus\":2,\"milli\":1000,"
                       "\"cpu_milli\":4000,\"mem_mib\":1024,\"count\":7}\n",
};
_Static_assert(ARRAY_LEN(lines) == EVENT_KIND_COUNT, "a line for each kind");

static void every_kind_is_written_as_documented_and_read_back(void)
{
    for (int k = 0; k < EVENT_KIND_COUNT; k++) {
        AUTO(buf_free) struct buf one = BUF(1 << 16), two = BUF(1 << 16);
        AUTO(arena_free) struct arena a = { 0 };
        struct event ev = of((enum event_kind)k), back;
        struct err e;
        journal_write(&ev, &one);
        CHECK_STR(one.p, lines[k]);
        CHECK(journal_read(buf_str(&one), &a, &back, &e) == 0);
        CHECK(back.kind == ev.kind && back.t_ms == ev.t_ms);
        journal_write(&back, &two);
        CHECK_STR(two.p, one.p);
    }
}

static void what_is_absent_has_its_default(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev;
    struct err e;
    CHECK(journal_read(STR("{\"t\":-5,\"ev\":\"tenant\",\"name\":\"a\",\"weight_milli\":1}"), &a,
                       &ev, &e) == 0);
    CHECK(ev.t_ms == -5 && ev.tenant.parent.n == 0 && ev.tenant.guarantee_milli == 0);
    for (int r = 0; r < RES_COUNT; r++)
        CHECK(ev.tenant.limit.of[r] == NO_LIMIT && ev.tenant.user_limit.of[r] == NO_LIMIT);
    CHECK(journal_read(STR("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\","
                           "\"replicas\":1,\"priority\":\"low\"}"),
                       &a, &ev, &e) == 0);
    CHECK(ev.submit.request.scope == SCOPE_ANY && ev.submit.request.layout == LAYOUT_PACK);
    CHECK(!ev.submit.held && ev.submit.models.n == 0);
    CHECK(journal_read(STR("{\"t\":0,\"ev\":\"policy\",\"half_life_ms\":1}"), &a, &ev, &e) == 0);
    CHECK(ev.policy.half_life_ms == 1 && ev.policy.age_step_ms == policy_default().age_step_ms);
    CHECK(journal_read(STR("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\","
                           "\"replicas\":1,\"priority\":\"low\"}"),
                       &a, &ev, &e) == 0);
    CHECK(ev.submit.begin_ms == 0 && ev.submit.afters == 0 && ev.submit.since_ms == 0);
}

static void refused(const char *line, const char *says)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev = { .t_ms = 77 };
    struct err e = { 0 };
    CHECK(journal_read(str_of(line), &a, &ev, &e) < 0);
    if (!strstr(e.msg, says))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", e.msg, says);
    CHECK(ev.t_ms == 77); /* the output is untouched */
}

static void what_is_not_known_is_refused_by_name(void)
{
    refused("{\"t\":0,\"ev\":\"explode\"}", "field 'ev': 'explode' is not known");
    refused("{\"t\":0,\"ev\":\"pass\",\"colour\":1}", "'colour'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":\"a\",\"cost_milli\":1,\"weight_milli\":1}",
            "'weight_milli'");
    refused("{\"t\":0,\"ev\":\"job\",\"job\":1,\"what\":\"jump\"}", "field 'what': 'jump'");
    refused("{\"t\":0,\"ev\":\"node_state\",\"name\":\"a\",\"state\":\"asleep\"}", "field 'state'");
    refused("{\"t\":0,\"ev\":\"tenant\",\"name\":\"a\",\"weight_milli\":1,\"limit\":{\"disks\":1}}",
            "field 'limit'");
    refused("{\"t\":0,\"t\":1,\"ev\":\"pass\"}", "'t'"); /* twice */
}

static void what_is_missing_is_named(void)
{
    refused("{\"ev\":\"pass\"}", "'t'");
    refused("{\"t\":0}", "'ev'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":\"a\"}", "'cost_milli'");
    refused("{\"t\":0,\"ev\":\"model\",\"cost_milli\":1}", "'name'");
    refused("{\"t\":0,\"ev\":\"job\",\"job\":1}", "'what'");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1}", "'slots'");
    refused("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\",\"replicas\":1}",
            "'priority'");
}

static void values_of_the_wrong_type_or_size_are_refused_by_field(void)
{
    refused("{\"t\":\"now\",\"ev\":\"pass\"}", "field 't'");
    refused("{\"t\":9007199254740993,\"ev\":\"pass\"}", "field 't'");
    refused("{\"t\":0,\"ev\":7}", "field 'ev'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":3,\"cost_milli\":1}", "field 'name'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":\"a\",\"cost_milli\":-1}", "field 'cost_milli'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":\"a\",\"cost_milli\":1.5}", "field 'cost_milli'");
    refused("{\"t\":0,\"ev\":\"model\",\"name\":\"a\",\"cost_milli\":4294967296}",
            "field 'cost_milli'");
    refused("{\"t\":0,\"ev\":\"tenant\",\"name\":\"a\",\"weight_milli\":1,\"limit\":7}",
            "field 'limit': an object is needed");
    refused("{\"t\":0,\"ev\":\"tenant\",\"name\":\"a\",\"weight_milli\":1,\"limit\":{\"gpus\":-1}}",
            "field 'limit'");
    refused("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\",\"replicas\":1,"
            "\"priority\":\"low\",\"linked\":2}",
            "field 'linked'");
    refused("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\",\"replicas\":1,"
            "\"priority\":\"low\",\"held\":1}",
            "field 'held'");
    refused("{\"t\":0,\"ev\":\"submit\",\"job\":1,\"tenant\":\"a\",\"user\":\"u\",\"replicas\":1,"
            "\"priority\":\"low\",\"gpus\":65536}",
            "field 'gpus'");
}

static void bad_lists_are_refused_by_field(void)
{
#define NODE                                                                                       \
    "{\"t\":0,\"ev\":\"node\",\"name\":\"n\",\"model\":\"a\",\"cpu_milli\":1,\"mem_mib\":1,"
    refused(NODE "\"gpus\":2,\"links\":[0]}", "field 'links'");
    refused(NODE "\"gpus\":2,\"links\":[0,16]}", "field 'links'");
    refused(NODE "\"gpus\":1,\"links\":[\"a\"]}", "field 'links'");
    refused(NODE "\"links\":7}", "field 'links'");
    refused(NODE "\"gpus\":20,\"links\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
            "field 'links'");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1,\"slots\":[]}", "field 'slots'");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1,\"slots\":[[1,2]]}", "field 'slots': a slot is");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1,\"slots\":[[1,2,1001]]}", "field 'slots'");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1,\"slots\":[[1,65536,1]]}", "field 'slots'");
#define SUBMIT                                                                                     \
    "{\"t\":0,\"ev\":\"submit\",\"job\":9,\"tenant\":\"a\",\"user\":\"u\",\"replicas\":1,"         \
    "\"priority\":\"low\",\"after\":"
    refused(SUBMIT "7}", "field 'after': a list of at most 64");
    refused(SUBMIT "[7]}", "field 'after': each is [job");
    refused(SUBMIT "[[7,1]]}", "field 'after': each is [job");
    refused(SUBMIT "[[7,1,\"soon\"]]}", "field 'after': 'soon' is not known");
    refused(SUBMIT "[[7,100001,\"ok\"]]}", "field 'after'");
    refused(SUBMIT "[[-7,1,\"ok\"]]}", "field 'after'");
    refused("{\"t\":0,\"ev\":\"place\",\"job\":1,\"slots\":[[4294967295,1,1]]}", "field 'slots'");
}

static void what_is_not_an_object_is_refused(void)
{
    refused("", "");
    refused("[]", "a journal line is a JSON object");
    refused("7", "a journal line is a JSON object");
    refused("{\"t\":0,\"ev\":\"pass\"", "");
    refused("{\"t\":0,\"ev\":\"pass\"} x", "");
}

static void a_line_that_is_too_long_is_refused(void)
{
    AUTO(free_p) char *line = xmalloc(JOURNAL_LINE_MAX + 2);
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev;
    struct err e = { 0 };
    memset(line, ' ', JOURNAL_LINE_MAX + 2);
    memcpy(line, "{\"t\":0,\"ev\":\"pass\"}", 19);
    CHECK(journal_read((struct str){ line, JOURNAL_LINE_MAX }, &a, &ev, &e) == 0);
    CHECK(journal_read((struct str){ line, JOURNAL_LINE_MAX + 1 }, &a, &ev, &e) < 0);
    CHECK(e.code == ERR_TOO_LARGE);
    CHECK_STR(e.msg, "a journal line of 1048577 bytes; at most 1048576");
}

/* The longest decision there can be fits into a line. */
static void the_largest_gang_fits_into_a_line(void)
{
    AUTO(buf_free) struct buf out = BUF(JOURNAL_LINE_MAX);
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(free_p) struct slot *s = xcalloc(REPLICAS_MAX, sizeof *s);
    struct event ev = { .t_ms = -TIME_MAX_MS, .kind = EVENT_PLACE }, back;
    struct err e;
    for (uint32_t i = 0; i < REPLICAS_MAX; i++)
        s[i] = (struct slot){ NONE - 1, UINT16_MAX, GPU_MILLI };
    ev.place = (struct event_place){ { INT64_MAX }, s, REPLICAS_MAX };
    journal_write(&ev, &out);
    CHECK(!out.full && journal_read(buf_str(&out), &a, &back, &e) == 0);
    CHECK(back.place.n == REPLICAS_MAX && back.place.id.v == INT64_MAX);
    CHECK(memcmp(back.place.slots, s, REPLICAS_MAX * sizeof *s) == 0);
}

static void bad_header(const char *line, const char *says)
{
    struct err e = { 0 };
    CHECK(journal_read_header(str_of(line), &e) < 0);
    if (!strstr(e.msg, says))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", e.msg, says);
}

static void the_header_names_format_and_version(void)
{
    AUTO(buf_free) struct buf out = BUF(256);
    struct err e;
    journal_write_header(&out);
    CHECK_STR(out.p, "{\"journal\":\"nightshift\",\"version\":1}\n");
    CHECK(journal_read_header(buf_str(&out), &e) == 0);
    bad_header("{\"journal\":\"nightshift\",\"version\":2}",
               "the journal has version 2; this program reads version 1");
    bad_header("{\"journal\":\"nightshift\"}", "'version'");
    bad_header("{\"journal\":\"nightshift\",\"version\":\"1\"}", "'version'");
    bad_header("{\"journal\":\"other\",\"version\":1}", "this is not a Nightshift journal");
    bad_header("{\"version\":1}", "this is not a Nightshift journal");
    bad_header("[1]", "this is not a Nightshift journal");
    bad_header("{\"journal\":\"nightshift\",\"version\":1,\"zip\":true}", "'zip'");
    bad_header("time,event", "");
}

static void the_reference_lists_every_kind_and_every_field_that_is_written(void)
{
    AUTO(buf_free) struct buf ref = BUF(1 << 16);
    journal_print_reference(&ref);
    for (int k = 0; k < EVENT_KIND_COUNT; k++) {
        char want[64] = "### `";
        strncat(want, event_kind_name((enum event_kind)k), 40);
        strncat(want, "`\n", 4);
        CHECK(strstr(ref.p, want));
    }
    for (size_t i = 0; policy_key(i); i++)
        CHECK(strstr(ref.p, policy_key(i)->name));
    static const char *const words[] = { "`half_life_ms`", "`user_limit`", "`links`",   "`within`",
                                         "`switch`",       "`slots`",      "`drain`",   "`urgent`",
                                         "`exited_ok`",    "`spread`",     "`replicas`" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK(strstr(ref.p, words[i]));
    CHECK(strstr(ref.p, "No fields beyond `t` and `ev`."));
}

static const struct test tests[] = {
    { "every kind is written as documented and read back",
      every_kind_is_written_as_documented_and_read_back },
    { "what is absent has its default", what_is_absent_has_its_default },
    { "what is not known is refused by name", what_is_not_known_is_refused_by_name },
    { "what is missing is named", what_is_missing_is_named },
    { "values of the wrong type or size are refused by field",
      values_of_the_wrong_type_or_size_are_refused_by_field },
    { "bad lists are refused by field", bad_lists_are_refused_by_field },
    { "what is not an object is refused", what_is_not_an_object_is_refused },
    { "a line that is too long is refused", a_line_that_is_too_long_is_refused },
    { "the largest gang fits into a line", the_largest_gang_fits_into_a_line },
    { "the header names format and version", the_header_names_format_and_version },
    { "the reference lists every kind and every field that is written",
      the_reference_lists_every_kind_and_every_field_that_is_written },
};
TEST_CASES(tests)
