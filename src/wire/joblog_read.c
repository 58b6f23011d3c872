/* The reader of a whole log.  The writer empties the oldest file whenever it needs a new one, without
 * asking: so after each piece read the file's first record is looked at again, and only when it is
 * still the one that was expected does the piece count.  A record without its line feed is never
 * kept between calls, as the writer may take back what a full disk cut short. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/joblog.h"

#define PIECE_BYTES 65536u
#define HEAD_BYTES 64u
#define PIECES_PER_CALL 2048u /* a bound for a file of which nothing is a record */

_Static_assert(PIECE_BYTES >= 2 * JOBLOG_RECORD_MAX,
               "a piece holds a whole record wherever it begins");

struct joblog_reader {
    int dir; /* -1: the files are the caller's */
    int fd[JOBLOG_SEGMENTS];
    bool placed; /* in the segment below; else before the oldest */
    bool in_bad; /* in the middle of a line that is too long */
    int at;
    uint64_t number;
    uint64_t next_byte; /* of the file, after what `piece` holds */
    uint64_t lost, bad;
    bool ends; /* at `last`, whatever was written behind it */
    struct joblog_place last;
    size_t begin, end; /* what is not read yet of `piece` */
    char piece[PIECE_BYTES];
};

struct segment {
    int at;
    uint64_t number;
};

struct joblog_reader *joblog_reader_open(const char *dir, struct err *e)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        enum err_code code = errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
        err_set(e, code, "cannot open the log in '%s': %s", dir, strerror(errno));
        return NULL;
    }
    struct joblog_reader *r = xcalloc(1, sizeof *r);
    r->dir = fd;
    for (int i = 0; i < JOBLOG_SEGMENTS; i++)
        r->fd[i] = -1;
    return r;
}

struct joblog_reader *joblog_reader_new(const int fd[static JOBLOG_SEGMENTS])
{
    struct joblog_reader *r = xcalloc(1, sizeof *r);
    r->dir = -1;
    memcpy(r->fd, fd, sizeof r->fd);
    return r;
}

