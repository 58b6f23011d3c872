/* people - who there is: people, their roles on the site and in tenants, who owns which machine.
 *
 * All of it is in memory; whoever changes it writes it down (store/directory.h).  What the settings file says
 * (admins, members) and what people said with the API are kept apart: the file's cannot be changed here, and
 * both count.  Groups are those of the identity provider, as it told them at the last sign-in; tenants name
 * the groups whose people are theirs.  The roles of leads and viewers also hold in the tenants below.
 */
#ifndef NS_AUTH_PEOPLE_H
#define NS_AUTH_PEOPLE_H

#include "auth/role.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

#define PERSON_NAME_MAX 200 /* bytes */
#define PERSON_GROUPS_MAX 1000
#define GROUP_NAME_MAX 400
#define PLACES_MAX 100000 /* of all people together, said with the API */

/* id, name, meaning: how somebody is known. */
#define PERSON_KINDS(X)                                                                            \
    X(MACHINE, "machine", "an account of the machine, or known by a token only")                   \
    X(LOCAL, "local", "has a password here")                                                       \
    X(PAM, "pam", "signs in with the machine's password")                                          \
    X(LDAP, "ldap", "signs in at the directory server")                                            \
    X(OIDC, "oidc", "signs in at the identity provider")                                           \
    X(SERVICE, "service", "a program: it has tokens, and cannot sign in")
enum person_kind {
#define X(id, name, help) PERSON_##id,
    PERSON_KINDS(X)
#undef X
    PERSON_KIND_COUNT
};
const char *person_kind_name(enum person_kind k);
bool person_kind_parse(struct str name, enum person_kind *out);

struct person {
    char *name, *full_name, *mail;
    enum person_kind kind;
    enum role role;      /* on the site, as was said with the API; ROLE_NONE: none */
    enum role file_role; /* as the settings file says */
    char *subject;       /* at the identity provider, "" when not known there */
    char *hash;          /* of the password, "" without one */
    char **group;
    size_t groups;
    bool disabled;
    bool gone;                   /* not known any more where they sign in; a sign-in ends that */
    bool kept;                   /* it is in the store: said with the API, or signed in */
    int64_t created_ms, seen_ms; /* seen: the last sign-in; 0: never */
    int64_t void_ms;             /* sessions from before are over */
    char *notice;                /* which notice was accepted, "" none */
    char *tenant; /* where their jobs go that name none, as they said themselves; "" not said */
};

struct people;
struct people *people_new(void);
struct people *people_free(struct people *p); /* NULL ok; returns NULL */
void people_free_p(struct people **p);

int person_check_name(struct str name, struct err *e) MUST_USE;

/* ---- people ---- */

const struct person *people_find(const struct people *p, struct str name); /* NULL: not known */
const struct person *people_at(const struct people *p, size_t i);          /* NULL past the last */
const struct person *people_of_subject(const struct people *p, struct str subject);
struct person *people_make(struct people *p, struct str name); /* or finds it; valid until drop */
bool people_drop(struct people *p, struct str name);           /* with its places */
void person_set(char **field, struct str value);               /* replaces one of its strings */
void person_set_groups(struct person *x, const struct str *group, size_t n);

/* What the store keeps of somebody, and back. */
void person_write(const struct person *x, struct buf *out);
int people_read_person(struct people *p, struct str name, struct str json, struct err *e) MUST_USE;

/* ---- tenants: the tree, and whose groups are whose ---- */

struct group_role {
    struct str group;
    enum role role;
};
/* Makes or changes it; parent empty: a top one. */
void people_set_tenant(struct people *p, struct str name, struct str parent,
                       const struct group_role *g, size_t n);
void people_drop_tenant(struct people *p, struct str name); /* with the places in it */
bool people_has_tenant(const struct people *p, struct str name);
void people_set_default_tenant(struct people *p, struct str tenant); /* of whoever is in no other */
void people_set_site_groups(struct people *p, const struct group_role *g, size_t n);

/* ---- places: a person's role in a tenant ---- */

struct place {
    struct str tenant, user;
    enum role role;
    bool of_settings;
    bool
        by_lead; /* a lead said it, not the site: whoever is in no other keeps the default tenant */
    bool from_above; /* the role of a tenant above it */
};
/* ROLE_NONE: no place any more.  Said with the API, unless of_settings. */
void people_set_place(struct people *p, const struct place *at);
/* Those that were said, not those that follow from groups or from above; false past the last. */
bool people_place_at(const struct people *p, size_t i, struct place *out);
/* Likewise of somebody in a tenant; ROLE_NONE: nothing was said. */
enum role people_said(const struct people *p, struct str user, struct str tenant, bool of_settings);
bool people_given(const struct people *p, struct str user,
                  struct str tenant); /* likewise, not by a lead */

enum role people_role_in(const struct people *p, struct str user, struct str tenant);
enum role people_site_role(const struct people *p, struct str user);
/* Every tenant in which somebody has a role, the said ones first; in `a`. */
const struct place *people_places(const struct people *p, struct str user, struct arena *a,
                                  size_t *out_n);

/* ---- machines ---- */

void people_set_owner(struct people *p, struct str node, struct str user, bool owns);
bool people_owns(const struct people *p, struct str user, struct str node);
bool people_owns_some(const struct people *p, struct str user);
bool people_owner_at(const struct people *p, size_t i, struct str *out_node, struct str *out_user);

#endif
