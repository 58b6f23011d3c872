#include "init/outlet.h"

#include <fcntl.h>

#include "init/times.h"
#include "init/wait.h"

#define MARK_BYTES (256u << 10)
#define POLL_MS 60000 /* at a time */

void outlet_open(struct outlet *o, int fd)
{
    /* The queue may hold as much again that was sent already. */
    *o = (struct outlet){
        .fd = fd,
        .restore = fd >= 0 ? fcntl(fd, F_GETFL) : -1,
        .q.b = BUF(2 * (MARK_BYTES + OUTLET_PIECE_MAX)),
    };
    if (o->restore >= 0 && !(o->restore & O_NONBLOCK))
        fcntl(fd, F_SETFL, o->restore | O_NONBLOCK);
    else
        o->restore = -1;
}

void outlet_drop(struct outlet *o)
{
    queue_drop(&o->q);
    o->gone = true;
}

void outlet_close(struct outlet *o)
{
    if (o->fd >= 0 && o->restore >= 0)
        fcntl(o->fd, F_SETFL, o->restore);
    buf_free(&o->q.b);
    *o = (struct outlet){ .fd = -1, .restore = -1 };
}

bool outlet_full(const struct outlet *o)
{
    return queue_bytes(&o->q) >= MARK_BYTES;
}

bool outlet_idle(const struct outlet *o)
{
    return queue_bytes(&o->q) == 0;
}

void outlet_write(struct outlet *o, struct str bytes)
{
    if (o->fd < 0 || o->gone)
        return;
    buf_add(&o->q.b, bytes);
    outlet_flush(o);
}

struct pollfd outlet_poll(const struct outlet *o)
{
    return (struct pollfd){ outlet_idle(o) ? -1 : o->fd, POLLOUT, 0 };
}

void outlet_flush(struct outlet *o)
{
    if (o->fd >= 0 && !o->gone && queue_flush(&o->q, o->fd) < 0)
        outlet_drop(o);
}

static void wait_while(struct outlet *o, bool (*holds)(const struct outlet *o), int64_t until_ms)
{
    for (int64_t now_ms; holds(o); outlet_flush(o)) {
        struct pollfd p = outlet_poll(o);
        now_ms = mono_ms();
        if (now_ms >= until_ms) {
            outlet_drop(o);
            return;
        }
        wait_ready(&p, 1, (int)MIN(until_ms - now_ms, POLL_MS));
    }
}

static bool is_busy(const struct outlet *o)
{
    return !outlet_idle(o);
}

void outlet_wait_room(struct outlet *o, int64_t until_ms)
{
    wait_while(o, outlet_full, until_ms);
}

void outlet_wait_idle(struct outlet *o, int64_t until_ms)
{
    wait_while(o, is_busy, until_ms);
}
