#include "wire/stream.h"

#include <signal.h>

#include "base/rng.h"
#include "tests/lib/test.h"

static void frames_look_as_documented(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    stream_put(&b, STREAM_WATCH, STR(""));
    stream_put_data(&b, STREAM_STDOUT, STR("hi"));
    stream_put_resize(&b, 24, 300);
    stream_put_signal(&b, 15);
    stream_put_started(&b, 0x0102030405);
    stream_put_exit(&b, &(struct stream_exit){ .code = 3 });
    stream_put_exit(&b, &(struct stream_exit){ .signal = 9 });
    static const char want[] = "\1\0\0\0"
                               "\5\0\0\2hi"
                               "\7\0\0\4\0\30\1\54"
                               "\10\0\0\1\17"
                               "\11\0\0\10\0\0\0\1\2\3\4\5"
                               "\12\0\0\2\0\3"
                               "\12\0\0\2\1\11";
    CHECK(str_eq(buf_str(&b), (struct str){ want, sizeof want - 1 }));
}

static void add_one_of_each(struct buf *b)
{
    static const char *const argv[] = { "bash", "-l", "", NULL };
    static const char *const env[] = { "TERM=xterm", NULL };
    struct err e;
    stream_put(b, STREAM_WATCH, STR(""));
    stream_put(b, STREAM_ATTACH, STR(""));
    CHECK(stream_put_exec(b, &(struct stream_exec){ .argv = argv, .env = env }, &e) == 0);
    stream_put(b, STREAM_STDIN, STR(""));
    stream_put_data(b, STREAM_STDOUT, STR("out"));
    stream_put_data(b, STREAM_STDERR, STR("err"));
    stream_put_resize(b, 1, 2);
    stream_put_signal(b, SIGUSR1);
    stream_put_started(b, 77);
    stream_put_exit(b, &(struct stream_exit){ .code = 255 });
    stream_put_error(b, "no");
    stream_put_logged(b, &(struct stream_place){ .run = 1 });
    stream_put_note(b, STR("so"));
}

/* Cuts the bytes at random and checks that the types come out in order, once each. */
static void check_pieces(uint64_t seed, struct str all)
{
    struct rng rng = { seed };
    AUTO(stream_decoder_clear) struct stream_decoder d = { 0 };
    unsigned next = STREAM_WATCH;
    while (all.n > 0) {
        size_t n = MIN(all.n, (size_t)rng_below(&rng, 2 + (uint32_t)(seed % 40)));
        struct str chunk = { all.p, n };
        struct stream_frame f;
        struct err e;
        int rc;
        all = (struct str){ all.p + n, all.n - n };
        while ((rc = stream_decode(&d, &chunk, &f, &e)) > 0)
            CHECK_AT(seed, f.type == next++);
        CHECK_AT(seed, rc == 0 && chunk.n == 0);
    }
    CHECK_AT(seed, next == STREAM_TYPE_END);
}

static void frames_survive_any_cutting(void)
{
    AUTO(buf_free) struct buf b = BUF(10000);
    add_one_of_each(&b);
    for (uint64_t seed = 1; seed <= 500; seed++)
        check_pieces(seed, buf_str(&b));
}

static void long_data_becomes_several_frames(void)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    AUTO(stream_decoder_clear) struct stream_decoder d = { 0 };
    AUTO(free_p) char *data = xcalloc(1, 150000);
    struct stream_frame f;
    struct err e;
    size_t total = 0, frames = 0;
    stream_put_data(&b, STREAM_STDERR, (struct str){ data, 150000 });
    for (struct str s = buf_str(&b); stream_decode(&d, &s, &f, &e) > 0; frames++)
        total += f.payload.n;
    CHECK(frames == 3 && total == 150000);
}

