#include "send/sign.h"

#include "tests/lib/test.h"

/* The example of the Standard Webhooks' own libraries. */
static void the_signature_is_the_standards(void)
{
    char out[SIGN_TEXT];
    struct err e = { 0 };
    struct signed_text what = { .id = "msg_p5jXN8AQM9LWM0D4loKWxJek",
                                .time_s = 1614265330,
                                .body = STR("{\"test\": 2432232314}") };
    CHECK(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &what, out, &e) == 0);
    CHECK_STR(out, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    what.body = STR("");
    CHECK(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &what, out, &e) == 0);
}

static void a_secret_of_another_form_is_refused(void)
{
    static const char *const rows[] = { "", "secret", "whsec_", "whsec_!!!!", "whsec_QUJD" };
    char out[SIGN_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };
        struct signed_text what = { .id = "a", .time_s = 1, .body = STR("{}") };
        CHECK(sign(rows[i], &what, out, &e) < 0);
        CHECK_INT(e.code, ERR_INVALID);
    }
}

static const struct test tests[] = {
    { "the signature is that of the Standard Webhooks", the_signature_is_the_standards },
    { "a secret of another form is refused", a_secret_of_another_form_is_refused },
};
TEST_CASES(tests)
