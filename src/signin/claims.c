#include "signin/claims.h"

#include <stdio.h>

#define TEXT_MAX 512
#define USER_MAX 253
#define GROUP_BYTES_MAX 256
#define GROUPS_MAX 1000
#define PATH_MAX_ 256

/* "a.b.c": the member c of the member b of a; a name with dots in it goes before. */
static const struct json *find_path(const struct json *from, const char *path)
{
    const struct json *found = from ? json_find(from, path) : NULL;
    struct str rest = str_of(path), step;
    while (!found && from && rest.n) {
        char key[PATH_MAX_];
        str_cut(rest, '.', &step, &rest);
        snprintf(key, sizeof key, "%.*s", STR_ARG(step));
        from = json_is_object(from) ? json_find(from, key) : NULL;
        if (rest.n == 0)
            found = from;
    }
    return found;
}

static const char *user_claim(const struct claims_rule *rule)
{
    return rule->user_claim ? rule->user_claim : "preferred_username";
}

static const char *groups_claim(const struct claims_rule *rule)
{
    return rule->groups_claim ? rule->groups_claim : "groups";
}

bool claims_missing(const struct json *token, const struct claims_rule *rule)
{
    return !find_path(token, user_claim(rule)) || !find_path(token, groups_claim(rule)) ||
           !json_find(token, "name") || !json_find(token, "email");
}

static const struct json *find_in_both(const struct json *token, const struct json *more,
                                       const char *path)
{
    const struct json *found = find_path(token, path);
    return found ? found : find_path(more, path);
}

static bool text_of(const struct json *v, size_t max, struct str *out)
{
    struct err ignored;
    return v && json_as_str(v, max, out, &ignored) == 0 && out->n > 0;
}

static int put_user(const struct json *token, const struct json *more,
                    const struct claims_rule *rule, struct json_out *out, struct refusal *r)
{
    const char *claim = user_claim(rule);
    const struct json *verified = find_in_both(token, more, "email_verified");
    struct err ignored;
    struct str user;
    bool is_verified = true;
    if (!text_of(find_in_both(token, more, claim), USER_MAX, &user))
        return refuse(r, REASON_NO_CLAIM, "the provider does not tell the user's name (claim '%s')",
                      claim);
    for (size_t i = 0; i < user.n; i++)
        if ((unsigned char)user.p[i] < 0x20 || user.p[i] == 0x7f)
            return refuse(r, REASON_NO_CLAIM, "the claim '%s' has a control character in it",
                          claim);
    /* Anybody can write anybody's address into a profile. */
    if (str_is(str_of(claim), "email") && verified &&
        (json_as_bool(verified, &is_verified, &ignored) < 0 || !is_verified))
        return refuse(r, REASON_UNVERIFIED_MAIL, "the provider has not verified the mail address");
    json_put_str(out, "user", user);
    return 0;
}

static int put_groups(const struct json *v, struct json_out *out, struct refusal *r)
{
    struct str name;
    size_t n = 0;
    json_begin(out, "groups", '[');
    if (text_of(v, GROUP_BYTES_MAX, &name)) /* one alone comes as a text from some */
        json_put_str(out, NULL, name);
    for (const struct json *g = json_is_array(v) ? json_first(v) : NULL; g; g = json_next(v, g)) {
        if (!text_of(g, GROUP_BYTES_MAX, &name))
            return refuse(r, REASON_NO_CLAIM, "a group is not a text of at most %d bytes",
                          GROUP_BYTES_MAX);
        if (++n > GROUPS_MAX)
            return refuse(r, REASON_TOO_MANY, "there are more than %d groups", GROUPS_MAX);
        json_put_str(out, NULL, name);
    }
    json_end(out, ']');
    return 0;
}

int claims_write(const struct json *token, const struct json *more, const struct claims_rule *rule,
                 struct json_out *out, struct refusal *r)
{
    static const struct {
        const char *claim, *as;
    } texts[] = { { "name", "name" }, { "email", "mail" } };
    struct str s;
    if (!text_of(find_in_both(token, more, "sub"), 255, &s))
        return refuse(r, REASON_BAD_TOKEN, "the provider does not say who it is about");
    json_put_str(out, "subject", s);
    if (put_user(token, more, rule, out, r) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_of(find_in_both(token, more, texts[i].claim), TEXT_MAX, &s))
            json_put_str(out, texts[i].as, s);
    return put_groups(find_in_both(token, more, groups_claim(rule)), out, r);
}
