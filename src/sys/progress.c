#include "sys/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/term.h"

#define REDRAW_NS INT64_C(100000000)
#define SECOND_NS INT64_C(1000000000)
#define BAR_MAX 40u

struct progress {
    char *label;
    uint64_t done, total;
    int64_t began_ns, next_ns;
    bool tty;
};

/* 950, 12.3k, 4.5M: four characters or so. */
static const char *short_count(double v, char out[static 16])
{
    static const char units[] = { ' ', 'k', 'M', 'G', 'T', 'P' };
    size_t u = 0;
    for (; v >= 999.5 && u + 1 < sizeof units; u++)
        v /= 1000;
    int places = v < 99.95 && (u > 0 || (v < 10 && v > 0 && v != (double)(int)v)) ? 1 : 0;
    if (u == 0)
        snprintf(out, 16, "%.*f", places, v);
    else
        snprintf(out, 16, "%.*f%c", places, v < 99999 ? v : 99999, units[u]);
    return out;
}

static const char *short_time(int64_t seconds, char out[static 16])
{
    int s = (int)MIN(seconds, INT64_C(359999));
    if (s < 60)
        snprintf(out, 16, "%ds", s);
    else if (s < 3600)
        snprintf(out, 16, "%dm%02ds", s / 60, s % 60);
    else
        snprintf(out, 16, "%dh%02dm", s / 3600, s / 60 % 60);
    return out;
}

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Adds at most `columns` characters of z and says how many columns they take. */
static unsigned add_columns(struct buf *out, const char *z, unsigned columns)
{
    unsigned used = 0;
    size_t n = 0;
    for (; z[n]; n++) {
        if (starts_character(z[n])) {
            if (used == columns)
                break;
            used++;
        }
    }
    for (size_t i = 0; i < n; i++)
        buf_addc(out, (unsigned char)z[i] < ' ' || z[i] == 0x7f ? '?' : z[i]);
    return used;
}

static void add_bar(struct buf *out, const struct progress_view *v, double share, unsigned width)
{
    unsigned full = (unsigned)(share * (double)width);
    buf_addz(out, " [");
    if (v->colour)
        buf_addz(out, "\x1b[32m");
    for (unsigned i = 0; i < width; i++)
        buf_addc(out, i < full ? '=' : i == full ? '>' : ' ');
    if (v->colour)
        buf_addz(out, "\x1b[0m");
    buf_addc(out, ']');
}

void progress_line(const struct progress_view *v, struct buf *out)
{
    char figures[96], done[16], total[16], rate[16], left[16];
    double seconds = (double)v->elapsed_ns / 1e9;
    double per_second = seconds > 0 ? (double)v->done / seconds : 0;
    double share = v->total ? (double)v->done / (double)v->total : 0;
    share = MIN(share, 1.0);
    short_count((double)v->done, done);
    short_count(per_second, rate);
    if (!v->total) {
        snprintf(figures, sizeof figures, " %s, %s/s", done, rate);
    } else {
        double eta =
            per_second > 0 && v->done < v->total ? (double)(v->total - v->done) / per_second : 0;
        bool over = v->done >= v->total;
        short_time((int64_t)(over ? seconds : MIN(eta, 1e6)), left);
        snprintf(figures, sizeof figures, " %3d%% %s/%s, %s/s, %s%s", (int)(share * 100), done,
                 short_count((double)v->total, total), rate, left,
                 over              ? ""
                 : per_second <= 0 ? " ?"
                                   : " left");
    }
    /* The figures matter most, then the label; the bar takes what is left. */
    unsigned room = v->columns > 1 ? v->columns - 1 : 1; /* a full last column wraps on some */
    unsigned need = MIN((unsigned)strlen(figures), room);
    unsigned used = need + add_columns(out, v->label, room - need);
    if (v->total && room >= used + 3 + 8)
        add_bar(out, v, share, MIN(room - used - 3, BAR_MAX));
    add_columns(out, figures, need);
}

static void draw(const struct progress *p, int64_t now_ns, bool colour)
{
    AUTO(buf_free) struct buf line = BUF(4096);
    struct progress_view v = {
        .label = p->label,
        .done = p->done,
        .total = p->total,
        .elapsed_ns = now_ns - p->began_ns,
        .columns = p->tty ? term_columns(STDERR_FILENO) : 100,
        .colour = colour,
    };
    progress_line(&v, &line);
    if (p->tty)
        fprintf(stderr, "\r%s\x1b[K", buf_str(&line).p);
    else
        fprintf(stderr, "%s", buf_str(&line).p);
    fflush(stderr);
}

struct progress *progress_begin(const char *label, uint64_t total)
{
    struct progress *p = xcalloc(1, sizeof *p);
    p->label = xstrdup(label);
    p->total = total;
    p->began_ns = clock_mono_ns();
    p->next_ns = p->began_ns + REDRAW_NS;
    p->tty = term_is_tty(STDERR_FILENO);
    return p;
}

void progress_set(struct progress *p, uint64_t done)
{
    p->done = done;
    if (!p->tty)
        return;
    int64_t now_ns = clock_mono_ns();
    if (now_ns < p->next_ns)
        return;
    p->next_ns = now_ns + REDRAW_NS;
    draw(p, now_ns, term_colour(STDERR_FILENO));
}

struct progress *progress_done(struct progress *p)
{
    if (!p)
        return NULL;
    int64_t now_ns = clock_mono_ns();
    bool drawn = p->next_ns > p->began_ns + REDRAW_NS;
    if (p->tty ? drawn : now_ns - p->began_ns > SECOND_NS) {
        draw(p, now_ns, term_colour(STDERR_FILENO));
        fputc('\n', stderr);
    }
    free(p->label);
    free(p);
    return NULL;
}

void progress_done_p(struct progress **p)
{
    *p = progress_done(*p);
}
