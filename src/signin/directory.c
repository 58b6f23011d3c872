#include "signin/directory.h"

#include <ldap.h>
#include <sys/time.h>

#define AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"
#define VALUES_MAX 2048

struct directory {
    LDAP *ld;
    const struct directory_at *at;
};

/* ---- errors ---- */

static const char *diagnostic(const struct directory *d, char out[static 200])
{
    char *text = NULL;
    ldap_get_option(d->ld, LDAP_OPT_DIAGNOSTIC_MESSAGE, &text);
    size_t n = text ? strnlen(text, 199) : 0;
    memcpy(out, n ? text : "", n);
    out[n] = '\0';
    ldap_memfree(text);
    return out;
}

static int unreachable(const struct directory *d, int rc, struct refusal *r)
{
    char text[200];
    bool is_certificate = strcasestr(diagnostic(d, text), "certificate") ||
                          (d->at->starttls && rc == LDAP_CONNECT_ERROR);
    return refuse(r, is_certificate ? REASON_CERTIFICATE : REASON_UNREACHABLE,
                  "the directory %s cannot be asked: %s%s%s", d->at->url, ldap_err2string(rc),
                  text[0] ? ": " : "", text);
}

static bool is_of_connection(int rc)
{
    return rc < 0 || rc == LDAP_BUSY || rc == LDAP_UNAVAILABLE;
}

/* ---- opening ---- */

static bool is_loopback(const char *host)
{
    return !host || !host[0] || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

static int check_url(const char *url, const struct directory_at *at, struct refusal *r)
{
    LDAPURLDesc *parts = NULL;
    if (ldap_url_parse(url, &parts) != LDAP_URL_SUCCESS)
        return refuse(r, REASON_BAD_REQUEST, "'%s' is not the address of a directory", url);
    bool plain = strcmp(parts->lud_scheme, "ldap") == 0;
    bool safe = !plain || at->starttls || at->insecure || is_loopback(parts->lud_host);
    bool odd = at->starttls && !plain;
    ldap_free_urldesc(parts);
    if (!safe)
        return refuse(r, REASON_INSECURE, "%s would send passwords readable over the network", url);
    if (odd)
        return refuse(r, REASON_BAD_REQUEST, "starttls is for ldap://, not for %s", url);
    return 0;
}

static int check_urls(const struct directory_at *at, struct refusal *r)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str rest = str_of(at->url), word;
    while (str_next_word(&rest, &word))
        if (check_url(arena_strndup(&a, word.p, word.n), at, r) < 0)
            return -1;
    return 0;
}

static void set_options(LDAP *ld, const struct directory_at *at)
{
    int version = LDAP_VERSION3, demand = LDAP_OPT_X_TLS_DEMAND, client = 0;
    struct timeval patience = { .tv_sec = (time_t)at->timeout_s };
    ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version);
    ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
    ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &patience);
    ldap_set_option(ld, LDAP_OPT_TIMEOUT, &patience);
    ldap_set_option(ld, LDAP_OPT_X_TLS_REQUIRE_CERT, &demand);
    ldap_set_option(ld, LDAP_OPT_X_TLS_CACERTFILE, at->ca_file ? at->ca_file : AUTHORITIES);
    ldap_set_option(ld, LDAP_OPT_X_TLS_NEWCTX, &client); /* last: it takes those before it */
}

struct directory *directory_open(const struct directory_at *at, struct refusal *r)
{
    AUTO(directory_close_p) struct directory *d = xcalloc(1, sizeof *d);
    d->at = at;
    if (check_urls(at, r) < 0)
        return NULL;
    int rc = ldap_initialize(&d->ld, at->url);
    if (rc != LDAP_SUCCESS) {
        refuse(r, REASON_BAD_REQUEST, "'%s' is not the address of a directory", at->url);
        return NULL;
    }
    set_options(d->ld, at);
    rc = at->starttls ? ldap_start_tls_s(d->ld, NULL, NULL) : LDAP_SUCCESS;
    if (rc == LDAP_PROTOCOL_ERROR || rc == LDAP_UNAVAILABLE) {
        refuse(r, REASON_CERTIFICATE, "the directory %s does not offer StartTLS", at->url);
        err_hint(&r->e, "set it up there, or use ldaps://");
        return NULL;
    }
    if (rc != LDAP_SUCCESS) {
        unreachable(d, rc, r);
        return NULL;
    }
    return TAKE(d);
}

void directory_close_p(struct directory **d)
{
    if (*d && (*d)->ld)
        ldap_unbind_ext_s((*d)->ld, NULL, NULL);
    free(*d);
    *d = NULL;
}

/* ---- binding ---- */

static int bind_as(struct directory *d, const char *dn, const char *password)
{
    struct berval secret = { .bv_val = (char *)(uintptr_t)password, .bv_len = strlen(password) };
    return ldap_sasl_bind_s(d->ld, dn, LDAP_SASL_SIMPLE, &secret, NULL, NULL, NULL);
}

