/* directory - tenants, people, their places and keys: in memory, and as the store keeps them. */
#ifndef NS_API_DIRECTORY_H
#define NS_API_DIRECTORY_H

#include "api/state.h"

int directory_load(struct api *a, struct err *e) MUST_USE;
void learn_tenant(struct api *a,
                  struct str name); /* its place in the tree and its groups, from control */
/* With the turn that is being gathered. */
void keep_person(struct api *a, struct person *x);
void forget_person(struct api *a, struct str name);
void keep_place(struct api *a, const struct place *at); /* ROLE_NONE: no more */
/* How a session begins its name that was opened with a token. */
#define OPENED_BY_TOKEN "token "
/* Sets it, too; whoever may do less from now on has nothing open any more. */
void change_place(struct api *a, const struct place *at);
void keep_owner(struct api *a, struct str node, struct str user, bool owns);
void keep_key(struct api *a, enum key_kind kind, const struct auth_key *k);
/* With everything that lets them in; what they ran stays, under their name (users.c). */
void remove_user(struct api *a, struct str name);
void remove_places(struct api *a, struct str tenant); /* of one that is no more (tenants.c) */
int check_profiles(struct call *c, const struct tenant_spec *t, struct err *e)
    MUST_USE; /* are they here? (tenants.c) */
/* Also from memory. */
void drop_key(struct api *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES]);
size_t drop_keys_of(struct api *a, enum key_kind kind, struct str user);

#endif
