/* TLS by the OpenSSL of the system, loaded on demand: only its headers are needed to build. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "client/conn.h"

#define LIBRARY "libssl.so.3"
#define MODES                                                                                      \
    (SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS)

/* What is used of it; libssl knows where libcrypto's are. */
#define FUNCTIONS(X)                                                                               \
    X(ERR_clear_error)                                                                             \
    X(ERR_peek_error)                                                                              \
    X(ERR_reason_error_string)                                                                     \
    X(SSL_CTX_ctrl)                                                                                \
    X(SSL_CTX_free)                                                                                \
    X(SSL_CTX_load_verify_locations)                                                               \
    X(SSL_CTX_new)                                                                                 \
    X(SSL_CTX_set_default_verify_paths)                                                            \
    X(SSL_CTX_set_options)                                                                         \
    X(SSL_CTX_set_verify)                                                                          \
    X(SSL_connect)                                                                                 \
    X(SSL_ctrl)                                                                                    \
    X(SSL_free)                                                                                    \
    X(SSL_get0_param)                                                                              \
    X(SSL_get_error)                                                                               \
    X(SSL_get_verify_result)                                                                       \
    X(SSL_new)                                                                                     \
    X(SSL_read)                                                                                    \
    X(SSL_set1_host)                                                                               \
    X(SSL_set_fd)                                                                                  \
    X(SSL_want)                                                                                    \
    X(SSL_write)                                                                                   \
    X(TLS_client_method)                                                                           \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                               \
    X(X509_verify_cert_error_string)

struct tls {
    void *library;
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
    SSL_CTX *ctx;
    SSL *ssl;
};

static int load_library(struct tls *t, struct err *e)
{
    void *found;
    t->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!t->library) {
        err_set(e, ERR_UNAVAILABLE, "https needs OpenSSL 3, which is not installed here");
        return err_hint(e, "install it: apt-get install libssl3");
    }
    /* A function pointer out of dlsym, as POSIX has it. */
