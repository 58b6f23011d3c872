/* passwd - the machine's accounts, by number or by name, from wherever it has them (files, a directory).
 *
 * What could not be asked is a failure and never "there is none": whoever had an account would become somebody else,
 * with a uid, a home and rights of their own.  A look-up may wait for a server.
 */
#ifndef NS_SYS_PASSWD_H
#define NS_SYS_PASSWD_H

#include "base/err.h"

#define PASSWD_GROUPS_MAX 256

struct passwd_account {
    char name[256], home[4096];
    uint32_t uid, gid;
    uint32_t group[PASSWD_GROUPS_MAX], groups; /* looked up by name only; of more, those that fit */
};

/* 1: it is in *out; 0: there is none; -1: nobody can tell now. */
int passwd_by_uid(uint32_t uid, struct passwd_account *out, struct err *e) MUST_USE;
int passwd_by_name(const char *name, struct passwd_account *out, struct err *e) MUST_USE;

#endif
