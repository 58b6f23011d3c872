#include "engine/kube/quantity.h"

__extension__ typedef unsigned __int128 u128;

#define DIGITS_MAX 20 /* that many, shifted by 60 bits for Ei, still fit */
#define POWER_MAX 1000
#define MIB_MILLI (INT64_C(1000) << 20)

/* digits × 10^power × 2^bits; inexact: something not zero was left out below. */
struct number {
    u128 digits;
    int n, power, bits;
    bool minus, inexact;
};

static const struct suffix {
    const char *text;
    int power, bits;
} suffixes[] = {
    { "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
    { "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
    { "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
    { "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add_digit(struct number *x, int digit, bool fraction)
{
    bool kept = x->n < DIGITS_MAX;
    if (kept) {
        x->digits = x->digits * 10 + (unsigned)digit;
        x->n += x->digits > 0;
    } else {
        x->inexact |= digit > 0;
    }
    if (kept == fraction) /* kept after the point, or lost before it */
        x->power += kept ? -1 : 1;
}

/* Takes digits[.digits] off the front; at least one digit is needed. */
static bool take_digits(struct str *s, struct number *x)
{
    size_t i = 0, seen = 0;
    bool fraction = false;
    for (; i < s->n && (is_digit(s->p[i]) || (s->p[i] == '.' && !fraction)); i++) {
        if (s->p[i] == '.') {
            fraction = true;
            continue;
        }
        add_digit(x, s->p[i] - '0', fraction);
        seen++;
    }
    *s = (struct str){ s->p + i, s->n - i };
    return seen > 0;
}

/* e3, E-6: the sign and the digits after the letter. */
static bool take_power(struct str s, int *out)
{
    bool minus = s.n && s.p[0] == '-';
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    int power = 0;
    if (i == s.n)
        return false;
    for (; i < s.n && is_digit(s.p[i]); i++)
        power = MIN(power * 10 + (s.p[i] - '0'), POWER_MAX);
    *out = minus ? -power : power;
    return i == s.n;
}

static bool take_suffix(struct str s, struct number *x)
{
    int power;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_is(s, suffixes[i].text)) {
            x->power += suffixes[i].power;
            x->bits = suffixes[i].bits;
            return true;
        }
    if ((s.p[0] != 'e' && s.p[0] != 'E') || !take_power((struct str){ s.p + 1, s.n - 1 }, &power))
        return false;
    x->power += power;
    return true;
}

static int64_t thousandths(struct number x)
{
    u128 v = x.digits << x.bits, limit = INT64_MAX;
    int power = x.power + 3;
    if (v == 0)
        return x.inexact ? 1 : 0;
    for (; power > 0 && v <= limit; power--)
        v *= 10;
    for (; power < 0 && v > 0; power++) {
        x.inexact |= v % 10 > 0;
        v /= 10;
    }
    v = MIN(v + x.inexact, limit);
    return x.minus ? -(int64_t)v : (int64_t)v;
}

int quantity_parse(struct str s, int64_t *out_milli, struct err *e)
{
    struct str rest = s;
    struct number x = { .minus = s.n && s.p[0] == '-' };
    if (x.minus || (s.n && s.p[0] == '+'))
        rest = (struct str){ s.p + 1, s.n - 1 };
    if (take_digits(&rest, &x) && take_suffix(rest, &x)) {
        *out_milli = thousandths(x);
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a quantity", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "write it like 500m, 1.5 or 16Gi");
}

int quantity_read(const struct json *v, int64_t *out_milli, struct err *e)
{
    char number[40];
    struct str s;
    if (json_is_number(v)) {
        json_number_text(v, number);
        s = str_of(number);
    } else if (json_as_str(v, 64, &s, e) < 0) {
        return -1;
    }
    return quantity_parse(s, out_milli, e);
}

int64_t quantity_add(int64_t a_milli, int64_t b_milli)
{
    int64_t sum;
    if (__builtin_add_overflow(a_milli, b_milli, &sum))
        return a_milli < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

uint64_t quantity_units(int64_t milli)
{
    return milli <= 0 ? 0 : (uint64_t)(milli / 1000 + (milli % 1000 > 0));
}

uint64_t quantity_mib_asked(int64_t milli)
{
    return milli <= 0 ? 0 : (uint64_t)(milli / MIB_MILLI + (milli % MIB_MILLI > 0));
}

uint64_t quantity_mib_there(int64_t milli)
{
    return milli <= 0 ? 0 : (uint64_t)(milli / MIB_MILLI);
}
