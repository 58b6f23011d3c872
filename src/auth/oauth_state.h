/* oauth_state - what oauth.c and oauth_client.c share; nobody else includes it. */
#ifndef NS_AUTH_OAUTH_STATE_H
#define NS_AUTH_OAUTH_STATE_H

#include "auth/oauth.h"

struct grant {
    char *client, *user, *redirect; /* client NULL: a free place */
    char challenge[OAUTH_CHALLENGE_BYTES + 1];
    uint8_t code[KEY_HASH_BYTES], token[KEY_HASH_BYTES];
    bool used; /* the code was; from then on there is a token */
    int64_t since_ms, until_ms;
};

struct oauth {
    struct oauth_client client[OAUTH_CLIENTS_MAX];
    size_t clients;
    struct grant *grant; /* OAUTH_GRANTS_MAX of them */
};

char *oauth_copy(struct str s);
void grants_clear(struct oauth *o);
void grants_drop_client(struct oauth *o, struct str client);

#endif
