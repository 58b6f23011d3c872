/* state - what the files of this folder share; nobody outside includes it. */
#ifndef NS_AUTH_STATE_H
#define NS_AUTH_STATE_H

#include "auth/auth.h"
#include "base/map.h"

struct keys {
    struct auth_key *at;
    size_t n, cap;
    struct map by_hash; /* the first bytes of a hash to its place */
};

struct auth {
    struct people *people;
    struct keys keys[KEY_KIND_COUNT];
    bool single;
    uint32_t only_uid;
    int64_t provider_ms;
    char *root_name, *own_name; /* of uid 0, and of whom the server runs as */
};

void keys_clear(struct keys *ks);

#endif
