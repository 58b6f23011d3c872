#include "wire/ring.h"

#include <errno.h>
#include <unistd.h>

#define BATCH_BYTES 32768u
#define NOTE_BYTES 256u

_Static_assert(BATCH_BYTES >= JOBLOG_RECORD_MAX, "a batch holds a record");
_Static_assert(BATCH_BYTES + 2 * NOTE_BYTES <= JOBLOG_BYTES_MIN / JOBLOG_SEGMENTS,
               "a batch fits an empty segment");

static int segment_fd(const struct ring *r)
{
    return r->fd[r->number % JOBLOG_SEGMENTS];
}

/* How much of what the job wrote lies in these records. */
static uint64_t output_bytes(struct str records)
{
    uint64_t n = 0;
    struct str line;
    while (str_cut(records, '\n', &line, &records)) {
        struct joblog_record rec;
        if (joblog_parse(line, &rec) && rec.stream != JOBLOG_META)
            n += rec.text.n + rec.full;
    }
    return n;
}

/* Adds whole records to the segment; false when not all of them got there. */
static bool append(struct ring *r, struct str records)
{
    size_t done = 0;
    while (done < records.n) {
        ssize_t n =
            pwrite(segment_fd(r), records.p + done, records.n - done, (off_t)(r->size + done));
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (done == records.n) {
        r->size += done;
        return true;
    }
    r->why = errno ? errno : EIO;
    size_t keep = done; /* up to the end of the last whole record */
    while (keep > 0 && records.p[keep - 1] != '\n')
        keep--;
    r->size += keep;
    if (keep < done && ftruncate(segment_fd(r), (off_t)r->size) < 0)
        r->size += done - keep; /* a reader passes over the half record */
    uint64_t lost = output_bytes((struct str){ records.p + keep, records.n - keep });
    r->lost_bytes += lost;
    r->untold_bytes += lost;
    return false;
}

static bool mark(struct ring *r, int64_t t_us)
{
    AUTO(buf_free) struct buf b = BUF(NOTE_BYTES);
    joblog_format_segment(&b, t_us, r->number);
    r->marked = append(r, buf_str(&b));
    return r->marked;
}

/* Makes room for n bytes: in this segment, or by taking the oldest. */
static bool make_room(struct ring *r, int64_t t_us, size_t n)
{
    if (r->marked && r->size + n > r->segment_bytes) {
        r->number++;
        r->size = 0;
        r->marked = false;
        if (ftruncate(segment_fd(r), 0) < 0)
            r->why = errno;
    }
    return r->marked || mark(r, t_us);
}

/* The note comes before what follows the gap. */
static bool tell_losses(struct ring *r, int64_t t_us)
{
    if (r->untold_bytes == 0)
        return true;
    AUTO(buf_free) struct buf text = BUF(NOTE_BYTES), b = BUF(2 * NOTE_BYTES);
    buf_printf(&text, "%llu bytes of output were lost: %s\n", (unsigned long long)r->untold_bytes,
               strerror(r->why));
    joblog_format(&b, t_us, JOBLOG_META, buf_str(&text));
    if (!make_room(r, t_us, b.n) || !append(r, buf_str(&b)))
        return false;
    r->untold_bytes = 0;
    return true;
}

void ring_write(struct ring *r, int64_t t_us, enum joblog_stream s, struct str chunk)
{
    while (chunk.n > 0 && r->fd[0] >= 0) {
        buf_truncate(&r->out, 0);
        size_t n = joblog_format(&r->out, t_us, s, chunk);
        if (!tell_losses(r, t_us) || !make_room(r, t_us, r->out.n)) {
            uint64_t lost = output_bytes(buf_str(&r->out));
            r->lost_bytes += lost;
            r->untold_bytes += lost;
        } else {
            append(r, buf_str(&r->out));
        }
        chunk = (struct str){ chunk.p + n, chunk.n - n };
    }
}

void ring_note(struct ring *r, int64_t t_us, const char *text)
{
    AUTO(buf_free) struct buf line = BUF(JOBLOG_TEXT_MAX);
    buf_printf(&line, "%s\n", text);
    ring_write(r, t_us, JOBLOG_META, buf_str(&line));
}

void ring_begin(struct ring *r, const int fd[static JOBLOG_SEGMENTS], uint64_t bytes, int64_t t_us)
{
    *r = (struct ring){ .segment_bytes = bytes / JOBLOG_SEGMENTS, .out = BUF(BATCH_BYTES) };
    for (size_t i = 0; i < JOBLOG_SEGMENTS; i++) {
        r->fd[i] = fd[i];
        if (ftruncate(fd[i], 0) < 0)
            r->why = errno; /* then writing will fail too, and be counted */
    }
    mark(r, t_us);
}

void ring_resume(struct ring *r, const int fd[static JOBLOG_SEGMENTS], uint64_t bytes, int64_t t_us)
{
    struct ring found = { .segment_bytes = bytes / JOBLOG_SEGMENTS, .out = BUF(BATCH_BYTES) };
    for (size_t i = 0; i < JOBLOG_SEGMENTS; i++) {
        char head[64];
        uint64_t number;
        ssize_t n = pread(fd[i], head, sizeof head, 0);
        off_t size = lseek(fd[i], 0, SEEK_END);
        found.fd[i] = fd[i];
        if (n <= 0 || size < 0 || !joblog_segment((struct str){ head, (size_t)n }, &number) ||
            (found.marked && number < found.number))
            continue;
        found.marked = true;
        found.number = number;
        found.size = (uint64_t)size;
    }
    if (found.marked)
        *r = found;
    else
        ring_begin(r, fd, bytes, t_us);
}

void ring_end(struct ring *r, int64_t t_us)
{
    tell_losses(r, t_us);
    buf_free(&r->out);
}
