/* stream - the frames that travel between a terminal and a task, over a task's ctl.sock.
 *
 * A frame is one byte of type, three bytes of length (big endian) and the payload.  nightshift-init
 * speaks it, the keeper and the daemon copy it, the command line speaks it again: nobody between
 * the two ends looks inside.  The first frame of a connection says what it is:
 *
 *   WATCH   gets STARTED at once and EXIT at the end.  It may send SIGNAL.
 *   ATTACH  gets LOGGED: where in the job's log (joblog.h) that begins what follows; STARTED; STDOUT
 *           and STDERR from now on (a terminal's output is STDOUT); EXIT at the end.  It may send
 *           STDIN, RESIZE and SIGNAL.
 *   EXEC    runs another command inside the task: the same frames, with that command's own EXIT.
 *   SIGNAL  to the job, and the connection is closed.
 *
 * ERROR, with a sentence for people, comes when something was refused, and the connection is closed.
 * When a program could not be run, EXIT with 127 or 126 follows the ERROR.  An end of file without
 * EXIT and ERROR means that the task's supervisor is gone.
 *
 * A log that is read as frames is STDOUT and STDERR too, with LOGGED wherever it can be taken up
 * again, and NOTE for what was not the job's: output that was lost, how it ended.
 *
 * Sizes are bounded by type, so a frame that came out of the decoder has a payload of a right size.
 * Everything is pure: no descriptors, no clock.
 */
#ifndef NS_WIRE_STREAM_H
#define NS_WIRE_STREAM_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/joblog.h"

#define STREAM_HEADER_BYTES 4u
#define STREAM_PAYLOAD_MAX 65536u
#define STREAM_FRAME_MAX (STREAM_HEADER_BYTES + STREAM_PAYLOAD_MAX)
#define STREAM_ERROR_MAX 1024u

/* id, number, name, smallest and largest payload.  A number never changes its meaning. */
#define STREAM_TYPES(X)                                                                            \
    X(WATCH, 1, "watch", 0, 0)                                                                     \
    X(ATTACH, 2, "attach", 0, 0)                                                                   \
    X(EXEC, 3, "exec", 9, STREAM_PAYLOAD_MAX)   /* struct stream_exec */                           \
    X(STDIN, 4, "stdin", 0, STREAM_PAYLOAD_MAX) /* empty: end of file */                           \
    X(STDOUT, 5, "stdout", 1, STREAM_PAYLOAD_MAX)                                                  \
    X(STDERR, 6, "stderr", 1, STREAM_PAYLOAD_MAX)                                                  \
    X(RESIZE, 7, "resize", 4, 4)   /* rows, columns: two bytes each */                             \
    X(SIGNAL, 8, "signal", 1, 1)   /* its number */                                                \
    X(STARTED, 9, "started", 8, 8) /* when: milliseconds since 1970 */                             \
    X(EXIT, 10, "exit", 2, 2)      /* 0 and the exit code, or 1 and the signal */                  \
    X(ERROR, 11, "error", 1, STREAM_ERROR_MAX)                                                     \
    X(LOGGED, 12, "logged", 20, 20) /* run (0: this one), segment, byte */                         \
    X(NOTE, 13, "note", 1, STREAM_ERROR_MAX)
enum stream_type {
#define X(id, number, name, min, max) STREAM_##id = (number),
    STREAM_TYPES(X)
#undef X
    STREAM_TYPE_END
};
const char *stream_type_name(enum stream_type t);

struct stream_frame {
    enum stream_type type;
    struct str payload; /* borrowed */
};

/* How a program ended. */
struct stream_exit {
    int code;   /* 0 … 255, when signal is 0 */
    int signal; /* what killed it, or 0 */
};

/* Where in a job's log. */
struct stream_place {
    uint32_t run; /* 0: the one that is attached to */
    struct joblog_place at;
};

/* What EXEC asks for.  Lists end with NULL. */
struct stream_exec {
    bool tty;
    uint16_t rows, cols;
    const char *cwd;         /* "": the job's own */
    const char *const *argv; /* at least one */
    const char *const *env;  /* "KEY=value", added to the job's own */
};

/* Adding to a buf: check with buf_check when its limit may be reached.  A payload that does not fit
 * the type is a bug of the caller and aborts; stream_put_data cuts a long one into several frames. */
void stream_put(struct buf *out, enum stream_type type, struct str payload);
void stream_put_data(struct buf *out, enum stream_type type, struct str data);
void stream_put_resize(struct buf *out, uint16_t rows, uint16_t cols);
void stream_put_signal(struct buf *out, int signo);
void stream_put_started(struct buf *out, int64_t t_ms);
void stream_put_exit(struct buf *out, const struct stream_exit *how);
void stream_put_error(struct buf *out, const char *text); /* cut to STREAM_ERROR_MAX */
void stream_put_note(struct buf *out, struct str text);   /* the same */
void stream_put_logged(struct buf *out, const struct stream_place *p);

/* -1 when the lists are too long for one frame: nothing is added then. */
int stream_put_exec(struct buf *out, const struct stream_exec *want, struct err *e) MUST_USE;

/* Payloads of frames that the decoder gave out. */
void stream_get_resize(struct str payload, uint16_t *out_rows, uint16_t *out_cols);
int64_t stream_get_started(struct str payload);
struct stream_place stream_get_logged(struct str payload);
int stream_get_signal(struct str payload, int *out_signo, struct err *e) MUST_USE;
int stream_get_exit(struct str payload, struct stream_exit *out, struct err *e) MUST_USE;

/* *out lives in `a`. */
int stream_get_exec(struct str payload, struct arena *a, struct stream_exec *out, struct err *e)
    MUST_USE;

/* Takes frames off chunks of any size.  Zero-initialise one and use it; it never holds more than
 * one frame. */
struct stream_decoder {
    struct buf part; /* the beginning of a frame whose rest has not come */
    bool whole;      /* what `part` holds was given out */
};

/* Takes bytes off *chunk.  1: a frame, its payload is valid until the next call or until the chunk
 * goes; 0: the chunk is used up; -1: not our protocol, and so is all that follows. */
int stream_decode(struct stream_decoder *d, struct str *chunk, struct stream_frame *out,
                  struct err *e) MUST_USE;
void stream_decoder_clear(struct stream_decoder *d);

#endif
