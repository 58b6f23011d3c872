#include "wire/stream.h"

#include <signal.h>

struct rule {
    const char *name;
    uint32_t min, max;
};

#define X(id, number, name, min, max) [number] = { (name), (min), (max) },
static const struct rule rules[] = { STREAM_TYPES(X) };
#undef X
_Static_assert(ARRAY_LEN(rules) == STREAM_TYPE_END, "types are numbered without a gap at the end");

#define EXEC_TTY 1u
#define EXEC_HEADER 9u /* flags, rows, columns, arguments, variables */
#define EXIT_CODE 0u
#define EXIT_SIGNAL 1u

static bool is_type(unsigned number)
{
    return number < STREAM_TYPE_END && rules[number].name;
}

const char *stream_type_name(enum stream_type t)
{
    return is_type(t) ? rules[t].name : "?";
}

static void put_be(char *to, size_t bytes, uint64_t v)
{
    for (size_t i = bytes; i-- > 0; v >>= 8)
        to[i] = (char)(v & 0xff);
}

static uint64_t get_be(const char *from, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | (uint8_t)from[i];
    return v;
}

void stream_put(struct buf *out, enum stream_type type, struct str payload)
{
    if (!is_type(type) || payload.n < rules[type].min || payload.n > rules[type].max)
        abort();
    char head[STREAM_HEADER_BYTES] = { (char)type };
    put_be(head + 1, 3, payload.n);
    size_t before = out->n;
    buf_add(out, (struct str){ head, sizeof head });
    buf_add(out, payload);
    if (out->full && out->n > before) { /* no half frame */
        buf_truncate(out, before);
        out->full = true;
    }
}

void stream_put_data(struct buf *out, enum stream_type type, struct str data)
{
    while (data.n > 0) {
        size_t n = MIN(data.n, (size_t)STREAM_PAYLOAD_MAX);
        stream_put(out, type, (struct str){ data.p, n });
        data = (struct str){ data.p + n, data.n - n };
    }
}

void stream_put_resize(struct buf *out, uint16_t rows, uint16_t cols)
{
    char p[4];
    put_be(p, 2, rows);
    put_be(p + 2, 2, cols);
    stream_put(out, STREAM_RESIZE, (struct str){ p, sizeof p });
}

void stream_put_signal(struct buf *out, int signo)
{
    char p[1] = { (char)signo };
    stream_put(out, STREAM_SIGNAL, (struct str){ p, sizeof p });
}

void stream_put_started(struct buf *out, int64_t t_ms)
{
    char p[8];
    put_be(p, sizeof p, (uint64_t)t_ms);
    stream_put(out, STREAM_STARTED, (struct str){ p, sizeof p });
}

void stream_put_exit(struct buf *out, const struct stream_exit *how)
{
    char p[2];
    put_be(p, 1, how->signal ? EXIT_SIGNAL : EXIT_CODE);
    put_be(p + 1, 1, (uint64_t)(how->signal ? how->signal : how->code));
    stream_put(out, STREAM_EXIT, (struct str){ p, sizeof p });
}

void stream_put_error(struct buf *out, const char *text)
{
    struct str s = str_of(text[0] ? text : "?");
    stream_put(out, STREAM_ERROR, (struct str){ s.p, MIN(s.n, (size_t)STREAM_ERROR_MAX) });
}

void stream_put_note(struct buf *out, struct str text)
{
    if (text.n)
        stream_put(out, STREAM_NOTE, (struct str){ text.p, MIN(text.n, (size_t)STREAM_ERROR_MAX) });
}

void stream_put_logged(struct buf *out, const struct stream_place *p)
{
    char bytes[20];
    put_be(bytes, 4, p->run);
    put_be(bytes + 4, 8, p->at.segment);
    put_be(bytes + 12, 8, p->at.byte);
    stream_put(out, STREAM_LOGGED, (struct str){ bytes, sizeof bytes });
}