struct joblog_reader *joblog_reader_free(struct joblog_reader *r)
{
    if (!r)
        return NULL;
    for (int i = 0; r->dir >= 0 && i < JOBLOG_SEGMENTS; i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
    if (r->dir >= 0)
        close(r->dir);
    free(r);
    return NULL;
}

void joblog_reader_free_p(struct joblog_reader **r)
{
    *r = joblog_reader_free(*r);
}

uint64_t joblog_reader_lost_segments(const struct joblog_reader *r)
{
    return r->lost;
}

uint64_t joblog_reader_bad_lines(const struct joblog_reader *r)
{
    return r->bad;
}

struct joblog_place joblog_reader_place(const struct joblog_reader *r)
{
    if (!r->placed)
        return (struct joblog_place){ 0 };
    return (struct joblog_place){ r->number, r->next_byte - (r->end - r->begin) };
}

void joblog_reader_end_at(struct joblog_reader *r, const struct joblog_place *end)
{
    r->ends = true;
    r->last = *end;
}

static bool is_at_end(const struct joblog_reader *r)
{
    struct joblog_place at = joblog_reader_place(r), end = r->last;
    return r->ends && r->placed &&
           (at.segment > end.segment || (at.segment == end.segment && at.byte >= end.byte));
}

static int cannot_read(int at, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot read log.%d: %s", at, strerror(errno));
}

/* 1: what the file holds now; 0: nothing, or no whole mark yet. */
static int segment_number(struct joblog_reader *r, int at, uint64_t *out, struct err *e)
{
    char head[HEAD_BYTES];
    if (r->fd[at] < 0 && r->dir >= 0) {
        char name[16];
        snprintf(name, sizeof name, "log.%d", at);
        r->fd[at] = openat(r->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (r->fd[at] < 0 && errno != ENOENT)
            return cannot_read(at, e);
    }
    if (r->fd[at] < 0)
        return 0;
    ssize_t n = pread(r->fd[at], head, sizeof head, 0);
    if (n < 0)
        return cannot_read(at, e);
    return joblog_segment((struct str){ head, (size_t)n }, out);
}

/* The segments from number `least` on, oldest first; returns how many. */
static int segments_from(struct joblog_reader *r, uint64_t least, struct segment *out,
                         struct err *e)
{
    int n = 0;
    for (int at = 0; at < JOBLOG_SEGMENTS; at++) {
        uint64_t number = 0;
        int rc = segment_number(r, at, &number, e);
        if (rc < 0)
            return -1;
        if (rc == 0 || number < least)
            continue;
        int i = n++;
        for (; i > 0 && out[i - 1].number > number; i--)
            out[i] = out[i - 1];
        out[i] = (struct segment){ at, number };
    }
    return n;
}

static void place(struct joblog_reader *r, const struct segment *s, uint64_t offset)
{
    r->placed = true;
    r->at = s->at;
    r->number = s->number;
    r->next_byte = offset;
    r->begin = r->end = 0;
    r->in_bad = false;
}

/* Leaves a segment that is read, or gone, for the oldest one after it.  0: there is none yet. */
static int place_after(struct joblog_reader *r, bool gone, struct err *e)
{
    struct segment next[JOBLOG_SEGMENTS];
    uint64_t least = r->placed ? r->number + 1 : 0;
    int n = segments_from(r, least, next, e);
    if (n <= 0)
        return n;
    if (r->placed)
        r->lost += next[0].number - least + (gone ? 1 : 0);
    place(r, &next[0], 0);
    return 1;
}

/* Reads on behind what `piece` holds.  1: something came; 0: that was all for now; -1 on errors. */
static int read_piece(struct joblog_reader *r, struct err *e)
{
    uint64_t now = 0;
    if (r->begin > 0)
        memmove(r->piece, r->piece + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    ssize_t n = pread(r->fd[r->at], r->piece + r->end, PIECE_BYTES - r->end, (off_t)r->next_byte);
    if (n < 0)
        return cannot_read(r->at, e);
    int rc = segment_number(r, r->at, &now, e);
    if (rc < 0)
        return -1;
    if (rc == 0 || now != r->number) /* overwritten, perhaps under this very read */
        return place_after(r, true, e);
    r->end += (size_t)n;
    r->next_byte += (uint64_t)n;
    return n > 0;
}

/* At the end of what is written: on to the next segment, if there is one. */
static int turn_page(struct joblog_reader *r, struct err *e)
{
    struct segment next[JOBLOG_SEGMENTS];
    int n = segments_from(r, r->number + 1, next, e);
    if (n <= 0)
        return n;
    /* The next one was begun: nothing is added to this one any more, but something may have been
     * since we looked. */
    uint64_t number = r->number;
    int rc = read_piece(r, e);
    if (rc != 0 || r->number != number)
        return rc;
    r->bad += r->end > 0 && !r->in_bad;
    return place_after(r, false, e);
}

/* Takes back a record whose end has not been written. */
static void put_back(struct joblog_reader *r)
{
    r->next_byte -= r->end - r->begin;
    r->begin = r->end = 0;
}

static int more(struct joblog_reader *r, struct err *e)
{
    int rc = r->placed ? read_piece(r, e) : place_after(r, false, e);
    if (rc == 0 && r->placed)
        rc = turn_page(r, e);
    if (rc == 0 && r->placed)
        put_back(r);
    return rc;
}

/* The next line of `piece`, without its line feed; what is too long to be a record is left out. */
static bool next_line(struct joblog_reader *r, struct str *out)
{
    while (r->begin < r->end) {
        const char *from = r->piece + r->begin;
        size_t n = r->end - r->begin;
        const char *lf = memchr(from, '\n', n);
        bool was_bad = r->in_bad;
        if (!lf && n < JOBLOG_RECORD_MAX)
            return false;
        r->in_bad = !lf;
        r->begin += lf ? (size_t)(lf - from) + 1 : n;
        r->bad += !lf && !was_bad;
        *out = (struct str){ from, lf ? (size_t)(lf - from) : 0 };
        if (lf && !was_bad)
            return true;
    }
    return false;
}

int joblog_reader_next(struct joblog_reader *r, struct joblog_record *out, struct err *e)
{
    for (unsigned pieces = 0; pieces < PIECES_PER_CALL;) {
        struct str line;
        if (is_at_end(r))
            return 0;
        if (!next_line(r, &line)) {
            int rc = more(r, e);
            if (rc <= 0)
                return rc;
            pieces++;
            continue;
        }
        uint64_t number;
        struct joblog_record rec;
        struct str with_lf = { line.p, line.n + 1 };
        if (!joblog_parse(line, &rec)) {
            r->bad++;
        } else if (rec.stream != JOBLOG_META || !joblog_segment(with_lf, &number)) {
            *out = rec;
            return 1;
        }
    }
    return 0;
}

int joblog_reader_seek(struct joblog_reader *r, const struct joblog_place *to, struct err *e)
{
    struct segment s = { (int)(to->segment % JOBLOG_SEGMENTS), 0 };
    int rc = segment_number(r, s.at, &s.number, e);
    if (rc < 0)
        return -1;
    r->placed = false;
    r->begin = r->end = 0;
    if (rc > 0 && s.number == to->segment)
        place(r, &s, to->byte);
    else
        r->lost += rc > 0 && s.number > to->segment;
    return 0;
}

/* --- the last lines --- */

struct tail {
    uint64_t want; /* lines that are still to be found */
    bool begun;    /* the very end was seen */
};

/* Goes over the whole records of a piece of n bytes.  Counts those that end a line of the job, and
 * stops behind the one numbered `stop_after` (from 1); returns where it stopped. */
static size_t count_lines(const char *piece, size_t n, uint64_t stop_after, uint64_t *out_lines,
                          bool *out_open)
{
    struct str rest = { piece, n }, line;
    *out_lines = 0;
    *out_open = false;
    while (str_cut(rest, '\n', &line, &rest)) {
        struct joblog_record rec;
        if (!joblog_parse(line, &rec) || rec.stream == JOBLOG_META)
            continue;
        *out_open = !rec.full;
        *out_lines += rec.full;
        if (*out_lines == stop_after)
            break;
    }
    return (size_t)(rest.p - piece);
}

/* One step back within a segment: *end is where what was seen already begins.  1: the place is
 * *end; 0: it lies further back. */
static int tail_step(struct joblog_reader *r, const struct segment *s, struct tail *t,
                     uint64_t *end, struct err *e)
{
    uint64_t start = *end > PIECE_BYTES ? *end - PIECE_BYTES : 0, lines;
    ssize_t got = pread(r->fd[s->at], r->piece, (size_t)(*end - start), (off_t)start);
    if (got < 0)
        return cannot_read(s->at, e);
    const char *first = start ? memchr(r->piece, '\n', (size_t)got) : NULL;
    size_t lo = first ? (size_t)(first - r->piece) + 1 : 0, hi = (size_t)got;
    bool open;
    while (hi > lo && r->piece[hi - 1] != '\n')
        hi--;
    if (!t->begun && t->want == 0) {
        *end = start + hi;
        return 1;
    }
    count_lines(r->piece + lo, hi - lo, UINT64_MAX, &lines, &open);
    if (!t->begun && open)
        t->want--;
    t->begun = t->begun || lines > 0 || open;
    if (lines > t->want) {
        *end = start + lo + count_lines(r->piece + lo, hi - lo, lines - t->want, &lines, &open);
        return 1;
    }
    t->want -= lines;
    *end = first && start + lo < *end ? start + lo : start; /* always further back */
    return 0;
}

int joblog_reader_tail(struct joblog_reader *r, uint64_t lines, struct err *e)
{
    struct segment all[JOBLOG_SEGMENTS];
    struct tail t = { .want = lines };
    int n = segments_from(r, 0, all, e);
    if (n < 0)
        return -1;
    r->placed = false;
    r->begin = r->end = 0;
    while (r->ends && n > 1 && all[n - 1].number > r->last.segment)
        n--;
    for (int i = n - 1; i >= 0; i--) {
        struct stat st;
        if (fstat(r->fd[all[i].at], &st) < 0)
            return cannot_read(all[i].at, e);
        uint64_t end = (uint64_t)st.st_size;
        if (r->ends && all[i].number == r->last.segment)
            end = MIN(end, r->last.byte);
        int rc = 0;
        while (rc == 0 && end > 0)
            rc = tail_step(r, &all[i], &t, &end, e);
        if (rc < 0)
            return -1;
        if (rc > 0 || i == 0)
            place(r, &all[i], end);
        if (rc > 0)
            break;
    }
    return 0;
}