#define X(name)                                                                                    \
    if (!(found = dlsym(t->library, #name)))                                                       \
        return err_set(e, ERR_UNAVAILABLE, "this OpenSSL has no %s, which https needs", #name);    \
    memcpy(&t->name, &found, sizeof found);
    FUNCTIONS(X)
#undef X
    return 0;
}

/* Why the last call failed; never empty. */
static const char *reason(const struct tls *t)
{
    unsigned long code = t->ERR_peek_error();
    const char *text = code ? t->ERR_reason_error_string(code) : NULL;
    return text ? text : errno ? strerror(errno) : "TLS failed";
}

/* ---- connecting ---- */

/* The name in the certificate must be the one that was asked for. */
static bool expect_host(const struct tls *t, const char *host)
{
    struct in6_addr room;
    if (inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1)
        return t->X509_VERIFY_PARAM_set1_ip_asc(t->SSL_get0_param(t->ssl), host) == 1;
    char name[256];
    snprintf(name, sizeof name, "%s", host);
    return t->SSL_set1_host(t->ssl, name) == 1 &&
           t->SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) == 1;
}

static int trust(const struct tls *t, struct err *e)
{
    const char *authority = getenv("NIGHTSHIFT_CA");
    if (!authority || !authority[0])
        return t->SSL_CTX_set_default_verify_paths(t->ctx) == 1
                 ? 0
                 : err_set(e, ERR_UNAVAILABLE, "cannot read the system's certificates: %s",
                           reason(t));
    if (t->SSL_CTX_load_verify_locations(t->ctx, authority, NULL) == 1)
        return 0;
    err_set(e, ERR_INVALID, "NIGHTSHIFT_CA: cannot read certificates from %s: %s", authority,
            reason(t));
    return err_hint(e, "name a file in PEM that has the authority of the server's certificate");
}

static int prepare(struct tls *t, const struct address *a, int fd, struct err *e)
{
    t->ERR_clear_error();
    errno = 0;
    t->ctx = t->SSL_CTX_new(t->TLS_client_method());
    if (!t->ctx)
        return err_set(e, ERR_UNAVAILABLE, "OpenSSL does not start: %s", reason(t));
    t->SSL_CTX_ctrl(t->ctx, SSL_CTRL_MODE, MODES, NULL);
    t->SSL_CTX_ctrl(t->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    /* An end without a farewell is one; whether an answer is whole is seen where it is read. */
    t->SSL_CTX_set_options(t->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
    t->SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    if (trust(t, e) < 0)
        return -1;
    t->ssl = t->SSL_new(t->ctx);
    if (!t->ssl || t->SSL_set_fd(t->ssl, fd) != 1 || !expect_host(t, a->host))
        return err_set(e, ERR_UNAVAILABLE, "cannot speak TLS with %s: %s", a->text, reason(t));
    return 0;
}

struct tls *tls_new(const struct address *a, int fd, struct err *e)
{
    struct tls *t = xcalloc(1, sizeof *t);
    return load_library(t, e) < 0 || prepare(t, a, fd, e) < 0 ? tls_free(t) : t;
}

struct tls *tls_free(struct tls *t)
{
    if (!t)
        return NULL;
    if (t->ssl)
        t->SSL_free(t->ssl);
    if (t->ctx)
        t->SSL_CTX_free(t->ctx);
    if (t->library)
        dlclose(t->library);
    free(t);
    return NULL;
}

bool tls_wants_write(const struct tls *t)
{
    return t->SSL_want(t->ssl) == SSL_WRITING;
}

/* ---- calls, between begin() and end() ---- */

/* OpenSSL writes with write(2), also when it reads, and a command may want to die of a pipe of its own: SIGPIPE
 * waits meanwhile. */
static void begin(const struct tls *t, sigset_t *out_was)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, out_was);
    t->ERR_clear_error();
    errno = 0;
}

static enum conn_io outcome(const struct tls *t, int rc, const char *verb, struct err *e)
{
    int kind = t->SSL_get_error(t->ssl, rc);
    if (kind == SSL_ERROR_NONE)
        return CONN_OK;
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return CONN_AGAIN;
    if (kind == SSL_ERROR_ZERO_RETURN ||
        (kind == SSL_ERROR_SYSCALL && (errno == EPIPE || errno == ECONNRESET || errno == 0))) {
        err_set(e, ERR_UNAVAILABLE, "the server closed the connection");
        return CONN_EOF;
    }
    err_set(e, ERR_UNAVAILABLE, "cannot %s the server: %s", verb, reason(t));
    return CONN_BROKEN;
}

/* What a call that gave `rc` means; *e for all but CONN_OK and CONN_AGAIN. */
static enum conn_io end(const struct tls *t, const sigset_t *was, int rc, const char *verb,
                        struct err *e)
{
    sigset_t set;
    bool raised = errno == EPIPE && !sigismember(was, SIGPIPE);
    enum conn_io io = outcome(t, rc, verb, e);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    if (raised)
        (void)sigtimedwait(&set, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, was, NULL);
    return io;
}

enum conn_io tls_connect(struct tls *t, const struct address *a, struct err *e)
{
    sigset_t was;
    begin(t, &was);
    enum conn_io io = end(t, &was, t->SSL_connect(t->ssl), "reach", e);
    if (io == CONN_OK || io == CONN_AGAIN)
        return io;
    long verdict = t->SSL_get_verify_result(t->ssl);
    if (verdict != X509_V_OK) {
        err_set(e, ERR_UNAVAILABLE, "cannot reach the server at %s: SSL certificate problem: %s",
                a->text, t->X509_verify_cert_error_string(verdict));
        err_hint(e, "name the file of its authority in NIGHTSHIFT_CA");
    } else {
        err_set(e, ERR_UNAVAILABLE, "cannot reach the server at %s: %s", a->text,
                io == CONN_EOF ? "it closed the connection" : reason(t));
        err_hint(e, "check NIGHTSHIFT_SERVER, and that the server speaks TLS there");
    }
    return CONN_BROKEN;
}

enum conn_io tls_read(struct tls *t, char *p, size_t n, size_t *out_n, struct err *e)
{
    sigset_t was;
    begin(t, &was);
    int got = t->SSL_read(t->ssl, p, (int)MIN(n, (size_t)INT32_MAX));
    *out_n = got > 0 ? (size_t)got : 0;
    return end(t, &was, got, "read from", e);
}

enum conn_io tls_write(struct tls *t, struct str bytes, size_t *out_n, struct err *e)
{
    sigset_t was;
    begin(t, &was);
    int put = t->SSL_write(t->ssl, bytes.p, (int)MIN(bytes.n, (size_t)INT32_MAX));
    *out_n = put > 0 ? (size_t)put : 0;
    return end(t, &was, put, "write to", e);
}
