/* nss - the machine's accounts without waiting for whoever has them: a directory may take a minute to answer, or never.
 *
 * A copy of this process looks (aside.h) and is killed when it takes too long.  What was told is good for a few
 * seconds.  After that it is asked again, and whoever was there before is meanwhile, and when nobody answers, who
 * they were; somebody unknown is waited for.
 */
#ifndef NS_SYS_NSS_H
#define NS_SYS_NSS_H

#include "sys/loop.h"
#include "sys/passwd.h"

struct nss;

enum {
    NSS_AWAY = -1, /* nobody can tell: *e says why */
    NSS_NONE,
    NSS_HERE,
    NSS_LATER, /* being asked: ask again when a listener is called; *e says so to those who cannot wait */
};

/* One of both.  In the copy. */
struct nss_question {
    const char *name; /* NULL: by number */
    uint32_t uid;
};
typedef int nss_look_fn(const struct nss_question *q, struct passwd_account *out, struct err *e);

struct nss_config {
    struct loop *loop;
    nss_look_fn *look; /* NULL: that of passwd.h */
    uint64_t fresh_ms; /* 0: 2 s */
    unsigned limit_s;  /* 0: 10 */
};

struct nss *nss_new(const struct nss_config *c);
struct nss *nss_free(struct nss *n); /* NULL ok; returns NULL */
/* Whenever something was told; two at most. */
void nss_listen(struct nss *n, loop_fn *fn, void *ctx);

/* NULL for `n` waits, for programs and tests that have no loop. */
int nss_by_uid(struct nss *n, uint32_t uid, struct passwd_account *out, struct err *e) MUST_USE;
int nss_by_name(struct nss *n, const char *name, struct passwd_account *out, struct err *e)
    MUST_USE;

#endif