static int decode(const char *bytes, size_t n, struct err *e)
{
    AUTO(stream_decoder_clear) struct stream_decoder d = { 0 };
    struct str s = { bytes, n };
    struct stream_frame f;
    int whole = stream_decode(&d, &s, &f, e);
    AUTO(stream_decoder_clear) struct stream_decoder slow = { 0 };
    int bytewise = 0;
    for (size_t i = 0; i < n && bytewise == 0; i++) {
        s = (struct str){ bytes + i, 1 };
        bytewise = stream_decode(&slow, &s, &f, e);
    }
    CHECK(whole == bytewise);
    if (whole < 0) { /* and it stays refused */
        s = STR("\1\0\0\0");
        CHECK(stream_decode(&d, &s, &f, e) < 0);
        s = STR("\1\0\0\0");
        CHECK(stream_decode(&slow, &s, &f, e) < 0);
    }
    return whole;
}

static void strangers_are_refused(void)
{
    struct err e = { 0 };
    CHECK(decode("\0\0\0\0", 4, &e) < 0 && strstr(e.msg, "unknown type 0"));
    CHECK(decode("GET / HTTP/1.1\r\n", 16, &e) < 0 && strstr(e.msg, "unknown type 71"));
    CHECK(decode("\14\0\0\0", 4, &e) < 0);                                /* one past the last */
    CHECK(decode("\5\1\0\1", 4, &e) < 0 && strstr(e.msg, "65537 bytes")); /* refused unseen */
    CHECK(decode("\5\1\0\0", 4, &e) == 0);
    CHECK(decode("\5\0\0\0", 4, &e) < 0); /* output is never empty */
    CHECK(decode("\7\0\0\3", 4, &e) < 0 && decode("\1\0\0\1", 4, &e) < 0);
    CHECK(decode("\13\0\4\1", 4, &e) < 0);
}

static void values_out_of_range_are_refused(void)
{
    struct err e;
    int signo = 77;
    struct stream_exit how = { .code = 77 };
    CHECK(stream_get_signal(STR("\0"), &signo, &e) < 0 && signo == 77);
    CHECK(stream_get_signal(STR("\101"), &signo, &e) < 0 && signo == 77);
    CHECK(stream_get_signal(STR("\100"), &signo, &e) == 0 && signo == 64);
    CHECK(stream_get_exit(STR("\2\1"), &how, &e) < 0 && stream_get_exit(STR("\1\0"), &how, &e) < 0);
    CHECK(how.code == 77);
    CHECK(stream_get_exit(STR("\1\11"), &how, &e) == 0 && how.signal == 9 && how.code == 0);
    CHECK(stream_get_exit(STR("\0\377"), &how, &e) == 0 && how.code == 255 && how.signal == 0);
}

static void an_exec_comes_back_whole(void)
{
    AUTO(buf_free) struct buf b = BUF(STREAM_FRAME_MAX);
    AUTO(arena_free) struct arena a = { 0 };
    static const char *const argv[] = { "sh", "-c", "", "x y", NULL };
    static const char *const env[] = { "A=1", "B=", NULL };
    struct stream_exec in = { true, 50, 132, "/tmp/a b", argv, env }, out;
    struct err e;
    CHECK(stream_put_exec(&b, &in, &e) == 0);
    CHECK(stream_get_exec((struct str){ b.p + 4, b.n - 4 }, &a, &out, &e) == 0);
    CHECK(out.tty && out.rows == 50 && out.cols == 132);
    CHECK_STR(out.cwd, "/tmp/a b");
    for (size_t i = 0; i < ARRAY_LEN(argv); i++)
        CHECK_STR(out.argv[i], argv[i]);
    for (size_t i = 0; i < ARRAY_LEN(env); i++)
        CHECK_STR(out.env[i], env[i]);
    buf_truncate(&b, 0);
    CHECK(stream_put_exec(&b, &(struct stream_exec){ .argv = argv }, &e) ==
          0); /* no list, no cwd */
    CHECK(stream_get_exec((struct str){ b.p + 4, b.n - 4 }, &a, &out, &e) == 0);
    CHECK(!out.tty && out.cwd[0] == '\0' && out.env[0] == NULL);
}

