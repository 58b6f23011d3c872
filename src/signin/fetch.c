#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS: its successor is younger than Ubuntu 22.04 */
#include "signin/fetch.h"

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>

#include "sys/clock.h"

#define CONNECT_MS 5000L
#define BEARER_MAX 16384

struct fetcher {
    CURL *easy;
    int64_t until_ns;
    char why[CURL_ERROR_SIZE];
};

void fetcher_free_p(struct fetcher **f)
{
    if (*f)
        curl_easy_cleanup((*f)->easy);
    free(*f);
    *f = NULL;
}

struct fetcher *fetcher_new(const char *ca_file, const char *proxy, struct refusal *r)
{
    struct fetcher *f = xcalloc(1, sizeof *f);
    f->until_ns = clock_mono_ns() + FETCH_TOTAL_S * INT64_C(1000000000);
    f->easy = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    if (!f->easy) {
        refuse(r, REASON_PROVIDER, "libcurl does not start");
        fetcher_free_p(&f);
        return NULL;
    }
    curl_easy_setopt(f->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(f->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(f->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(f->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(f->easy, CURLOPT_PROXY, proxy ? proxy : ""); /* "": not the environment's */
    curl_easy_setopt(f->easy, CURLOPT_ERRORBUFFER, f->why);
    curl_easy_setopt(f->easy, CURLOPT_USERAGENT, "nightshift/" NS_VERSION);
    curl_easy_setopt(f->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
    if (ca_file)
        curl_easy_setopt(f->easy, CURLOPT_CAINFO, ca_file);
    return f;
}

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
    struct buf *body = ctx;
    buf_add(body, (struct str){ p, size * n });
    return body->full ? 0 : size * n;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           strcmp(host, "127.0.0.1") == 0;
}

static void cleanup_url(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void free_curl(char **text)
{
    curl_free(*text);
}

int fetch_check_url(const char *url, struct refusal *r)
{
    AUTO(cleanup_url) CURLU *parts = curl_url();
    AUTO(free_curl) char *scheme = NULL;
    AUTO(free_curl) char *host = NULL;
    AUTO(free_curl) char *user = NULL;
    if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return refuse(r, REASON_BAD_REQUEST, "'%s' is not a web address", url);
    if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK)
        return refuse(r, REASON_BAD_REQUEST, "a provider's address has a user name in it");
    if (strcmp(scheme, "https") == 0 || (strcmp(scheme, "http") == 0 && is_loopback(host)))
        return 0;
    return refuse(r, REASON_INSECURE, "'%s' is not https", url);
}

static int failed(struct fetcher *f, const char *url, CURLcode rc, struct refusal *r)
{
    bool trust = rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
                 rc == CURLE_SSL_ISSUER_ERROR;
    return refuse(r, trust ? REASON_CERTIFICATE : REASON_UNREACHABLE,
                  "the provider cannot be asked at %.120s: %.140s", url,
                  f->why[0] ? f->why : curl_easy_strerror(rc));
}

static struct curl_slist *headers_for(const struct fetch *what)
{
    char line[BEARER_MAX + 32];
    struct curl_slist *list = curl_slist_append(NULL, "Accept: application/json");
    if (what->bearer) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", what->bearer);
        list = curl_slist_append(list, line);
        sodium_memzero(line, sizeof line);
    }
    return list;
}

int fetch(struct fetcher *f, const struct fetch *what, long *out_status, struct buf *out_body,
          struct refusal *r)
{
    struct buf body = BUF(FETCH_BODY_MAX);
    int64_t left_ms = (f->until_ns - clock_mono_ns()) / 1000000;
    if (fetch_check_url(what->url, r) < 0)
        return -1;
    if (left_ms <= 0)
        return refuse(r, REASON_UNREACHABLE, "the provider took longer than %d s", FETCH_TOTAL_S);
    struct curl_slist *headers = headers_for(what);
    f->why[0] = '\0';
    curl_easy_setopt(f->easy, CURLOPT_URL, what->url);
    curl_easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(f->easy, CURLOPT_USERNAME, what->user);
    curl_easy_setopt(f->easy, CURLOPT_PASSWORD, what->secret);
    curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, &body);
    if (what->form)
        curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, what->form);
    else
        curl_easy_setopt(f->easy, CURLOPT_HTTPGET, 1L);
    CURLcode rc = curl_easy_perform(f->easy);
    curl_slist_free_all(headers);
    if (rc != CURLE_OK) {
        bool full = body.full;
        buf_free(&body);
        return full ? refuse(r, REASON_PROVIDER, "the provider sent more than %u bytes",
                             FETCH_BODY_MAX)
                    : failed(f, what->url, rc, r);
    }
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, out_status);
    buf_free(out_body);
    *out_body = body;
    return 0;
}

void form_free(struct buf *form)
{
    if (form->p)
        sodium_memzero(form->p, form->n);
    buf_free(form);
}

void form_add(struct buf *form, const char *key, const char *value)
{
    buf_printf(form, "%s%s=", form->n ? "&" : "", key);
    form_escape(form, value);
}

void form_escape(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("-._~", *p);
        if (plain)
            buf_addc(out, (char)*p);
        else
            buf_printf(out, "%%%02X", *p);
    }
}
