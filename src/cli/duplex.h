/* duplex - a two-way stream of bytes to a task, made of ordinary requests.
 *
 * What comes out is one answer that goes on; what goes in are short requests, one after the other
 * and numbered, so that one that is said again after a broken connection counts once.  It works over
 * whatever carries HTTP: TLS, proxies.  Nothing blocks but the connecting.
 */
#ifndef NS_CLI_DUPLEX_H
#define NS_CLI_DUPLEX_H

#include <poll.h>

#include "cli/client.h"

struct duplex;
struct duplex *duplex_open(struct client *c, uint64_t job, uint32_t replica, struct err *e);
struct duplex *duplex_free(struct duplex *d); /* NULL ok; returns NULL */

#define DUPLEX_POLLS 2
void duplex_poll(const struct duplex *d, struct pollfd p[static DUPLEX_POLLS]);

enum feed_is duplex_read(struct duplex *d, struct str *out_bytes, struct err *e);
bool duplex_is_open(const struct duplex *d); /* the server has accepted it */

/* Takes all of it, when duplex_takes says so.  duplex_step carries it on; -1: it was refused, or the
 * server is gone. */
bool duplex_takes(const struct duplex *d);
void duplex_write(struct duplex *d, struct str bytes);
int duplex_step(struct duplex *d, struct err *e) MUST_USE;

#endif
