#include "control/account.h"

#include <pwd.h>
#include <unistd.h>

#include "tests/lib/no_files.h"
#include "tests/lib/storing.h"

struct trying {
    struct storing s;
    struct accounts a;
    struct store_batch *b;
    struct err e;
};

static void begin(struct trying *t, bool single_user)
{
    storing_begin(&t->s);
    storing_open(&t->s);
    t->a = (struct accounts){
        .uid_base = 200000, .uid_min = 1000, .single_user = single_user, .homes = "/homes"
    };
    CHECK(accounts_load(&t->a, t->s.store, &t->e) == 0);
    t->b = store_batch_new(t->s.store);
}

static void end(struct trying *t)
{
    store_batch_free(t->b);
    accounts_free(&t->a);
    storing_end(&t->s);
}

static const struct account *of(struct trying *t, const char *user)
{
    return account_of(&t->a, str_of(user), t->b, 5, &t->e);
}

static void a_person_without_an_account_gets_one_of_ours(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    const struct account *ac = of(&t, "ana.kovacs@lab");
    CHECK(ac && ac->ours);
    CHECK_INT(ac->uid, 200000);
    CHECK_INT(ac->gid, 200000);
    CHECK_STR(ac->home, "/homes/ana.kovacs@lab");
    CHECK_INT(of(&t, "ben-of-lab")->uid, 200001);
    CHECK_INT(of(&t, "ana.kovacs@lab")->uid, 200000); /* the same person, the same account */
    end(&t);
}

static void no_uid_is_ever_given_twice(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    of(&t, "ana.kovacs@lab");
    of(&t, "ben-of-lab");
    storing_commit(&t.s, TAKE(t.b));
    accounts_free(&t.a);
    storing_reopen(&t.s);
    t.a = (struct accounts){ .uid_base = 200000, .uid_min = 1000, .homes = "/homes" };
    CHECK(accounts_load(&t.a, t.s.store, &t.e) == 0);
    t.b = store_batch_new(t.s.store);
    CHECK_INT(of(&t, "cleo-of-lab")->uid, 200002);
    const struct account *ben = of(&t, "ben-of-lab");
    CHECK_INT(ben->uid, 200001);
    CHECK_STR(ben->home, "/homes/ben-of-lab");
    CHECK(ben->ours);
    end(&t);
}

static void root_and_system_accounts_are_not_used(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    const struct account *root = of(&t, "root");
    CHECK(root->ours && root->uid >= 200000 && root->gid >= 200000);
    CHECK_STR(root->home, "/homes/root");
    CHECK(of(&t, "daemon")->uid >= 200000);
    end(&t);
}

static void a_machines_account_keeps_its_uid_home_and_groups(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    t.a.uid_min = 1; /* so that an account which is everywhere may stand for a person's */
    const struct passwd *pw = getpwnam("daemon");
    if (!pw)
        SKIP("this machine has no account 'daemon'");
    char home[256];
    snprintf(home, sizeof home, "%s", pw->pw_dir);
    uint32_t uid = pw->pw_uid, gid = pw->pw_gid;
    const struct account *ac = of(&t, "daemon");
    CHECK(!ac->ours);
    CHECK_INT(ac->uid, uid);
    CHECK_INT(ac->gid, gid);
    CHECK_STR(ac->home, home);
    CHECK(ac->n_groups >= 1 && ac->groups[0] == gid);
    CHECK(store_batch_empty(t.b)); /* the machine remembers it */
    end(&t);
}

static void who_cannot_be_looked_up_gets_no_account_of_ours(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    CHECK(of(&t, "ana.kovacs@lab")->ours); /* what answers is loaded */
    struct rlimit before = no_files_begin();
    const struct account *ac = of(&t, "daemon");
    no_files_end(before);
    CHECK(!ac);
    CHECK_INT(t.e.code, ERR_UNAVAILABLE); /* so a start is tried again, and a submit too */
    CHECK_INT(t.a.uid_next, 200001);
    CHECK(of(&t, "daemon"));
    end(&t);
}

