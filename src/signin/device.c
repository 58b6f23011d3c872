/* Sign-in at an OpenID provider without a browser here (RFC 8628): a code to type elsewhere, and
 * asking until somebody did. */
#include "signin/provider.h"

#define FORM_MAX (32u << 10)
#define DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"
#define INTERVAL_S 5 /* when the provider does not say */

struct asked {
    struct provider_client client;
    const char *device_code;
};

static const struct field start_fields[] = { CLIENT_FIELDS(struct asked, client) };
static const struct field poll_fields[] = {
    CLIENT_FIELDS(struct asked, client),
    { "device_code", FIELD_SECRET, offsetof(struct asked, device_code), 8192, true },
};

/* What the answer has to have, and what it may have. */
static const struct {
    const char *name;
    bool needed;
} texts[] = {
    { "device_code", true },
    { "user_code", true },
    { "verification_uri", true },
    { "verification_uri_complete", false },
};

static int write_codes(const struct json *answer, struct json_out *out, struct refusal *r)
{
    uint64_t expires_s = 0, interval_s = INTERVAL_S;
    struct err ignored;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct str s = { 0 };
        bool there = json_get_str(answer, texts[i].name, 8192, &s, &ignored) == 0 && s.n;
        if (there)
            json_put_str(out, texts[i].name, s);
        else if (texts[i].needed)
            return refuse(r, REASON_PROVIDER, "the provider sent no %s", texts[i].name);
    }
    if (json_need_u64(answer, "expires_in", 86400, &expires_s, &ignored) < 0 ||
        json_get_u64(answer, "interval", 3600, &interval_s, &ignored) < 0)
        return refuse(r, REASON_PROVIDER, "the provider's times for the device code are not valid");
    json_put_u64(out, "expires_in", expires_s);
    json_put_u64(out, "interval", interval_s);
    return 0;
}

static int run_start(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    AUTO(form_free) struct buf form = BUF(FORM_MAX);
    AUTO(provider_close_p) struct provider *p = provider_open(&a->client, r);
    if (!p)
        return -1;
    form_add(&form, "scope", a->client.scopes ? a->client.scopes : "openid profile email");
    AUTO(json_free_p)
    struct json_doc *codes = provider_post(p, ENDPOINT_DEVICE, GRANT_DEVICE, &form, r);
    return codes ? write_codes(json_root(codes), out, r) : -1;
}

static int run_poll(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    AUTO(form_free) struct buf form = BUF(FORM_MAX);
    AUTO(provider_close_p) struct provider *p = provider_open(&a->client, r);
    if (!p)
        return -1;
    form_add(&form, "grant_type", DEVICE_GRANT);
    form_add(&form, "device_code", a->device_code);
    AUTO(json_free_p)
    struct json_doc *tokens = provider_post(p, ENDPOINT_TOKEN, GRANT_DEVICE, &form, r);
    struct provider_expect want = { .token_needed = true };
    return tokens ? provider_person(p, json_root(tokens), &want, out, r) : -1;
}

const struct verb verb_oidc_device_start = {
    .name = "oidc_device_start",
    .help = "a code for a person to type at the provider",
    .fields = start_fields,
    .n = ARRAY_LEN(start_fields),
    .size = sizeof(struct asked),
    .run = run_start,
};
const struct verb verb_oidc_device_poll = {
    .name = "oidc_device_poll",
    .help = "has somebody typed the code, and who?",
    .fields = poll_fields,
    .n = ARRAY_LEN(poll_fields),
    .size = sizeof(struct asked),
    .run = run_poll,
};
