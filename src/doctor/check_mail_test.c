#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

static void a_mail_server_that_refuses_is_told_with_its_words(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_mail, DOCTOR_SKIP, "no mail_server", NULL);
    p.in.mail_server = "smtp://mail.lab:587";
    CHECK_SAYS(&p, check_mail, DOCTOR_SKIP, "a running daemon knows", NULL);
    p.in.mail_trouble = "";
    CHECK_SAYS(&p, check_mail, DOCTOR_GOOD, "smtp://mail.lab:587 has refused nothing", NULL);
    p.in.mail_trouble = "the login was refused";
    CHECK_SAYS(&p, check_mail, DOCTOR_BAD, "did not take the last letter: the login was refused",
               "nightshift notices test mail");
}

static const struct test tests[] = {
    { "a mail server that refuses is told with its words",
      a_mail_server_that_refuses_is_told_with_its_words },
};
TEST_CASES(tests)
