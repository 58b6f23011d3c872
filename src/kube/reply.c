/* What an answer means: the server's Status object, or why there is none. */
#include "base/json.h"
#include "kube/state.h"

#define STATUS_TEXT_MAX (1u << 20)

static enum err_code code_of(int status)
{
    switch (status) {
    case 401:
    case 403: return ERR_DENIED;
    case 404:
    case 410: return ERR_NOT_FOUND;
    case 409: return ERR_CONFLICT;
    case 413: return ERR_TOO_LARGE;
    case 429: return ERR_UNAVAILABLE;
    default: return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
    }
}

void kube_reply_status(struct kube_reply *r, const struct kube_client *c, struct json_doc **out_doc)
{
    struct err ignored;
    struct str message = { 0 };
    err_set(&r->err, code_of(r->status), "the API server answered %d", r->status);
    *out_doc = r->body.n ? json_read(r->body, &ignored) : NULL;
    const struct json *root = *out_doc ? json_root(*out_doc) : NULL;
    if (json_is_object(root)) {
        if (json_get_str(root, "reason", 256, &r->reason, &ignored) < 0 ||
            json_get_str(root, "message", STATUS_TEXT_MAX, &message, &ignored) < 0)
            message = (struct str){ 0 };
    } else {
        message = str_trim(r->body);
    }
    if (message.n)
        err_set(&r->err, code_of(r->status), "the API server answered %d: %.*s", r->status,
                (int)MIN(message.n, (size_t)280), message.p);
    if (r->status == 401 || r->status == 403)
        err_hint(&r->err, "check the account and its rights: %.140s", c->config->source);
}

void kube_reply_fill(struct kube_reply *r, const struct kube_transfer *t,
                     const struct kube_client *c, CURLcode rc, struct json_doc **out_doc)
{
    long status = 0;
    curl_off_t wait_s = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &wait_s);
    r->status = (int)status;
    r->retry_after_ms = wait_s > 0 && wait_s < 86400 ? wait_s * 1000 : 0;
    r->reason = STR("");
    if (rc != CURLE_OK)
        kube_transfer_error(t, c->config, rc, &r->err);
    else if (status < 200 || status > 299)
        kube_reply_status(r, c, out_doc);
}