/* Adds each word and its NUL, and says how many there were. */
static size_t put_words(struct buf *to, const char *const *words)
{
    size_t n = 0;
    for (; words && words[n]; n++)
        buf_add(to, (struct str){ words[n], strlen(words[n]) + 1 });
    return n;
}

int stream_put_exec(struct buf *out, const struct stream_exec *want, struct err *e)
{
    AUTO(buf_free) struct buf p = BUF(STREAM_PAYLOAD_MAX);
    char head[EXEC_HEADER] = { want->tty ? EXEC_TTY : 0 };
    buf_add(&p, (struct str){ head, sizeof head });
    const char *cwd = want->cwd ? want->cwd : "";
    buf_add(&p, (struct str){ cwd, strlen(cwd) + 1 });
    size_t argc = put_words(&p, want->argv);
    size_t envc = put_words(&p, want->env);
    if (p.full || argc > UINT16_MAX || envc > UINT16_MAX) {
        err_set(e, ERR_TOO_LARGE, "the command and its environment are longer than %u bytes",
                STREAM_PAYLOAD_MAX);
        return err_hint(e, "put the command into a script inside the job, and run that");
    }
    if (argc == 0)
        return err_set(e, ERR_INVALID, "there is no command to run");
    put_be(p.p + 1, 2, want->rows);
    put_be(p.p + 3, 2, want->cols);
    put_be(p.p + 5, 2, argc);
    put_be(p.p + 7, 2, envc);
    stream_put(out, STREAM_EXEC, buf_str(&p));
    return 0;
}

void stream_get_resize(struct str payload, uint16_t *out_rows, uint16_t *out_cols)
{
    *out_rows = (uint16_t)get_be(payload.p, 2);
    *out_cols = (uint16_t)get_be(payload.p + 2, 2);
}

int64_t stream_get_started(struct str payload)
{
    return (int64_t)get_be(payload.p, 8);
}

struct stream_place stream_get_logged(struct str payload)
{
    return (struct stream_place){
        .run = (uint32_t)get_be(payload.p, 4),
        .at = { .segment = get_be(payload.p + 4, 8), .byte = get_be(payload.p + 12, 8) },
    };
}

int stream_get_signal(struct str payload, int *out_signo, struct err *e)
{
    uint64_t signo = get_be(payload.p, 1);
    if (signo < 1 || signo >= NSIG)
        return err_set(e, ERR_INVALID, "there is no signal %u", (unsigned)signo);
    *out_signo = (int)signo;
    return 0;
}

int stream_get_exit(struct str payload, struct stream_exit *out, struct err *e)
{
    uint64_t kind = get_be(payload.p, 1), value = get_be(payload.p + 1, 1);
    if (kind > EXIT_SIGNAL || (kind == EXIT_SIGNAL && value == 0))
        return err_set(e, ERR_INVALID, "an exit frame says %u %u", (unsigned)kind, (unsigned)value);
    *out = kind == EXIT_SIGNAL ? (struct stream_exit){ .signal = (int)value }
                               : (struct stream_exit){ .code = (int)value };
    return 0;
}

/* Takes n words, each with its NUL, off *rest; they stay where they lie.  NULL: there are fewer. */
static const char **get_words(struct str *rest, size_t n, struct arena *a)
{
    const char **words = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *end = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;
        if (!end)
            return NULL;
        words[i] = rest->p;
        rest->n -= (size_t)(end + 1 - rest->p);
        rest->p = end + 1;
    }
    return words;
}

