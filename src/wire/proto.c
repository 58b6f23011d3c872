#include "wire/proto.h"

static int broken(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID, "no message of Protocol Buffers: %s", what);
}

static bool take_varint(struct str *rest, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && rest->n; i++) {
        unsigned char c = (unsigned char)*rest->p++;
        rest->n--;
        if (i == 9 && c > 1) /* beyond 64 bits */
            return false;
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct str *rest, uint64_t n, struct str *out)
{
    if (n > rest->n)
        return false;
    *out = (struct str){ rest->p, (size_t)n };
    rest->p += n;
    rest->n -= (size_t)n;
    return true;
}

int proto_next(struct str *rest, struct proto_field *out, struct err *e)
{
    uint64_t tag, n;
    *out = (struct proto_field){ .bytes = STR("") };
    if (rest->n == 0)
        return 0;
    if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1)
        return broken(e, "a field has no number");
    out->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case 0:
        out->kind = PROTO_NUMBER;
        return take_varint(rest, &out->value) ? 1 : broken(e, "a number does not end");
    case 1:
    case 5:
        out->kind = PROTO_FIXED;
        n = (tag & 7) == 1 ? 8 : 4;
        return take_bytes(rest, n, &out->bytes) ? 1 : broken(e, "a number is cut off");
    case 2:
        out->kind = PROTO_BYTES;
        return take_varint(rest, &n) && take_bytes(rest, n, &out->bytes)
                 ? 1
                 : broken(e, "a text is cut off");
    default: return broken(e, "a field is of a kind that is not known");
    }
}
