/* The mail server: nobody connects to it here; the daemon says what became of its letters. */
#include "doctor/checks.h"
#include "doctor/look.h"

void check_mail(const struct doctor_in *in, struct doctor_result *r)
{
    if (!in->mail_server || !in->mail_server[0]) {
        say_skip(r, "no mail_server: people can have notices by webhook only");
    } else if (!in->mail_trouble) {
        say_skip(r, "%s; a running daemon knows whether it takes letters", in->mail_server);
    } else if (in->mail_trouble[0]) {
        say_bad(r, "%s did not take the last letter: %s", in->mail_server, in->mail_trouble);
        say_fix(r, "see mail_server, mail_login, mail_password_file, mail_tls and mail_ca in the "
                   "settings, or that one address; try with nightshift notices test mail");
    } else {
        say_good(r, "%s has refused nothing since the start", in->mail_server);
    }
}
