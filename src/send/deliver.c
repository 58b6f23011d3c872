#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS: its successor is younger than Ubuntu 22.04 */
#include "send/deliver.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "send/reach.h"
#include "send/sign.h"

#define ANSWER_MAX_BYTES (64u << 10) /* of an answer that nobody reads */
#define PASSWORD_MAX 1024

struct sending {
    const struct question *q;
    CURL *easy;
    struct str left; /* of a mail */
    size_t answered;
    bool forbidden; /* an address that is not allowed */
    char why[CURL_ERROR_SIZE];
};

static void end_sending(struct sending *s)
{
    curl_easy_cleanup(s->easy);
}

static void free_list(struct curl_slist **l)
{
    curl_slist_free_all(*l);
}

/* ---- what curl calls ---- */

static size_t take_answer(char *p, size_t size, size_t n, void *ctx)
{
    struct sending *s = ctx;
    (void)p;
    s->answered += size * n;
    return s->answered > ANSWER_MAX_BYTES ? 0 : size * n;
}

static size_t give_mail(char *into, size_t size, size_t n, void *ctx)
{
    struct sending *s = ctx;
    size_t part = MIN(s->left.n, size * n);
    if (part)
        memcpy(into, s->left.p, part);
    s->left = (struct str){ s->left.p + part, s->left.n - part };
    return part;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct sending *s = ctx;
    (void)purpose;
    if (s->q->way == SEND_WEBHOOK && !reach_allowed(&to->addr, s->q->reach)) {
        s->forbidden = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* ---- mail ---- */

static int read_password(const char *path, char out[static PASSWORD_MAX], struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, PASSWORD_MAX - 1);
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0) {
        err_set(e, ERR_UNAVAILABLE, "the password file of the mail server cannot be read: %s",
                strerror(why));
        return err_hint(e, "see the setting mail_password_file");
    }
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    return 0;
}

static int set_mail(struct sending *s, struct curl_slist **to, struct err *e)
{
    const struct question *q = s->q;
    char password[PASSWORD_MAX] = "";
    if (q->plain && q->login)
        return err_set(e, ERR_DENIED, "a password is not sent without TLS");
    if (q->password_file && read_password(q->password_file, password, e) < 0)
        return -1;
    *to = curl_slist_append(NULL, q->to);
    s->left = q->body;
    curl_easy_setopt(s->easy, CURLOPT_URL, q->server);
    curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS));
    curl_easy_setopt(s->easy, CURLOPT_USE_SSL, (long)(q->plain ? CURLUSESSL_NONE : CURLUSESSL_ALL));
    curl_easy_setopt(s->easy, CURLOPT_MAIL_FROM, q->from);
    curl_easy_setopt(s->easy, CURLOPT_MAIL_RCPT, *to);
    curl_easy_setopt(s->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(s->easy, CURLOPT_READFUNCTION, give_mail);
    curl_easy_setopt(s->easy, CURLOPT_READDATA, s);
    if (q->login) {
        curl_easy_setopt(s->easy, CURLOPT_USERNAME, q->login);
        curl_easy_setopt(s->easy, CURLOPT_PASSWORD, password);
    }
    sodium_memzero(password, sizeof password);
    return 0;
}

/* ---- webhook ---- */

static void add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char line[512];
    snprintf(line, sizeof line, "%s: %s", name, value);
    *headers = curl_slist_append(*headers, line);
}

static int set_webhook(struct sending *s, struct curl_slist **headers, struct err *e)
{
    const struct question *q = s->q;
    char signature[SIGN_TEXT], when[24];
    struct signed_text what = { .id = q->id, .time_s = time(NULL), .body = q->body };
    snprintf(when, sizeof when, "%lld", (long long)what.time_s);
    add_header(headers, "Content-Type", "application/cloudevents+json; charset=utf-8");
    add_header(headers, "webhook-id", q->id);
    add_header(headers, "webhook-timestamp", when);
    *headers = curl_slist_append(*headers, "Expect:"); /* not asked for: many servers know it not */
    if (q->secret) {
        if (sign(q->secret, &what, signature, e) < 0)
            return -1;
        add_header(headers, "webhook-signature", signature);
    }
    curl_easy_setopt(s->easy, CURLOPT_URL, q->url);
    curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, *headers);
    curl_easy_setopt(s->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, q->body.p);
    return 0;
}

/* ---- both ---- */

static int tell_failure(const struct sending *s, CURLcode rc, struct err *e)
{
    const char *who = s->q->way == SEND_MAIL ? "the mail server" : "the webhook";
    long status = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (s->forbidden) {
        err_set(e, ERR_DENIED, "the webhook's address is not allowed here");
        return err_hint(e, "which are: the administrator's setting `webhooks`");
    }
    if (rc == CURLE_OK || (rc == CURLE_WRITE_ERROR && status))
        return err_set(e, ERR_UNAVAILABLE, "%s answered %ld", who, status);
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, ERR_UNAVAILABLE, "%s did not answer within %llu s", who,
                       (unsigned long long)(s->q->timeout_ms / 1000));
    return err_set(e, ERR_UNAVAILABLE, "%s: %.160s", who,
                   s->why[0] ? s->why : curl_easy_strerror(rc));
}

int deliver(const struct question *q, struct err *e)
{
    AUTO(free_list) struct curl_slist *list = NULL;
    AUTO(end_sending) struct sending s = { .q = q };
    long status = 0;
    s.easy = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    if (!s.easy)
        return err_set(e, ERR_UNAVAILABLE, "libcurl does not start");
    curl_easy_setopt(s.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s.easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(s.easy, CURLOPT_PROXY, ""); /* nor the environment's */
    curl_easy_setopt(s.easy, CURLOPT_ERRORBUFFER, s.why);
    curl_easy_setopt(s.easy, CURLOPT_USERAGENT, "nightshift/" NS_VERSION);
    curl_easy_setopt(s.easy, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
    curl_easy_setopt(s.easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(s.easy, CURLOPT_OPENSOCKETDATA, &s);
    curl_easy_setopt(s.easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(s.easy, CURLOPT_WRITEDATA, &s);
    if (q->ca_file)
        curl_easy_setopt(s.easy, CURLOPT_CAINFO, q->ca_file);
    if ((q->way == SEND_MAIL ? set_mail(&s, &list, e) : set_webhook(&s, &list, e)) < 0)
        return -1;
    CURLcode rc = curl_easy_perform(s.easy);
    curl_easy_getinfo(s.easy, CURLINFO_RESPONSE_CODE, &status);
    bool whole = rc == CURLE_OK || (rc == CURLE_WRITE_ERROR && s.answered > ANSWER_MAX_BYTES);
    bool good = q->way == SEND_MAIL || (status >= 200 && status < 300);
    return whole && good ? 0 : tell_failure(&s, rc, e);
}
