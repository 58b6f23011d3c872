/* joblog - a job's output as four files in a ring of bounded size.
 *
 *   2026-03-01T12:30:00.250123Z stdout F a whole line
 *   2026-03-01T12:30:00.250140Z stderr P the beginning of one
 *
 * Each record is one line: when, which stream, F (ends the job's line) or P (more of that line may
 * follow), text.  What the text may hold is any byte but the line feed, so that joining all texts of
 * a stream, with a line feed after each F, gives back exactly what the job wrote.
 *
 * Files are called log.0 … log.3.  A file begins with `<time> meta F segment <number>`; when it is
 * full the next in the ring is emptied and written with the next number, so the newest output is
 * kept.  Stream meta is ours: segment marks and notes about lost output.
 *
 * Formatting and parsing are pure; the reader only reads, from where it stands, in pieces.
 */
#ifndef NS_WIRE_JOBLOG_H
#define NS_WIRE_JOBLOG_H

#include "base/buf.h"

#define JOBLOG_SEGMENTS 4
#define JOBLOG_TEXT_MAX 16384u /* of one record; a longer line becomes several */
#define JOBLOG_PREFIX_MAX 37u  /* time, stream, F or P, and the blanks after them */
#define JOBLOG_RECORD_MAX (JOBLOG_PREFIX_MAX + JOBLOG_TEXT_MAX + 1u)
#define JOBLOG_BYTES_MIN 262144u /* of a whole ring: some records must fit a segment */
#define JOBLOG_BYTES_DEFAULT (UINT64_C(64) << 20)
#define JOBLOG_BYTES_MAX (UINT64_C(1) << 40)

#define JOBLOG_STREAMS(X)                                                                          \
    X(STDOUT, "stdout")                                                                            \
    X(STDERR, "stderr")                                                                            \
    X(META, "meta")
enum joblog_stream {
#define X(id, name) JOBLOG_##id,
    JOBLOG_STREAMS(X)
#undef X
    JOBLOG_STREAM_COUNT
};
const char *joblog_stream_name(enum joblog_stream s);

struct joblog_record {
    int64_t t_us; /* microseconds since 1970 */
    enum joblog_stream stream;
    bool full;       /* F */
    struct str text; /* borrowed */
};

/* Between two records: before the byte of the segment with this number. */
struct joblog_place {
    uint64_t segment, byte;
};

/* --- one record --- */

/* Adds the records of what a stream wrote, as many as fit whole within out->limit, and returns how
 * many bytes of the chunk they hold: at least one when JOBLOG_RECORD_MAX bytes are left. */
size_t joblog_format(struct buf *out, int64_t t_us, enum joblog_stream s, struct str chunk);

/* The first record of a segment. */
void joblog_format_segment(struct buf *out, int64_t t_us, uint64_t number);

/* One line without its line feed; *out borrows from it.  false: it is not a record. */
bool joblog_parse(struct str line, struct joblog_record *out);

/* The number in a segment's first bytes (64 are enough); false when they are no whole mark, as those
 * of an empty file. */
bool joblog_segment(struct str head, uint64_t *out_number);

/* --- the whole log --- */

struct joblog_reader;

/* The files need not exist yet.  The reader begins with the oldest record. */
struct joblog_reader *joblog_reader_open(const char *dir, struct err *e);
struct joblog_reader *joblog_reader_new(
    const int fd[static JOBLOG_SEGMENTS]);                         /* not closed by it */
struct joblog_reader *joblog_reader_free(struct joblog_reader *r); /* NULL ok */
void joblog_reader_free_p(struct joblog_reader **r);

/* 1: the next record, valid until the next call (segment marks are left out); 0: no more for now,
 * call again when a file has changed; -1: a file cannot be read.  A record whose end is not written
 * yet waits for a later call. */
int joblog_reader_next(struct joblog_reader *r, struct joblog_record *out, struct err *e) MUST_USE;

/* Goes to where the last `lines` lines of stdout and stderr begin; 0: to the end. */
int joblog_reader_tail(struct joblog_reader *r, uint64_t lines, struct err *e) MUST_USE;

/* Behind the record given out last: reading goes on there after a seek.  A place that was overwritten
 * meanwhile counts as lost, and reading goes on with the oldest record. */
struct joblog_place joblog_reader_place(const struct joblog_reader *r);
int joblog_reader_seek(struct joblog_reader *r, const struct joblog_place *to, struct err *e)
    MUST_USE;
void joblog_reader_end_at(struct joblog_reader *r, const struct joblog_place *end); /* as if all */

/* How many segments were overwritten before they were read to their end, and how many lines were no
 * records, since the reader was opened. */
uint64_t joblog_reader_lost_segments(const struct joblog_reader *r);
uint64_t joblog_reader_bad_lines(const struct joblog_reader *r);

#endif
