/* question - what nightshift-send is asked: one JSON object, checked once, as plain values.
 *
 * {"do": "mail", "server": …, "from": …, "to": …, "body": …} or {"do": "webhook", "url": …, "secret": …, "id": …,
 * "body": …}.  Every text has a bound; what goes into a line of a protocol has no control characters.
 */
#ifndef NS_SEND_QUESTION_H
#define NS_SEND_QUESTION_H

#include "base/json.h"
#include "sys/ip.h"

#define QUESTION_MAX (256u << 10)
#define SEND_BODY_MAX (128u << 10)
#define SEND_TIMEOUT_MAX_MS 120000

enum send_way {
    SEND_MAIL,
    SEND_WEBHOOK
};

/* Texts end with a NUL and lie in the document; NULL: not said. */
struct question {
    enum send_way way;
    const char *server, *from, *to, *login, *password_file; /* mail */
    const char *url, *secret, *id;                          /* webhook */
    const char *ca_file;
    struct str body;
    bool plain;          /* mail: without TLS */
    enum ip_kind reach;  /* webhook: addresses of this kind, and those after it */
    uint64_t timeout_ms; /* of everything */
};

int question_read(const struct json *o, struct question *out, struct err *e) MUST_USE;

#endif
