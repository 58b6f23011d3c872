/* Sign-in at an OpenID provider in the browser: what it offers, a code for a person, is the person
 * still there. */
#include "signin/provider.h"

#define FORM_MAX (64u << 10)

struct asked {
    struct provider_client client;
    const char *redirect_uri, *code, *verifier, *nonce;
    const char *refresh_token, *subject;
};

#define AT(member) offsetof(struct asked, member)
static const struct field discover_fields[] = { PROVIDER_FIELDS(struct asked, client) };
static const struct field code_fields[] = {
    CLIENT_FIELDS(struct asked, client),
    { "redirect_uri", FIELD_TEXT, AT(redirect_uri), 2048, true },
    { "code", FIELD_SECRET, AT(code), 8192, true },
    { "verifier", FIELD_SECRET, AT(verifier), 128, true },
    { "nonce", FIELD_TEXT, AT(nonce), 256, true },
};
static const struct field refresh_fields[] = {
    CLIENT_FIELDS(struct asked, client),
    { "refresh_token", FIELD_SECRET, AT(refresh_token), 16000, true },
    { "subject", FIELD_TEXT, AT(subject), 255, true },
};

static int run_discover(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    AUTO(provider_close_p) struct provider *p = provider_open(&a->client, r);
    if (!p)
        return -1;
    provider_write(p, out);
    return 0;
}

static int run_code(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    AUTO(form_free) struct buf form = BUF(FORM_MAX);
    AUTO(provider_close_p) struct provider *p = provider_open(&a->client, r);
    if (!p)
        return -1;
    form_add(&form, "grant_type", "authorization_code");
    form_add(&form, "code", a->code);
    form_add(&form, "redirect_uri", a->redirect_uri);
    form_add(&form, "code_verifier", a->verifier);
    AUTO(json_free_p)
    struct json_doc *tokens = provider_post(p, ENDPOINT_TOKEN, GRANT_CODE, &form, r);
    struct provider_expect want = { .nonce = a->nonce, .token_needed = true };
    return tokens ? provider_person(p, json_root(tokens), &want, out, r) : -1;
}

static int run_refresh(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    AUTO(form_free) struct buf form = BUF(FORM_MAX);
    AUTO(provider_close_p) struct provider *p = provider_open(&a->client, r);
    if (!p)
        return -1;
    form_add(&form, "grant_type", "refresh_token");
    form_add(&form, "refresh_token", a->refresh_token);
    AUTO(json_free_p)
    struct json_doc *tokens = provider_post(p, ENDPOINT_TOKEN, GRANT_REFRESH, &form, r);
    struct provider_expect want = { .subject = a->subject };
    return tokens ? provider_person(p, json_root(tokens), &want, out, r) : -1;
}

const struct verb verb_oidc_discover = {
    .name = "oidc_discover",
    .help = "the addresses of a provider",
    .fields = discover_fields,
    .n = ARRAY_LEN(discover_fields),
    .size = sizeof(struct asked),
    .run = run_discover,
};
const struct verb verb_oidc_code = {
    .name = "oidc_code",
    .help = "whom does the provider's code stand for?",
    .fields = code_fields,
    .n = ARRAY_LEN(code_fields),
    .size = sizeof(struct asked),
    .run = run_code,
};
const struct verb verb_oidc_refresh = {
    .name = "oidc_refresh",
    .help = "is the person still there, and in which groups?",
    .fields = refresh_fields,
    .n = ARRAY_LEN(refresh_fields),
    .size = sizeof(struct asked),
    .run = run_refresh,
};