static void a_huge_exec_is_refused_and_leaves_nothing(void)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    AUTO(free_p) char *word = xmalloc(STREAM_PAYLOAD_MAX + 1);
    memset(word, 'x', STREAM_PAYLOAD_MAX);
    word[STREAM_PAYLOAD_MAX] = '\0';
    const char *argv[] = { "echo", word, NULL }, *none[] = { NULL };
    struct err e;
    CHECK(stream_put_exec(&b, &(struct stream_exec){ .argv = argv }, &e) < 0 && b.n == 0);
    CHECK(e.code == ERR_TOO_LARGE && e.hint[0]);
    CHECK(stream_put_exec(&b, &(struct stream_exec){ .argv = none }, &e) < 0 && b.n == 0);
}

static int get_exec(const char *bytes, size_t n)
{
    AUTO(arena_free) struct arena a = { .limit = 1 << 20 };
    struct stream_exec out;
    struct err e;
    return stream_get_exec((struct str){ bytes, n }, &a, &out, &e);
}

static void a_crooked_exec_is_refused(void)
{
    CHECK(get_exec("\0\0\0\0\0\0\1\0\0\0a\0", 12) == 0);
    CHECK(get_exec("\0\0\0\0\0\0\1\0\0\0a\0b", 13) < 0); /* something left over */
    CHECK(get_exec("\0\0\0\0\0\0\1\0\0\0a", 11) < 0);    /* no end */
    CHECK(get_exec("\0\0\0\0\0\0\0\0\0\0", 10) < 0);     /* no program */
    CHECK(get_exec("\0\0\0\0\0\0\2\0\0\0a\0", 12) < 0);  /* a missing word */
    CHECK(get_exec("\0\0\0\0\0\377\377\377\377\0a\0", 12) < 0);
    CHECK(get_exec("\2\0\0\0\0\0\1\0\0\0a\0", 12) < 0); /* a flag we do not know */
    CHECK(get_exec("\0\0\0", 3) < 0);
}

static void a_full_buffer_holds_no_half_frame(void)
{
    AUTO(buf_free) struct buf b = BUF(10);
    stream_put_data(&b, STREAM_STDOUT, STR("ab"));
    stream_put_data(&b, STREAM_STDOUT, STR("abc"));
    CHECK(b.full && b.n == 6);
}

static void a_place_and_a_note_come_back(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct stream_decoder d = { 0 };
    struct stream_place p = { 7, { UINT64_C(1) << 40, 123 } };
    struct stream_frame f;
    struct err e;
    stream_put_logged(&b, &p);
    stream_put_note(&b, STR("the disk was full"));
    stream_put_note(&b, STR("")); /* nothing to say */
    struct str rest = buf_str(&b);
    CHECK(stream_decode(&d, &rest, &f, &e) == 1 && f.type == STREAM_LOGGED);
    struct stream_place back = stream_get_logged(f.payload);
    CHECK(back.run == 7 && back.at.segment == p.at.segment && back.at.byte == 123);
    CHECK(stream_decode(&d, &rest, &f, &e) == 1 && str_is(f.payload, "the disk was full"));
    CHECK(rest.n == 0);
}

static const struct test tests[] = {
    { "a place and a note come back", a_place_and_a_note_come_back },
    { "frames look as documented", frames_look_as_documented },
    { "frames survive any cutting", frames_survive_any_cutting },
    { "long data becomes several frames", long_data_becomes_several_frames },
    { "unknown types and wrong sizes are refused, for good", strangers_are_refused },
    { "values out of range are refused", values_out_of_range_are_refused },
    { "an exec comes back whole", an_exec_comes_back_whole },
    { "a huge exec is refused and leaves nothing", a_huge_exec_is_refused_and_leaves_nothing },
    { "a crooked exec is refused", a_crooked_exec_is_refused },
    { "a full buffer holds no half frame", a_full_buffer_holds_no_half_frame },
};
TEST_CASES(tests)