int directory_bind_service(struct directory *d, const char *dn, const char *password,
                           struct refusal *r)
{
    if (!dn)
        return 0;
    if (!password) /* many servers take it for an anonymous one, and say that all is well */
        return refuse(r, REASON_BAD_REQUEST, "bind_dn is given without bind_password");
    int rc = bind_as(d, dn, password);
    if (rc == LDAP_SUCCESS)
        return 0;
    if (is_of_connection(rc))
        return unreachable(d, rc, r);
    return refuse(r, REASON_SERVICE_BIND, "the directory does not let '%s' in: %s", dn,
                  ldap_err2string(rc));
}

/* What Active Directory says in the text of "invalid credentials". */
static const struct {
    const char *mark;
    enum reason why;
    const char *words;
} ad_marks[] = {
    { "data 530", REASON_NOT_ALLOWED, "the account may not sign in at this time" },
    { "data 531", REASON_NOT_ALLOWED, "the account may not sign in from here" },
    { "data 532", REASON_PASSWORD_EXPIRED, "the password has expired" },
    { "data 533", REASON_ACCOUNT_LOCKED, "the account is disabled" },
    { "data 701", REASON_ACCOUNT_EXPIRED, "the account has expired" },
    { "data 773", REASON_PASSWORD_EXPIRED, "the password has to be changed first" },
    { "data 775", REASON_ACCOUNT_LOCKED, "the account is locked" },
};

int directory_bind_person(struct directory *d, const char *dn, const char *password,
                          struct refusal *r)
{
    char text[200];
    if (!dn[0] || !password[0]) /* either would be an anonymous bind, which succeeds */
        return refuse(r, REASON_EMPTY_PASSWORD, "the password is empty");
    int rc = bind_as(d, dn, password);
    if (rc == LDAP_SUCCESS)
        return 0;
    if (is_of_connection(rc))
        return unreachable(d, rc, r);
    diagnostic(d, text);
    for (size_t i = 0; i < ARRAY_LEN(ad_marks); i++)
        if (strstr(text, ad_marks[i].mark))
            return refuse(r, ad_marks[i].why, "%s", ad_marks[i].words);
    if (rc == LDAP_INVALID_CREDENTIALS || rc == LDAP_INAPPROPRIATE_AUTH)
        return refuse(r, REASON_WRONG_PASSWORD, "the user name or the password is wrong");
    return refuse(r, REASON_NOT_ALLOWED, "the directory does not let this account in: %s",
                  ldap_err2string(rc));
}

/* ---- searching ---- */

static const char *const *take_values(LDAP *ld, LDAPMessage *m, const char *attr, struct arena *a)
{
    struct berval **found = ldap_get_values_len(ld, m, attr);
    int count = found ? ldap_count_values_len(found) : 0;
    size_t n = MIN((size_t)count, (size_t)VALUES_MAX);
    const char **out = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = arena_strndup(a, found[i]->bv_val, found[i]->bv_len);
    if (found)
        ldap_value_free_len(found);
    return out;
}

static size_t take_entries(LDAP *ld, LDAPMessage *result, const struct search *s, struct arena *a,
                           struct entry *out)
{
    size_t n = 0, attrs = 0;
    while (s->attrs[attrs])
        attrs++;
    for (LDAPMessage *m = ldap_first_entry(ld, result); m && n < s->most;
         m = ldap_next_entry(ld, m)) {
        char *dn = ldap_get_dn(ld, m);
        out[n].dn = arena_strndup(a, dn ? dn : "", dn ? strlen(dn) : 0);
        ldap_memfree(dn);
        out[n].values = arena_array(a, const char *const *, attrs);
        for (size_t i = 0; i < attrs; i++)
            out[n].values[i] = take_values(ld, m, s->attrs[i], a);
        n++;
    }
    return n;
}

int directory_search(struct directory *d, const struct search *s, struct arena *a,
                     struct entry **out, size_t *out_n, struct refusal *r)
{
    LDAPMessage *result = NULL;
    struct timeval patience = { .tv_sec = (time_t)d->at->timeout_s };
    int rc =
        ldap_search_ext_s(d->ld, s->base, s->filter ? LDAP_SCOPE_SUBTREE : LDAP_SCOPE_BASE,
                          s->filter ? s->filter : "(objectClass=*)", (char **)(uintptr_t)s->attrs,
                          0, NULL, NULL, &patience, (int)s->most + 1, &result);
    int found = result ? ldap_count_entries(d->ld, result) : 0;
    bool too_many = rc == LDAP_SIZELIMIT_EXCEEDED || found > (int)s->most;
    if (too_many)
        refuse(r, REASON_TOO_MANY, "the directory has more than %zu entries for this search",
               s->most);
    else if (rc == LDAP_FILTER_ERROR)
        refuse(r, REASON_DIRECTORY, "the filter is not valid: %.150s", s->filter);
    else if (is_of_connection(rc))
        unreachable(d, rc, r);
    else if (rc != LDAP_SUCCESS && rc != LDAP_NO_SUCH_OBJECT)
        refuse(r, REASON_DIRECTORY, "the directory refuses the search below '%s': %s", s->base,
               ldap_err2string(rc));
    bool good = !too_many && (rc == LDAP_SUCCESS || rc == LDAP_NO_SUCH_OBJECT);
    if (good) {
        struct entry *list = arena_array(a, struct entry, (size_t)found + 1);
        *out_n = result ? take_entries(d->ld, result, s, a, list) : 0;
        *out = list;
    }
    ldap_msgfree(result);
    return good ? 0 : -1;
}
