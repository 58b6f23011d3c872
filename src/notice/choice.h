/* choice - what one user wants to be told, and where: from JSON and back.  Pure but for a new secret.
 *
 * Nothing is sent until there is an address or a URL; then every kind is on that is on by default.  The secret of a
 * webhook is made here, told once by whoever made it, and never shown again.
 */
#ifndef NS_NOTICE_CHOICE_H
#define NS_NOTICE_CHOICE_H

#include "base/json.h"
#include "notice/kind.h"
#include "notice/rule.h"

#define WEBHOOK_SECRET_TEXT 64 /* "whsec_", 44 signs of base64, NUL */

struct notice_choice {
    char *mail;    /* an address, "me": that of the user's record; NULL: no mail */
    char *webhook; /* NULL: none */
    char secret[WEBHOOK_SECRET_TEXT];
    bool log; /* the last lines of a job's output are told too */
    bool on[NOTICE_WAY_COUNT][NOTICE_KIND_COUNT];
};

/* What the administrator lets people choose. */
struct choice_bounds {
    bool mail; /* there is a mail server */
    struct str mail_domains;
    struct str record; /* the mail address of the user's record; empty: it has none */
    enum webhook_reach webhooks;
};

void choice_init(struct notice_choice *c); /* nothing is sent */
void choice_clear(struct notice_choice *c);
void choice_copy(struct notice_choice *to, const struct notice_choice *from);
bool choice_wants(const struct notice_choice *c, enum notice_way w, enum notice_kind k);
void choice_make_secret(struct notice_choice *c);

/* Members that are not there stay as they were.  On failure *c is as it was; *out_field names what is wrong.
 * *out_secret: a secret was made. */
int choice_change(struct notice_choice *c, const struct json *o, const struct choice_bounds *b,
                  bool *out_secret, struct err *e) MUST_USE;

/* For people: without the secret. */
void choice_put(const struct notice_choice *c, struct json_out *w);
/* As the store keeps it: with it. */
void choice_write(const struct notice_choice *c, struct buf *out);
int choice_read(struct str json, struct notice_choice *out, struct err *e) MUST_USE;

#endif
