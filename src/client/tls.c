/* TLS through the libcurl of the system, loaded on demand.  The prototypes and numbers below are
 * part of libcurl's stable interface (libcurl.so.4). */
#include <dlfcn.h>
#include <stdio.h>

#include "client/conn.h"

enum {
    OPT_CONNECT_TIMEOUT_MS = 156,
    OPT_NOSIGNAL = 99,
    OPT_CONNECT_ONLY = 141,
    OPT_ALPN = 226,
    OPT_URL = 10002,
    OPT_ERROR_BUFFER = 10010,
    OPT_CA_FILE = 10065,
    INFO_ACTIVE_SOCKET = 0x500000 + 44,
    RC_OK = 0,
    RC_PEER = 60, /* the certificate cannot be verified */
    RC_AGAIN = 81
};

struct tls {
    void *library, *easy;
    int (*perform)(void *easy);
    int (*setopt)(void *easy, int option, ...);
    int (*getinfo)(void *easy, int info, ...);
    int (*send)(void *easy, const void *p, size_t n, size_t *out);
    int (*recv)(void *easy, void *p, size_t n, size_t *out);
    void (*cleanup)(void *easy);
    int fd;
    char why[256]; /* libcurl writes its reasons here */
    /* OpenSSL wants what it could not send in one go again, in the same place. */
    char pending[16384];
    size_t pending_n;
};

/* A function pointer out of dlsym, as POSIX has it. */
static bool load(struct tls *t, const char *name, void *into)
{
    void *found = dlsym(t->library, name);
    memcpy(into, &found, sizeof found);
    return found != NULL;
}

static int load_library(struct tls *t, struct err *e)
{
    void *(*init)(void) = NULL;
    t->library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!t->library) {
        err_set(e, ERR_UNAVAILABLE, "https needs libcurl, which is not installed here");
        return err_hint(e, "install it: apt-get install libcurl4");
    }
    if (!load(t, "curl_easy_init", &init) || !load(t, "curl_easy_perform", &t->perform) ||
        !load(t, "curl_easy_setopt", &t->setopt) || !load(t, "curl_easy_getinfo", &t->getinfo) ||
        !load(t, "curl_easy_send", &t->send) || !load(t, "curl_easy_recv", &t->recv) ||
        !load(t, "curl_easy_cleanup", &t->cleanup))
        return err_set(e, ERR_UNAVAILABLE, "this libcurl is too old for https");
    t->easy = init();
    return t->easy ? 0 : err_set(e, ERR_UNAVAILABLE, "libcurl does not start");
}

static int connect_tls(struct tls *t, const struct address *a, int timeout_ms, struct err *e)
{
    const char *authority = getenv("NIGHTSHIFT_CA");
    t->setopt(t->easy, OPT_URL, a->text);
    t->setopt(t->easy, OPT_CONNECT_ONLY, 1L);
    t->setopt(t->easy, OPT_NOSIGNAL, 1L);
    t->setopt(t->easy, OPT_ALPN, 0L); /* or a proxy might choose HTTP/2, which we do not speak */
    t->setopt(t->easy, OPT_CONNECT_TIMEOUT_MS, (long)timeout_ms);
    t->setopt(t->easy, OPT_ERROR_BUFFER, t->why);
    if (authority && authority[0])
        t->setopt(t->easy, OPT_CA_FILE, authority);
    int rc = t->perform(t->easy);
    if (rc != RC_OK) {
        err_set(e, ERR_UNAVAILABLE, "cannot reach the server at %s: %s", a->text,
                t->why[0] ? t->why : "TLS failed");
        return rc == RC_PEER ? err_hint(e, "name the file of its authority in NIGHTSHIFT_CA")
                             : err_hint(e, "check NIGHTSHIFT_SERVER, and that the server runs");
    }
    if (t->getinfo(t->easy, INFO_ACTIVE_SOCKET, &t->fd) != RC_OK || t->fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "libcurl lost the connection to %s", a->text);
    return 0;
}

struct tls *tls_open(const struct address *a, int timeout_ms, struct err *e)
{
    struct tls *t = xcalloc(1, sizeof *t);
    t->fd = -1;
    if (load_library(t, e) < 0 || connect_tls(t, a, timeout_ms, e) < 0)
        return tls_free(t);
    return t;
}

struct tls *tls_free(struct tls *t)
{
    if (!t)
        return NULL;
    if (t->easy)
        t->cleanup(t->easy);
    if (t->library)
        dlclose(t->library);
    free(t);
    return NULL;
}

int tls_fd(const struct tls *t)
{
    return t->fd;
}

static enum conn_io outcome(const struct tls *t, int rc, const char *verb, struct err *e)
{
    if (rc == RC_AGAIN)
        return CONN_AGAIN;
    err_set(e, ERR_UNAVAILABLE, "cannot %s the server: %s", verb,
            t->why[0] ? t->why : "TLS failed");
    return CONN_BROKEN;
}

enum conn_io tls_read(struct tls *t, char *p, size_t n, size_t *out_n, struct err *e)
{
    size_t got = 0;
    int rc = t->recv(t->easy, p, n, &got);
    if (rc != RC_OK)
        return outcome(t, rc, "read from", e);
    *out_n = got;
    return got ? CONN_OK : CONN_EOF;
}

enum conn_io tls_write(struct tls *t, struct str bytes, size_t *out_n, struct err *e)
{
    size_t put = 0;
    if (t->pending_n == 0) {
        t->pending_n = MIN(bytes.n, sizeof t->pending);
        memcpy(t->pending, bytes.p, t->pending_n);
    }
    int rc = t->send(t->easy, t->pending, t->pending_n, &put);
    if (rc != RC_OK)
        return outcome(t, rc, "write to", e);
    t->pending_n = 0;
    *out_n = put;
    return CONN_OK;
}
