/* asked - src/http for the tests of what is above it: requests made of values, answers kept as values.
 *
 * A test program that is built with asked.c has it instead of the server, under the names of http/http.h: no
 * socket, no thread, no time.  Paths, queries and forms are read by the same parsers and refusals are written by
 * the same writer, so what a handler sees is what the server would give it.  What the server itself refuses
 * (framing, sizes, rates of an address) has its tests in src/http.
 * A handler that does what the server would only log (two answers, a header that is none) fails the test.
 */
#ifndef NS_TESTS_LIB_ASKED_H
#define NS_TESTS_LIB_ASKED_H

#include "http/http.h"

struct asked_header {
    const char *name, *value;
};

#define ASKED_HEADERS_MAX 16

struct asked_question {
    const char *method, *target;
    struct str body;
    struct asked_header header[ASKED_HEADERS_MAX]; /* ends with a NULL name */
    struct http_peer peer;
};

/* Fails the test when the target is none.  Strings are copied. */
struct http_request *asked_new(const struct asked_question *q);
struct http_request *asked_free(struct http_request *rq); /* as if its client went away; NULL ok */

int asked_status(const struct http_request *rq);                           /* 0: not answered */
const char *asked_said(const struct http_request *rq, const char *header); /* NULL when absent */
size_t asked_count(const struct http_request *rq, const char *header);
bool asked_streams(const struct http_request *rq);
bool asked_over(const struct http_request *rq); /* nothing more comes */

/* What came of the answer's body, also of a stream that goes on; ends with a NUL. */
struct str asked_text(const struct http_request *rq);

/* The client of a stream reads what waits for it; one that never does is slow. */
void asked_read(struct http_request *rq);
/* It goes away. */
void asked_leave(struct http_request *rq);

#endif
