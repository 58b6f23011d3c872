#include "wire/keeper.h"

#include "tests/lib/test.h"

static void every_word_comes_back(void)
{
    for (size_t i = 0; i < KEEPER_VERB_COUNT; i++) {
        enum keeper_verb v = KEEPER_VERB_COUNT;
        CHECK(keeper_verb_parse(str_of(keeper_verb_name((enum keeper_verb)i)), &v) && v == i);
    }
    for (size_t i = 0; i < KEEPER_EVENT_COUNT; i++) {
        enum keeper_event ev = KEEPER_EVENT_COUNT;
        CHECK(keeper_event_parse(str_of(keeper_event_name((enum keeper_event)i)), &ev) && ev == i);
    }
    for (size_t i = 0; i < KEEPER_MODE_COUNT; i++) {
        enum keeper_mode m = KEEPER_MODE_COUNT;
        CHECK(keeper_mode_parse(str_of(keeper_mode_name((enum keeper_mode)i)), &m) && m == i);
    }
}

static void an_unknown_word_is_refused(void)
{
    enum keeper_verb v = KEEPER_DO_STOP;
    enum keeper_event ev = KEEPER_EV_NODE;
    CHECK(!keeper_verb_parse(STR("star"), &v) && !keeper_verb_parse(STR(""), &v));
    CHECK(!keeper_event_parse(STR("start"), &ev) && !keeper_event_parse(STR("readyy"), &ev));
    CHECK(v == KEEPER_DO_STOP && ev == KEEPER_EV_NODE);
}

static const struct test tests[] = {
    { "every verb, event and mode comes back from its name", every_word_comes_back },
    { "an unknown word is refused and changes nothing", an_unknown_word_is_refused },
};
TEST_CASES(tests)
