#include "node/instance.h"

#include "sys/file.h"
#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static void an_instance_keeps_its_name(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct instance one, again;
    struct err e;
    fake_init(&h);
    CHECK(!instance_read(h.root, &one));
    CHECK_STR(one.cgroup, "nightshift");
    CHECK_STR(one.net_prefix, "nsb");
    CHECK(instance_open(h.root, &one, &e) == 0 && instance_open(h.root, &again, &e) == 0);
    CHECK_INT(strlen(one.id), 5);
    CHECK_STR(one.id, again.id);
    CHECK(strncmp(one.cgroup, "nightshift-", 11) == 0 && strcmp(one.cgroup + 11, one.id) == 0);
    CHECK(strncmp(one.net_table, "nightshift_", 11) == 0 && strlen(one.net_prefix) == 8);
    CHECK(instance_read(h.root, &again));
    CHECK_STR(one.net_prefix, again.net_prefix);
}

static void a_copy_of_a_state_folder_is_another_instance(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct instance in;
    struct err e;
    fake_init(&h);
    fake_file(&h, "/instance", "4k2mq /var/lib/elsewhere\n");
    CHECK(instance_read(h.root, &in)); /* who only looks takes what stands there */
    CHECK_STR(in.cgroup, "nightshift-4k2mq");
    CHECK(instance_open(h.root, &in, &e) == 0);
    CHECK(strcmp(in.id, "4k2mq") != 0);
}

static void a_damaged_name_is_drawn_anew(void)
{
    static const char *const bad[] = { "", "x", "ABCDE /x", "4k2mq", "../..", "4k2mqq /x" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(fake_clear) struct fake_host h;
        struct instance in;
        struct err e;
        fake_init(&h);
        fake_file(&h, "/instance", bad[i]);
        CHECK_AT(i, !instance_read(h.root, &in) && !in.id[0]);
        CHECK_AT(i, instance_open(h.root, &in, &e) == 0 && strlen(in.id) == 5);
    }
}

static const struct test tests[] = {
    { "an instance keeps its name", an_instance_keeps_its_name },
    { "a copy of a state folder is another instance",
      a_copy_of_a_state_folder_is_another_instance },
    { "a damaged name is drawn anew", a_damaged_name_is_drawn_anew },
};
TEST_CASES(tests)
