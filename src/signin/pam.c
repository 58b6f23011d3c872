/* The accounts of this machine, through PAM. */
#include <security/pam_appl.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "signin/account.h"
#include "signin/verb.h"

#define SERVICE "nightshift"

struct asked {
    const char *service, *user, *password, *from;
};

#define TEXT(field, max, needed)                                                                   \
    {                                                                                              \
#field, FIELD_TEXT, offsetof(struct asked, field), max, needed                             \
    }
static const struct field pam_fields[] = {
    TEXT(service, 64, false),
    TEXT(user, 256, true),
    { "password", FIELD_PASSWORD, offsetof(struct asked, password), 1024, true },
    TEXT(from, 256, false),
};
static const struct field look_fields[] = {
    TEXT(service, 64, false),
    TEXT(user, 256, true),
};

/* What PAM says, and what it means.  What is not here means that PAM itself does not work. */
static const struct {
    int code;
    enum reason why;
    const char *words;
} meanings[] = {
    { PAM_AUTH_ERR, REASON_WRONG_PASSWORD, "the user name or the password is wrong" },
    { PAM_USER_UNKNOWN, REASON_WRONG_PASSWORD, "the user name or the password is wrong" },
    { PAM_MAXTRIES, REASON_ACCOUNT_LOCKED, "there were too many wrong passwords" },
    { PAM_ACCT_EXPIRED, REASON_ACCOUNT_EXPIRED, "the account has expired" },
    { PAM_NEW_AUTHTOK_REQD, REASON_PASSWORD_EXPIRED, "the password has expired" },
    { PAM_AUTHTOK_EXPIRED, REASON_PASSWORD_EXPIRED, "the password has expired" },
    { PAM_CRED_EXPIRED, REASON_PASSWORD_EXPIRED, "the password has expired" },
    { PAM_PERM_DENIED, REASON_NOT_ALLOWED, "the account may not sign in here" },
};

struct talk {
    const char *user, *password;
    bool asked_for_secret, asked_for_more;
};

static bool reply_to(struct talk *t, const struct pam_message *m, struct pam_response *reply)
{
    if (m->msg_style == PAM_TEXT_INFO || m->msg_style == PAM_ERROR_MSG)
        return true;
    if (m->msg_style == PAM_PROMPT_ECHO_ON) {
        reply->resp = xstrdup(t->user);
        return true;
    }
    /* The password again would be a wrong answer to "code:", and count as a second try. */
    t->asked_for_more = t->asked_for_secret || !t->password;
    t->asked_for_secret = true;
    if (m->msg_style != PAM_PROMPT_ECHO_OFF || t->asked_for_more)
        return false;
    reply->resp = xstrdup(t->password);
    return true;
}

static int converse(int n, const struct pam_message **messages, struct pam_response **out,
                    void *ctx)
{
    if (n <= 0 || n > PAM_MAX_NUM_MSG)
        return PAM_CONV_ERR;
    struct pam_response *replies = xcalloc((size_t)n, sizeof *replies); /* PAM frees it */
    for (int i = 0; i < n; i++) {
        if (reply_to(ctx, messages[i], &replies[i]))
            continue;
        for (int k = 0; k < i; k++) {
            if (replies[k].resp)
                sodium_memzero(replies[k].resp, strlen(replies[k].resp));
            free(replies[k].resp);
        }
        free(replies);
        return PAM_CONV_ERR;
    }
    *out = replies;
    return PAM_SUCCESS;
}

/* The daemon bounds how often anybody may try; a pause in here would only let wrong passwords keep
 * others from theirs. */
static void no_delay(int rc, unsigned usec, void *ctx)
{
    (void)rc;
    (void)usec;
    (void)ctx;
}

/* Without a file of its own a service is "other", which denies everybody without a word. */
static int check_service(const char *service, struct refusal *r)
{
    static const char *const folders[] = { "/etc/pam.d", "/usr/lib/pam.d" };
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (service[0] == '.' || strspn(service, letters) != strlen(service))
        return refuse(r, REASON_BAD_REQUEST, "'%s' is not the name of a PAM service", service);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folders[i], service);
        if (access(path, R_OK) == 0)
            return 0;
    }
    refuse(r, REASON_PAM_BROKEN, "there is no PAM service '%s'", service);
    return err_hint(&r->e, "the administrator can make /etc/pam.d/%s; docs/ops/signin.md has one",
                    service);
}

static int means(pam_handle_t *h, int code, const struct talk *t, struct refusal *r)
{
    if (t->asked_for_more)
        return refuse(r, REASON_MORE_FACTORS, "PAM asks for more than a password");
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == code)
            return refuse(r, meanings[i].why, "%s", meanings[i].words);
    return refuse(r, REASON_PAM_BROKEN, "PAM does not work: %s", pam_strerror(h, code));
}

static pam_handle_t *open_pam(const struct asked *a, struct talk *t, struct refusal *r)
{
    const char *service = a->service ? a->service : SERVICE;
    struct pam_conv conv = { converse, t }; /* PAM keeps a copy */
    pam_handle_t *h = NULL;
    if (check_service(service, r) < 0)
        return NULL;
    int rc = pam_start(service, a->user, &conv, &h);
    if (rc != PAM_SUCCESS) {
        refuse(r, REASON_PAM_BROKEN, "PAM does not start (%d)", rc);
        return NULL;
    }
    pam_set_item(h, PAM_TTY, SERVICE); /* some modules want one */
    if (a->from)
        pam_set_item(h, PAM_RHOST, a->from);
    void (*quick)(int, unsigned, void *) = no_delay;
    const void *item;
    memcpy(&item, &quick, sizeof item);
    pam_set_item(h, PAM_FAIL_DELAY, item);
    return h;
}

/* A module may have given the user another name (a domain cut off). */
static const char *name_now(pam_handle_t *h, const char *user)
{
    const void *item = NULL;
    return pam_get_item(h, PAM_USER, &item) == PAM_SUCCESS && item ? item : user;
}

static int run_pam(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    struct talk t = { .user = a->user, .password = a->password };
    pam_handle_t *h = open_pam(a, &t, r);
    if (!h)
        return -1;
    int rc = pam_authenticate(h, PAM_SILENT | PAM_DISALLOW_NULL_AUTHTOK);
    if (rc == PAM_SUCCESS)
        rc = pam_acct_mgmt(h, PAM_SILENT | PAM_DISALLOW_NULL_AUTHTOK);
    int good =
        rc == PAM_SUCCESS ? account_write(name_now(h, a->user), out, r) : means(h, rc, &t, r);
    pam_end(h, rc);
    return good;
}

static int run_look(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    struct talk t = { .user = a->user };
    pam_handle_t *h = account_write(a->user, out, r) == 0 ? open_pam(a, &t, r) : NULL;
    if (!h)
        return -1;
    int rc = pam_acct_mgmt(h, PAM_SILENT | PAM_DISALLOW_NULL_AUTHTOK);
    int good = rc == PAM_SUCCESS ? 0 : means(h, rc, &t, r);
    pam_end(h, rc);
    return good;
}

const struct verb verb_pam = {
    .name = "pam",
    .help = "is it the password of this account of the machine?",
    .fields = pam_fields,
    .n = ARRAY_LEN(pam_fields),
    .size = sizeof(struct asked),
    .of_machine = true,
    .run = run_pam,
};
const struct verb verb_pam_look = {
    .name = "pam_look",
    .help = "is the account still there and valid, and which groups has it?",
    .fields = look_fields,
    .n = ARRAY_LEN(look_fields),
    .size = sizeof(struct asked),
    .of_machine = true,
    .run = run_look,
};