static void names_that_are_no_file_names_are_refused(void)
{
    static const char *const bad[] = { "", "..", ".hidden", "a/b", "a b", "a\nb", "\t" };
    struct trying t = { 0 };
    begin(&t, false);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_AT(i, of(&t, bad[i]) == NULL);
        CHECK_AT(i, t.e.code == ERR_INVALID);
    }
    CHECK_INT(t.a.uid_next, 200000);
    CHECK(store_batch_empty(t.b));
    end(&t);
}

static void alone_everybody_is_ourselves(void)
{
    struct trying t = { 0 };
    begin(&t, true);
    const struct account *ac = of(&t, "whoever");
    CHECK_INT(ac->uid, getuid());
    CHECK_INT(ac->gid, getgid());
    CHECK_STR(ac->name, "whoever");
    end(&t);
}

static void a_uid_of_an_earlier_store_is_theirs_again(void)
{
    struct trying t = { 0 };
    begin(&t, false);
    CHECK_INT(account_own_uid(&t.a, STR("ben-of-lab")), 0);
    CHECK_INT(account_again(&t.a, STR("ben-of-lab"), 200007, t.b, 5, &t.e)->uid, 200007);
    CHECK_INT(account_own_uid(&t.a, STR("ben-of-lab")), 200007);
    CHECK_INT(of(&t, "cleo-of-lab")->uid, 200008);
    CHECK_INT(account_again(&t.a, STR("dora-of-lab"), 200007, t.b, 5, &t.e)->uid, 200009);
    CHECK_INT(account_again(&t.a, STR("eve-of-lab"), 0, t.b, 5, &t.e)->uid, 200010);
    CHECK_INT(account_again(&t.a, STR("fay-of-lab"), 1000, t.b, 5, &t.e)->uid, 200011);
    end(&t);
}

static void uids_of_our_range_are_of_jobs_and_each_is_somebodys_or_nobodys(void)
{
    struct trying t = { 0 };
    struct str user;
    begin(&t, false);
    uint32_t uid = of(&t, "ben-of-lab")->uid;
    CHECK(account_uid_is_ours(&t.a, uid, &user) && str_is(user, "ben-of-lab"));
    CHECK(account_uid_is_ours(&t.a, uid + 1, &user) && user.n == 0);
    CHECK(!account_uid_is_ours(&t.a, 1000, &user) && !account_uid_is_ours(&t.a, 0, &user));
    t.a.uid_base = 900000; /* the setting has changed; ben's account is still ours */
    CHECK(account_uid_is_ours(&t.a, uid, &user) && !account_uid_is_ours(&t.a, uid + 1, &user));
    t.a.single_user = true;
    CHECK(!account_uid_is_ours(&t.a, uid, &user));
    end(&t);
}

static const struct test tests[] = {
    { "uids of our range are of jobs, and each is somebody's or nobody's",
      uids_of_our_range_are_of_jobs_and_each_is_somebodys_or_nobodys },
    { "a person without an account gets one of ours",
      a_person_without_an_account_gets_one_of_ours },
    { "no uid is ever given twice, also after a restart", no_uid_is_ever_given_twice },
    { "root and system accounts are not used for jobs", root_and_system_accounts_are_not_used },
    { "a machine's account keeps its uid, home and groups",
      a_machines_account_keeps_its_uid_home_and_groups },
    { "who cannot be looked up gets no account of ours",
      who_cannot_be_looked_up_gets_no_account_of_ours },
    { "names that are no file names are refused", names_that_are_no_file_names_are_refused },
    { "alone everybody is ourselves", alone_everybody_is_ourselves },
    { "a uid of an earlier store is theirs again, where nobody has it",
      a_uid_of_an_earlier_store_is_theirs_again },
};
TEST_CASES(tests)
