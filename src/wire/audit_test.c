#include "wire/audit.h"

#include <stdio.h>

#include "tests/lib/test.h"

static const struct audit_row first = { .number = 1,
                                        .t_ms = 1700000000000,
                                        .who = STR("ana"),
                                        .via = STR("socket uid 1000"),
                                        .address = STR("unix"),
                                        .what = STR("node.drain"),
                                        .subject = STR("desk1"),
                                        .tenant = STR(""),
                                        .before = STR("{\"state\":\"up\"}"),
                                        .after = STR("{\"state\":\"drain\"}"),
                                        .reason = STR("a new fan") };
static const struct audit_link nothing = { 0 };

/* Computed with Python's hashlib from the words of docs/ops/audit.md. */
static void a_hash_is_what_the_description_says(void)
{
    char text[AUDIT_HASH_TEXT];
    struct audit_hash h;
    audit_row_hash(&nothing.hash, &first, &h);
    CHECK_STR(audit_hash_format(&h, text),
              "f471d18fb17f3dcc855ebd2f91bc3a72e1154bddf87650d32f2e6bd6f10d5386");
}

static void fields_do_not_run_into_each_other(void)
{
    struct audit_row a = { .number = 1, .who = STR("ab"), .via = STR("c") };
    struct audit_row b = { .number = 1, .who = STR("a"), .via = STR("bc") };
    struct audit_row c = { .number = 1, .who = STR("2:ab,1:c"), .via = STR("") };
    struct audit_row d = { .number = 1, .who = STR("ab"), .via = STR(""), .address = STR("c") };
    const struct audit_row *all[] = { &a, &b, &c, &d };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t j = 0; j < i; j++) {
            struct audit_hash x, y;
            audit_row_hash(&nothing.hash, all[i], &x);
            audit_row_hash(&nothing.hash, all[j], &y);
            CHECK(!audit_hash_eq(&x, &y));
        }
}

static void links_come_back_from_their_text(void)
{
    struct audit_link l = { .number = 12 }, got = { 0 };
    char text[AUDIT_LINK_TEXT];
    audit_row_hash(&nothing.hash, &first, &l.hash);
    CHECK(audit_link_parse(str_of(audit_link_format(&l, text)), &got));
    CHECK(got.number == 12 && audit_hash_eq(&got.hash, &l.hash));
    text[20] = 'g';
    CHECK(!audit_link_parse(str_of(text), &got) && got.number == 12);
    CHECK(!audit_link_parse(STR(""), &got) && !audit_link_parse(STR("12"), &got));
    CHECK(!audit_link_parse(STR("12 ab"), &got) && !audit_link_parse(STR("x ab"), &got));
}

/* Three rows; the third is a cut at `cut` when that is not NULL. */
struct three {
    struct audit_row row[3];
    struct audit_hash hash[3];
    char cut[AUDIT_LINK_TEXT];
};

static struct audit_link make_three(struct three *t, const struct audit_link *from,
                                    const struct audit_link *cut)
{
    struct audit_hash before = from->hash;
    for (size_t i = 0; i < 3; i++) {
        t->row[i] = first;
        t->row[i].number = from->number + i + 1;
        if (i == 2 && cut) {
            t->row[i].what = STR("audit.cut");
            t->row[i].subject = str_of(audit_link_format(cut, t->cut));
        }
        audit_row_hash(&before, &t->row[i], &t->hash[i]);
        before = t->hash[i];
    }
    return (struct audit_link){ t->row[2].number, before };
}

static struct audit_chain check(const struct three *t, const struct audit_link *from,
                                const struct audit_link *head, const struct audit_link *noted)
{
    struct audit_chain c;
    audit_chain_begin(&c, from, noted);
    for (size_t i = 0; i < 3; i++)
        audit_chain_add(&c, &t->row[i], &t->hash[i]);
    audit_chain_end(&c, head);
    return c;
}

static void a_whole_chain_is_good(void)
{
    struct three t;
    struct audit_link head = make_three(&t, &nothing, NULL), second = { 2, t.hash[1] };
    struct audit_chain c = check(&t, &nothing, &head, &second);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.rows == 3 && c.at.number == 3 && c.found);
    second.number = 0; /* its hash alone */
    CHECK(check(&t, &nothing, &head, &second).fault == AUDIT_FAULT_NONE);
    audit_chain_begin(&c, &nothing, NULL);
    CHECK(audit_chain_end(&c, &nothing)); /* nothing was ever done */
}

static void each_fault_is_found_at_its_row(void)
{
    struct three t, other;
    struct audit_link head = make_three(&t, &nothing, NULL), noted = { 2, t.hash[0] };
    other = t;
    other.row[1].reason = STR("a new fam");
    struct audit_chain c = check(&other, &nothing, &head, NULL);
    CHECK(c.fault == AUDIT_FAULT_HASH && c.fault_at == 2 && c.rows == 1);
    other = t;
    other.row[1].number = 3;
    c = check(&other, &nothing, &head, NULL);
    CHECK(c.fault == AUDIT_FAULT_GAP && c.fault_at == 2);
    head.number = 4;
    c = check(&t, &nothing, &head, NULL);
    CHECK(c.fault == AUDIT_FAULT_HEAD && c.fault_at == 4);
    head.number = 3;
    c = check(&t, &nothing, &head, &noted);
    CHECK(c.fault == AUDIT_FAULT_NOTED && c.fault_at == 2);
    CHECK_STR(audit_fault_name(c.fault), "noted");
}

static void a_cut_must_be_the_one_that_was_told(void)
{
    struct three t;
    struct audit_link cut = { 7, { { 1, 2, 3 } } }, earlier = { 6, { { 1, 2, 3 } } };
    struct audit_link head = make_three(&t, &cut, &cut);
    CHECK(check(&t, &cut, &head, NULL).fault == AUDIT_FAULT_NONE);
    CHECK(check(&t, &cut, &head, &cut).found);
    head = make_three(&t, &cut, &earlier);
    CHECK(check(&t, &cut, &head, NULL).fault == AUDIT_FAULT_CUT);
    head = make_three(&t, &cut, NULL); /* nobody told of it */
    CHECK(check(&t, &cut, &head, NULL).fault == AUDIT_FAULT_CUT);
}

static void every_verb_is_in_the_reference_once(void)
{
    AUTO(buf_free) struct buf b = BUF(1 << 16);
    audit_print_reference(&b);
    for (int i = 0; i < AUDIT_VERB_COUNT; i++) {
        char row[64];
        snprintf(row, sizeof row, "| `%s` |", audit_verb_name((enum audit_verb)i));
        const char *at = strstr(b.p, row);
        CHECK(at && !strstr(at + 1, row));
    }
}

static const struct test tests[] = {
    { "a row's hash is what the description says", a_hash_is_what_the_description_says },
    { "no two rows have the same text", fields_do_not_run_into_each_other },
    { "a link comes back from its text, and from no other", links_come_back_from_their_text },
    { "a whole chain is good", a_whole_chain_is_good },
    { "each fault is found at its row", each_fault_is_found_at_its_row },
    { "a cut must be the one that was told", a_cut_must_be_the_one_that_was_told },
    { "every verb is in the reference once", every_verb_is_in_the_reference_once },
};
TEST_CASES(tests)
