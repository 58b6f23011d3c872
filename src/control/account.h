/* account - as which account of the machine a person's jobs run.
 *
 * A person with an account on this machine keeps it: uid, groups, home.  Anybody else, and root,
 * gets an account of ours: a uid from our range that no other person has ever had, and a home of
 * ours.  Accounts of ours are remembered in the store.
 */
#ifndef NS_CONTROL_ACCOUNT_H
#define NS_CONTROL_ACCOUNT_H

#include "base/map.h"
#include "engine/engine.h"
#include "store/store.h"
#include "sys/nss.h"

struct account {
    char *name, *home;
    char *home_else; /* what is used where the home is not there; NULL: nothing */
    uint32_t uid, gid;
    uint32_t *groups;
    uint32_t n_groups;
    bool ours;
};

struct accounts {
    struct account *at;
    size_t n, cap;
    uint32_t uid_base, uid_min, uid_next;
    bool single_user;
    const char *homes;
    struct nss *nss;              /* who knows the machine's accounts; NULL: they are waited for */
    struct passwd_account *alone; /* ourselves, for a single user; NULL: nobody knows us */
};

int accounts_load(struct accounts *a, struct store *s, struct err *e) MUST_USE;
void accounts_free(struct accounts *a);

/* The account of `user`; makes one of ours when needed and puts it into the batch.  Valid until
 * the next call.  NULL and unavailable: whether the machine has one cannot be told yet. */
const struct account *account_of(struct accounts *a, struct str user, struct store_batch *b,
                                 int64_t now_ms, struct err *e);
bool account_is_asked(struct accounts *a, struct str user); /* it will be told: see nss_listen */

/* A uid from our range, or of an account of ours; `out_user` is whose, "" of nobody.  Never so for a single user. */
bool account_uid_is_ours(const struct accounts *a, uint32_t uid, struct str *out_user);
/* The uid of an account of ours that is known; 0: there is none. */
uint32_t account_own_uid(const struct accounts *a, struct str user);
/* For somebody to whom an earlier store gave this uid of ours: it is theirs again, where nobody has it. */
const struct account *account_again(struct accounts *a, struct str user, uint32_t uid,
                                    struct store_batch *b, int64_t now_ms, struct err *e);

#endif
