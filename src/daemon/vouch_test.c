#include "daemon/vouch.h"

#include <stdio.h>

#include "tests/lib/test.h"

#define ACCOUNT "system:serviceaccount:nightshift:nightshift-agent"

static const struct {
    const char *review, *machine, *says;
} rows[] = {
    { "{\"status\":{\"authenticated\":true,\"audiences\":[\"nightshift\"],\"user\":{\"username\":"
      "\"" ACCOUNT "\",\"extra\":{\"authentication.kubernetes.io/node-name\":[\"pc1\"]}}}}",
      "pc1", NULL },
    { "{\"status\":{\"authenticated\":true,\"audiences\":[\"nightshift\"],\"user\":{\"username\":"
      "\"" ACCOUNT "\",\"extra\":{}}}}",
      "", "on which machine" },
    { "{\"status\":{\"authenticated\":true,\"audiences\":[\"nightshift\"],\"user\":{\"username\":"
      "\"" ACCOUNT "\",\"extra\":{\"authentication.kubernetes.io/node-name\":[\"a\",\"b\"]}}}}",
      "", "on which machine" },
    { "{\"status\":{\"authenticated\":true,\"audiences\":[\"nightshift\"],\"user\":{\"username\":"
      "\"system:serviceaccount:other:nightshift-agent\",\"extra\":{"
      "\"authentication.kubernetes.io/node-name\":[\"pc1\"]}}}}",
      "", "another service account" },
    { "{\"status\":{\"authenticated\":true,\"audiences\":[\"https://"
      "kubernetes.default.svc\"],\"user\":{"
      "\"username\":\"" ACCOUNT
      "\",\"extra\":{\"authentication.kubernetes.io/node-name\":[\"pc1\"]}}}}",
      "", "another audience" },
    { "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"" ACCOUNT
      "\",\"extra\":{\"authentication.kubernetes.io/node-name\":[\"pc1\"]}}}}",
      "", "another audience" },
    { "{\"status\":{\"authenticated\":false,\"error\":\"expired\"}}", "", "does not know" },
    { "{\"status\":{\"user\":{\"username\":\"" ACCOUNT "\"}}}", "", "does not know" },
    { "{}", "", "does not know" },
    { "[]", "", "does not know" },
    { "no", "", "review" },
};

static void only_a_pod_of_the_agent_s_account_names_its_machine(void)
{
    char machine[65];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };
        int rc = vouch_read(str_of(rows[i].review), ACCOUNT, machine, &e);
        CHECK_INT(rc, rows[i].says ? -1 : 0);
        CHECK_STR(machine, rows[i].machine);
        CHECK(!rows[i].says || strstr(e.msg, rows[i].says));
    }
}

static const struct test tests[] = {
    { "only a pod of the agent's account names its machine",
      only_a_pod_of_the_agent_s_account_names_its_machine },
};
TEST_CASES(tests)
