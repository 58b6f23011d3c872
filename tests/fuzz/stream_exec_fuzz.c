/* An exec request of any bytes: what is accepted gives back the same bytes when it is written. */
#include "tests/fuzz/target.h"
#include "wire/stream.h"

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { .limit = 4u << 20 };
    AUTO(buf_free) struct buf again = BUF(STREAM_FRAME_MAX);
    struct str payload = { (const char *)data, size };
    struct stream_exec want;
    struct err e = { 0 };
    if (size > STREAM_PAYLOAD_MAX)
        return 0;
    if (stream_get_exec(payload, &a, &want, &e) < 0) {
        if (e.code == ERR_NONE || !e.msg[0])
            abort();
        return 0;
    }
    if (!want.argv[0] || stream_put_exec(&again, &want, &e) < 0)
        abort();
    if (!str_eq((struct str){ again.p + STREAM_HEADER_BYTES, again.n - STREAM_HEADER_BYTES },
                payload))
        abort();
    return 0;
}