int stream_get_exec(struct str payload, struct arena *a, struct stream_exec *out, struct err *e)
{
    if (payload.n < EXEC_HEADER)
        return err_set(e, ERR_INVALID, "an exec frame of %zu bytes is too short", payload.n);
    size_t argc = get_be(payload.p + 5, 2), envc = get_be(payload.p + 7, 2);
    struct str rest = { payload.p + EXEC_HEADER, payload.n - EXEC_HEADER };
    /* Each word takes a byte at least, which bounds the lists before they are made. */
    if (argc == 0 || 1 + argc + envc > rest.n)
        return err_set(e, ERR_INVALID,
                       "an exec frame of %zu bytes says %zu arguments, %zu variables", payload.n,
                       argc, envc);
    rest.p = arena_strndup(a, rest.p, rest.n);
    const char **cwd = get_words(&rest, 1, a);
    const char **argv = cwd ? get_words(&rest, argc, a) : NULL;
    const char **env = argv ? get_words(&rest, envc, a) : NULL;
    if (!env || rest.n > 0)
        return err_set(e, ERR_INVALID, "an exec frame does not hold the words that it counts");
    if (((uint8_t)payload.p[0] & ~EXEC_TTY) != 0)
        return err_set(e, ERR_INVALID, "an exec frame has unknown flags 0x%02x",
                       (unsigned)(uint8_t)payload.p[0]);
    *out = (struct stream_exec){
        .tty = ((uint8_t)payload.p[0] & EXEC_TTY) != 0,
        .rows = (uint16_t)get_be(payload.p + 1, 2),
        .cols = (uint16_t)get_be(payload.p + 3, 2),
        .cwd = cwd[0],
        .argv = argv,
        .env = env,
    };
    return 0;
}

/* How long the frame that begins here is; 0: not known yet; -1: it cannot be. */
static int frame_bytes(struct str s, size_t *out, struct err *e)
{
    if (s.n == 0)
        return *out = 0, 0;
    unsigned type = (uint8_t)s.p[0];
    if (!is_type(type))
        return err_set(e, ERR_INVALID, "a frame of unknown type %u", type);
    if (s.n < STREAM_HEADER_BYTES)
        return *out = 0, 0;
    size_t n = get_be(s.p + 1, 3);
    if (n < rules[type].min || n > rules[type].max)
        return err_set(e, ERR_TOO_LARGE, "a %s frame of %zu bytes; %u to %u are right",
                       rules[type].name, n, rules[type].min, rules[type].max);
    *out = STREAM_HEADER_BYTES + n;
    return 0;
}

static struct stream_frame frame_of(struct str s)
{
    return (struct stream_frame){
        .type = (enum stream_type)(uint8_t)s.p[0],
        .payload = { s.p + STREAM_HEADER_BYTES, s.n - STREAM_HEADER_BYTES },
    };
}

static struct str take(struct str *chunk, size_t n)
{
    struct str head = { chunk->p, MIN(n, chunk->n) };
    *chunk = (struct str){ chunk->p + head.n, chunk->n - head.n };
    return head;
}

/* Completes the frame in d->part as far as the chunk goes. */
static int decode_part(struct stream_decoder *d, struct str *chunk, struct stream_frame *out,
                       struct err *e)
{
    size_t want = 0;
    if (d->part.n < STREAM_HEADER_BYTES)
        buf_add(&d->part, take(chunk, STREAM_HEADER_BYTES - d->part.n));
    if (frame_bytes(buf_str(&d->part), &want, e) < 0)
        return -1;
    if (want == 0)
        return 0;
    buf_add(&d->part, take(chunk, want - d->part.n));
    if (d->part.n < want)
        return 0;
    *out = frame_of(buf_str(&d->part));
    d->whole = true;
    return 1;
}

int stream_decode(struct stream_decoder *d, struct str *chunk, struct stream_frame *out,
                  struct err *e)
{
    size_t want = 0;
    d->part.limit = STREAM_FRAME_MAX;
    if (d->whole)
        buf_truncate(&d->part, 0);
    d->whole = false;
    if (d->part.n > 0)
        return decode_part(d, chunk, out, e);
    if (frame_bytes(*chunk, &want, e) < 0) {
        buf_add(&d->part, take(chunk, STREAM_HEADER_BYTES)); /* to be refused again */
        return -1;
    }
    if (want > 0 && chunk->n >= want) { /* all of it is here: nothing is copied */
        *out = frame_of(take(chunk, want));
        return 1;
    }
    buf_add(&d->part, take(chunk, chunk->n));
    return 0;
}

void stream_decoder_clear(struct stream_decoder *d)
{
    buf_free(&d->part);
    d->whole = false;
}
