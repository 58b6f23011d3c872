/* fetch - HTTP requests to a provider, one after the other, within one span of time (libcurl).
 *
 * https with checked certificates, or http on this machine; no redirects, no proxy but one that was
 * named, bodies bounded.
 */
#ifndef NS_SIGNIN_FETCH_H
#define NS_SIGNIN_FETCH_H

#include "signin/refusal.h"

#define FETCH_BODY_MAX (512u << 10)
#define FETCH_TOTAL_S 15

struct fetcher;

struct fetch {
    const char *url;
    const char *form;          /* sent by POST; NULL: GET */
    const char *user, *secret; /* HTTP Basic, or NULL */
    const char *bearer;        /* or NULL */
};

/* ca_file NULL: the machine's authorities.  proxy NULL: none.  Both are borrowed. */
struct fetcher *fetcher_new(const char *ca_file, const char *proxy, struct refusal *r);
void fetcher_free_p(struct fetcher **f);

/* Any status is an answer; *out_body is replaced (the caller frees it). */
int fetch(struct fetcher *f, const struct fetch *what, long *out_status, struct buf *out_body,
          struct refusal *r) MUST_USE;

/* https, or http to a loopback address. */
int fetch_check_url(const char *url, struct refusal *r) MUST_USE;

/* Adds key=value to a form, with & before all but the first. */
void form_add(struct buf *form, const char *key, const char *value);
void form_escape(struct buf *out, const char *text);
void form_free(struct buf *form); /* wipes it first */

#endif
