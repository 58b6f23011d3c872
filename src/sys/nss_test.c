#include "sys/nss.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

/* How a directory is; a copy has what it was when it was made. */
enum mood {
    ANSWERS,
    IS_AWAY,
    HANGS
};

struct asking {
    struct loop *loop;
    struct nss *n;
    struct passwd_account a;
    struct err e;
    int told; /* listeners were called so often */
};

static enum mood mood; /* the look has no other way to know */

static int look(const struct nss_question *q, struct passwd_account *out, struct err *e)
{
    while (mood == HANGS)
        pause();
    if (mood == IS_AWAY)
        return err_set(e, ERR_UNAVAILABLE, "the directory is away");
    if (q->uid == 7 || q->name)
        return 0;
    *out = (struct passwd_account){ .uid = q->uid, .name = "ana", .groups = 1, .group = { 20 } };
    return 1;
}

static void on_told(void *ctx)
{
    struct asking *a = ctx;
    a->told++;
    loop_stop(a->loop);
}

static void begin(struct asking *a, uint64_t fresh_ms, unsigned limit_s)
{
    *a = (struct asking){ .loop = loop_new() };
    a->n = nss_new(&(struct nss_config){
        .loop = a->loop, .look = look, .fresh_ms = fresh_ms, .limit_s = limit_s });
    nss_listen(a->n, on_told, a);
    mood = ANSWERS;
}

static void end(struct asking *a)
{
    nss_free(a->n);
    loop_free(a->loop);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0); /* no copy is left */
}

static int uid(struct asking *a, uint32_t number)
{
    return nss_by_uid(a->n, number, &a->a, &a->e);
}

static void somebody_is_told_of_later_and_then_at_once(void)
{
    struct asking a;
    begin(&a, 3600000, 60);
    CHECK_INT(uid(&a, 1001), NSS_LATER);
    CHECK_INT(uid(&a, 1001), NSS_LATER);
    CHECK_INT(a.e.code, ERR_UNAVAILABLE);
    loop_run(a.loop);
    CHECK_INT(a.told, 1); /* it was asked once */
    CHECK_INT(uid(&a, 1001), NSS_HERE);
    CHECK_STR(a.a.name, "ana");
    CHECK_INT(a.a.uid, 1001);
    CHECK_INT(a.a.group[0], 20);
    CHECK_INT(uid(&a, 7), NSS_LATER);
    loop_run(a.loop);
    CHECK_INT(uid(&a, 7), NSS_NONE);
    CHECK_INT(nss_by_name(a.n, "7", &a.a, &a.e), NSS_LATER); /* a name is no number */
    loop_run(a.loop);
    CHECK_INT(nss_by_name(a.n, "7", &a.a, &a.e), NSS_NONE);
    end(&a);
}

static void who_does_not_answer_is_not_waited_for(void)
{
    struct asking a;
    begin(&a, 3600000, 1);
    mood = HANGS;
    CHECK_INT(uid(&a, 1001), NSS_LATER);
    loop_run(a.loop);
    CHECK_INT(uid(&a, 1001), NSS_AWAY);
    CHECK_STR(a.e.msg, "this machine's accounts cannot be looked up: no answer in 1 s");
    mood = IS_AWAY;
    CHECK_INT(uid(&a, 1002), NSS_LATER);
    loop_run(a.loop);
    CHECK_INT(uid(&a, 1002), NSS_AWAY);
    CHECK_STR(a.e.msg, "the directory is away");
    end(&a);
}

static void whoever_was_there_is_there_while_the_directory_is_away(void)
{
    struct asking a;
    begin(&a, 1, 60);
    CHECK_INT(uid(&a, 1001), NSS_LATER);
    loop_run(a.loop);
    mood = IS_AWAY;
    usleep(2000); /* what was told is old then, however fast we are */
    CHECK_INT(uid(&a, 1001), NSS_HERE);
    CHECK_INT(uid(&a, 1002), NSS_LATER);
    while (a.told < 3)
        loop_run(a.loop);
    CHECK_INT(uid(&a, 1001), NSS_HERE);
    CHECK_STR(a.a.name, "ana");
    end(&a);
}

static void many_are_asked_a_few_at_a_time(void)
{
    enum {
        MANY = 30
    };
    struct asking a;
    int here = 0;
    begin(&a, 3600000, 60);
    while (here < MANY) {
        here = 0;
        for (uint32_t i = 0; i < MANY; i++) {
            int rc = uid(&a, 1000 + i);
            CHECK(rc == NSS_HERE || rc == NSS_LATER);
            here += rc == NSS_HERE;
        }
        if (here < MANY)
            loop_run(a.loop);
    }
    CHECK_INT(a.told, MANY);
    end(&a);
}

static void without_a_loop_it_is_asked_at_once(void)
{
    struct passwd_account a;
    struct err e;
    CHECK_INT(nss_by_uid(NULL, 0, &a, &e), NSS_HERE);
    CHECK_STR(a.name, "root");
    CHECK_INT(nss_by_name(NULL, "nobody-has-this-name", &a, &e), NSS_NONE);
}

static const struct test tests[] = {
    { "somebody is told of later, and then at once", somebody_is_told_of_later_and_then_at_once },
    { "who does not answer is not waited for", who_does_not_answer_is_not_waited_for },
    { "whoever was there is there while the directory is away",
      whoever_was_there_is_there_while_the_directory_is_away },
    { "many are asked, a few at a time", many_are_asked_a_few_at_a_time },
    { "without a loop it is asked at once", without_a_loop_it_is_asked_at_once },
};
TEST_CASES(tests)
