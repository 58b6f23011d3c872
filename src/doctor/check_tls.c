/* The certificate and its key, read by the program openssl: no library of ours is needed for it. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/look.h"

static bool openssl(const struct doctor_in *in, const char *const *args, struct buf *out)
{
    char path[LOOK_PATH];
    return look_program(in, "openssl", path) && look_output(path, args, out);
}

static void check_pair(const struct doctor_in *in, const char *cert, const char *key,
                       struct doctor_result *r)
{
    AUTO(buf_free) struct buf of_cert = BUF(0), of_key = BUF(0), end = BUF(0), ignored = BUF(0);
    const char *pub_cert[] = { "x509", "-in", cert, "-noout", "-pubkey", NULL };
    const char *pub_key[] = { "pkey", "-in", key, "-pubout", NULL };
    const char *enddate[] = { "x509", "-in", cert, "-noout", "-enddate", NULL };
    const char *lives[] = { "x509", "-in", cert, "-noout", "-checkend", "0", NULL };
    if (!openssl(in, pub_cert, &of_cert) || !openssl(in, enddate, &end)) {
        say_bad(r, "%s is not a certificate in PEM form", in->tls_cert);
        say_fix(r, "tls_cert: the file with the whole chain, e.g. certbot's fullchain.pem");
    } else if (!openssl(in, pub_key, &of_key)) {
        say_bad(r, "%s is not a private key in PEM form without a passphrase", in->tls_key);
        say_fix(r, "tls_key: the key of the certificate, e.g. certbot's privkey.pem");
    } else if (!str_eq(buf_str(&of_cert), buf_str(&of_key))) {
        say_bad(r, "the key in %s is not that of the certificate in %s", in->tls_key, in->tls_cert);
        say_fix(r, "name the two files that were made together (certbot: fullchain.pem and "
                   "privkey.pem of one folder)");
    } else {
        struct str when = str_trim(buf_str(&end)), name;
        str_cut(when, '=', &name, &when);
        bool valid = openssl(in, lives, &ignored);
        if (valid)
            say_good(r, "valid until %.*s", STR_ARG(when));
        else
            say_bad(r, "the certificate ended %.*s", STR_ARG(when));
        if (!valid)
            say_fix(r, "renew it (certbot renew) and start nightshiftd anew");
    }
}

void check_tls(const struct doctor_in *in, struct doctor_result *r)
{
    char cert[LOOK_PATH], key[LOOK_PATH], tool[LOOK_PATH];
    struct stat st;
    if (!in->tls_cert || !in->tls_key) {
        say_skip(r, "no TLS: keep listen on this machine, or put a proxy with TLS before it");
        return;
    }
    look_path(in, cert, "%s", in->tls_cert);
    look_path(in, key, "%s", in->tls_key);
    if (access(cert, R_OK) < 0 || access(key, R_OK) < 0) {
        const char *which = access(cert, R_OK) < 0 ? in->tls_cert : in->tls_key;
        say_bad(r, "%s cannot be read: %s", which, strerror(errno));
        say_fix(r, "see tls_cert and tls_key in the settings; the file must be readable by uid %u",
                in->facts.uid);
    } else if (stat(key, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH)) {
        say_bad(r, "everybody may read the private key %s", in->tls_key);
        say_fix(r, "chmod 0600 %s, and have a new certificate made", in->tls_key);
    } else if (!look_program(in, "openssl", tool)) {
        say_skip(r, "both files are there; what is in them can be checked with openssl only");
        say_fix(r, "apt install openssl");
    } else {
        check_pair(in, cert, key, r);
    }
}
