#include "cli/keyring.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static void tokens_are_kept_by_server_in_a_file_of_ones_own(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    char folder[] = "/tmp/keyring.XXXXXX", path[200];
    struct keyring_entry k;
    struct err e = { 0 };
    struct stat st;
    CHECK(mkdtemp(folder) != NULL);
    setenv("XDG_CONFIG_HOME", folder, 1);
    CHECK(!keyring_find(NULL, &a, &k));
    CHECK(keyring_put(&(struct keyring_entry){ "http://a:1", "nst_1", "ana", 5 }, &e) == 0);
    CHECK(keyring_put(&(struct keyring_entry){ "https://b", "nst_\"2", "ben", 0 }, &e) == 0);
    CHECK(keyring_find(NULL, &a, &k) && strcmp(k.token, "nst_\"2") == 0);
    CHECK(keyring_find("http://a:1", &a, &k) && k.expires_ms == 5 && strcmp(k.user, "ana") == 0);
    CHECK(keyring_put(&(struct keyring_entry){ "http://a:1", "nst_3", "ana", 6 }, &e) == 0);
    CHECK(keyring_find(NULL, &a, &k) && strcmp(k.token, "nst_3") == 0);
    snprintf(path, sizeof path, "%s/nightshift/servers.json", folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(keyring_drop("http://a:1", &e) == 0 && !keyring_find("http://a:1", &a, &k));
    CHECK(keyring_find(NULL, &a, &k) && strcmp(k.server, "https://b") == 0);
    CHECK(keyring_drop("http://a:1", &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(truncate(path, 3) == 0 && !keyring_find(NULL, &a, &k)); /* as if it was not there */
    unlink(path);
    snprintf(path, sizeof path, "%s/nightshift", folder);
    rmdir(path);
    rmdir(folder);
}

static const struct test tests[] = {
    { "tokens are kept by server in a file of one's own",
      tokens_are_kept_by_server_in_a_file_of_ones_own },
};
TEST_CASES(tests)
