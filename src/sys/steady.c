#include "sys/steady.h"

#include <stdio.h>
#include <time.h>

#include "base/parse.h"
#include "sys/file.h"
#include "sys/weak.h"

#define MINUTE_MS INT64_C(60000)

static int64_t away(int64_t ms)
{
    return ms < 0 ? -ms : ms;
}

static int64_t wall_now(const struct steady *s)
{
    return clock_now_ms(&s->config.wall);
}

static int64_t boot_now(const struct steady *s)
{
    return clock_now_ms(&s->config.boot);
}

/* ---- marks: "TIME BOOTTIME BOOTID" ---- */

struct mark {
    int64_t time_ms, boot_ms;
    struct str boot_id;
};

static bool read_mark(struct str text, struct mark *out)
{
    struct str time, boot;
    struct err e;
    return str_next_word(&text, &time) && str_next_word(&text, &boot) &&
           parse_i64(time, 0, INT64_MAX / 4, &out->time_ms, &e) == 0 &&
           parse_i64(boot, 0, INT64_MAX / 4, &out->boot_ms, &e) == 0 &&
           (out->boot_id = str_trim(text), true);
}

void steady_mark(struct steady *s, struct buf *out)
{
    int64_t now_ms = steady_now_ms(s);
    buf_printf(out, "%lld %lld %s", (long long)now_ms, (long long)(now_ms - s->offset_ms),
               s->boot_id);
}

void steady_begin(struct steady *s, const struct steady_config *config, struct str text)
{
    struct mark m;
    *s = (struct steady){ .config = *config };
    snprintf(s->boot_id, sizeof s->boot_id, "%s", config->boot_id);
    int64_t wall_ms = wall_now(s), boot_ms = boot_now(s);
    s->offset_ms = wall_ms - boot_ms;
    s->used_since = boot_ms;
    if (!read_mark(text, &m))
        return;
    s->base_ms = m.time_ms;
    s->base_boot_ms = boot_ms;
    bool same = m.boot_id.n && str_is(m.boot_id, s->boot_id) && boot_ms >= m.boot_ms;
    if (same)
        s->offset_ms = m.time_ms - m.boot_ms;
    else if (wall_ms < m.time_ms - STEADY_SMALL_MS)
        s->offset_ms = m.time_ms - boot_ms;
    s->doubted =
        !same && (wall_ms < m.time_ms - STEADY_SMALL_MS || wall_ms > m.time_ms + STEADY_FAR_MS);
}

/* ---- the time ---- */

/* A correction, as NTP makes them; many of them in a minute are a jump too. */
static bool is_small(struct steady *s, int64_t differs_ms, int64_t boot_ms)
{
    if (boot_ms - s->used_since >= MINUTE_MS) {
        s->used_since = boot_ms;
        s->used_ms = 0;
    }
    if (away(differs_ms) > STEADY_SMALL_MS || s->used_ms + away(differs_ms) > 2 * STEADY_SMALL_MS)
        return false;
    s->used_ms += away(differs_ms);
    return true;
}

int64_t steady_now_ms(struct steady *s)
{
    int64_t wall_ms = wall_now(s), boot_ms = boot_now(s);
    int64_t differs_ms = wall_ms - boot_ms - s->offset_ms;
    if (weak_or("clock_jumps", false, true) || is_small(s, differs_ms, boot_ms)) {
        s->offset_ms += differs_ms;
        s->differs_ms = s->differs_since = 0;
    } else if (away(differs_ms - s->differs_ms) > STEADY_SMALL_MS || !s->differs_since) {
        s->differs_ms = differs_ms;
        s->differs_since = MAX(boot_ms, INT64_C(1));
    }
    return boot_ms + s->offset_ms;
}

static int64_t clock_steady_now(void *self)
{
    return steady_now_ms(self);
}

struct clock steady_clock(struct steady *s)
{
    return (struct clock){ .now_ms = clock_steady_now, .self = s };
}

/* ---- jumps ---- */

bool steady_holds(struct steady *s, int64_t *out_ahead_ms)
{
    int64_t now_ms = steady_now_ms(s);
    *out_ahead_ms = s->differs_since ? s->differs_ms
                  : s->doubted       ? now_ms - s->base_ms - (boot_now(s) - s->base_boot_ms)
                                     : 0;
    return s->differs_since || s->doubted;
}

int64_t steady_wants(struct steady *s, bool confirmed)
{
    int64_t now_ms = steady_now_ms(s), boot_ms = boot_now(s);
    int64_t since_ms = boot_ms - s->base_boot_ms, wall_ms = now_ms + s->differs_ms;
    /* What was doubted at the start has come right: it is where it would be, had we only been away. */
    bool right = s->doubted && wall_ms >= s->base_ms + since_ms - STEADY_SMALL_MS &&
                 wall_ms <= s->base_ms + since_ms + STEADY_FAR_MS;
    s->doubted &= !right && !confirmed;
    if (!s->differs_since)
        return 0;
    bool settled =
        boot_ms - s->differs_since >= STEADY_SETTLE_MS && away(s->differs_ms) <= STEADY_STEP_MS;
    return confirmed || right || settled ? s->differs_ms : 0;
}

void steady_step(struct steady *s, int64_t by_ms)
{
    s->offset_ms += by_ms;
    s->differs_ms = s->differs_since = 0;
}

/* ---- this machine ---- */

static int64_t boot_now_ms(void *self)
{
    struct timespec t;
    (void)self;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct clock clock_boot(void)
{
    return (struct clock){ .now_ms = boot_now_ms };
}

const char *steady_boot_id(char out[static 40])
{
    AUTO(buf_free) struct buf text = { 0 };
    struct err e;
    out[0] = '\0';
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &text, &e) == 0)
        snprintf(out, 40, "%.*s", STR_ARG(str_trim(buf_str(&text))));
    return out;
}
