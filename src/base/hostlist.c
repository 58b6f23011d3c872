#include "base/hostlist.h"

#include <stdio.h>

#define NAME_MAX_LEN 255u
#define BRACKETS_MAX 8
#define DIGITS_MAX 18u

struct range {
    uint64_t lo, hi;
    int width; /* digits of a zero-padded number, else 0 */
};

struct expansion {
    struct arena *a;
    const char **names;
    size_t n;
    char name[NAME_MAX_LEN + 1]; /* the one being put together */
};

static bool digits_value(struct str s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0 || s.n > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    *out = v;
    return true;
}

static int padding(struct str digits)
{
    return digits.n > 1 && digits.p[0] == '0' ? (int)digits.n : 0;
}

/* "7", "1-3" or "01-12".  "001-12" is refused: nobody can tell which width is meant. */
static bool parse_range(struct str s, struct range *out)
{
    struct str lo, hi;
    struct range r = { 0 };
    if (!str_cut(s, '-', &lo, &hi))
        hi = lo;
    if (!digits_value(lo, &r.lo) || !digits_value(hi, &r.hi) || r.lo > r.hi || hi.n < lo.n)
        return false;
    r.width = padding(lo);
    if (padding(hi) && hi.n != lo.n)
        return false;
    *out = r;
    return true;
}

static bool name_char(char c)
{
    return c > ' ' && c < 0x7f && c != '[' && c != ']' && c != ',';
}

/* Splits an item at its first bracket; false when it has none.  The item was checked before. */
static bool cut_bracket(struct str item, struct str *before, struct str *ranges, struct str *after)
{
    return str_cut(item, '[', before, after) && str_cut(*after, ']', ranges, after);
}

/* Takes the text up to the next comma outside brackets. */
static struct str next_item(struct str *rest, bool *out_more)
{
    bool inside = false;
    size_t i = 0;
    for (; i < rest->n && (inside || rest->p[i] != ','); i++)
        inside = rest->p[i] == '[' ? true : rest->p[i] == ']' ? false : inside;
    struct str item = str_trim((struct str){ rest->p, i });
    *out_more = i < rest->n;
    *rest = (struct str){ rest->p + i + *out_more, rest->n - i - *out_more };
    return item;
}

static int bad_item(struct str item, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not a list of names: %s", (int)MIN(item.n, (size_t)60),
            item.p, why);
    return err_hint(e, "write it like pc[01-12],srv1 or rack[1-2]n[1-8]");
}

/* Counts what one bracket stands for; stops counting above `max`. */
static int count_ranges(struct str item, struct str ranges, size_t max, size_t *out_n,
                        struct err *e)
{
    size_t n = 0;
    for (bool more = true; more;) {
        struct str one;
        struct range r;
        more = str_cut(ranges, ',', &one, &ranges);
        if (!parse_range(str_trim(one), &r))
            return bad_item(item, "a range must look like 1-9 or 01-12, the smaller number first",
                            e);
        n = r.hi - r.lo >= max - MIN(n, max) ? max + 1 : n + (size_t)(r.hi - r.lo) + 1;
    }
    *out_n = n;
    return 0;
}

/* Checks one item wholly, so that expanding it cannot fail but for a name's length. */
static int check_item(struct str item, size_t max, size_t *out_n, struct err *e)
{
    struct str rest = item, before, ranges;
    size_t n = 1, here = 0;
    int brackets = 0;
    if (item.n == 0)
        return bad_item(item, "a name is missing", e);
    for (bool more = true; more;) {
        more = str_cut(rest, '[', &before, &rest);
        for (size_t i = 0; i < before.n; i++)
            if (!name_char(before.p[i]))
                return bad_item(item, "a name has no blanks, and each ']' needs its '['", e);
        if (!more)
            break;
        if (!str_cut(rest, ']', &ranges, &rest))
            return bad_item(item, "a '[' has no ']'", e);
        if (++brackets > BRACKETS_MAX)
            return bad_item(item, "it has too many brackets", e);
        if (count_ranges(item, ranges, max, &here, e) < 0)
            return -1;
        if (__builtin_mul_overflow(n, here, &n) || n > max)
            n = max + 1;
    }
    *out_n = n;
    return 0;
}

static int too_long(struct expansion *x, struct err *e)
{
    x->name[60] = '\0';
    return err_set(e, ERR_INVALID, "the name '%s...' is longer than %u characters", x->name,
                   NAME_MAX_LEN);
}

/* Recursion is as deep as the item has brackets, which check_item bounds. */
static int expand_item(struct expansion *x, struct str item, size_t len, struct err *e)
{
    struct str before, ranges, after, one;
    bool bracket = cut_bracket(item, &before, &ranges, &after);
    if (!bracket)
        before = item;
    if (len + before.n > NAME_MAX_LEN)
        return too_long(x, e);
    if (before.n)
        memcpy(x->name + len, before.p, before.n);
    len += before.n;
    if (!bracket) {
        x->names[x->n++] = arena_strndup(x->a, x->name, len);
        return 0;
    }
    for (bool more = true; more;) {
        struct range r;
        more = str_cut(ranges, ',', &one, &ranges);
        if (!parse_range(str_trim(one), &r))
            return bad_item(item, "a range is wrong", e);
        for (uint64_t v = r.lo; v <= r.hi; v++) {
            char digits[24];
            int n = snprintf(digits, sizeof digits, "%0*llu", r.width, (unsigned long long)v);
            if (len + (size_t)n > NAME_MAX_LEN)
                return too_long(x, e);
            memcpy(x->name + len, digits, (size_t)n);
            if (expand_item(x, after, len + (size_t)n, e) < 0)
                return -1;
        }
    }
    return 0;
}

int hostlist_expand(struct str list, size_t max, struct arena *a, const char ***out_names,
                    size_t *out_n, struct err *e)
{
    size_t total = 0;
    bool more = true;
    max = MIN(max, (size_t)UINT32_MAX);
    for (struct str rest = list; more;) {
        size_t n = 0;
        if (check_item(next_item(&rest, &more), max, &n, e) < 0)
            return -1;
        total = n > max - total ? max + 1 : total + n;
        if (total > max) {
            err_set(e, ERR_TOO_LARGE, "'%.*s' stands for more than %zu names",
                    (int)MIN(list.n, (size_t)60), list.p, max);
            return err_hint(e, "use smaller ranges");
        }
    }
    struct expansion x = { .a = a, .names = arena_array(a, const char *, total) };
    more = true;
    for (struct str rest = list; more;)
        if (expand_item(&x, next_item(&rest, &more), 0, e) < 0)
            return -1;
    *out_names = x.names;
    *out_n = x.n;
    return 0;
}

/* A name seen as prefix, digits, suffix; names that differ only in the digits share a bracket. */
struct split {
    struct str prefix, digits, suffix;
    uint64_t value;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Splits at the run of digits around `at`; false when there is none we can count with. */
static bool split_at(const char *name, size_t at, struct split *out)
{
    size_t from = at, to = at;
    while (from > 0 && is_digit(name[from - 1]))
        from--;
    while (is_digit(name[to]))
        to++;
    struct split s = { { name, from }, { name + from, to - from }, str_of(name + to), 0 };
    if (!digits_value(s.digits, &s.value))
        return false;
    *out = s;
    return true;
}

/* Where two names first differ is where their numbers are, if they are of one family at all. */
static bool family(const char *a, const char *b, struct split *out_a, struct split *out_b)
{
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    struct split sa, sb;
    if (!split_at(a, at, &sa) || !split_at(b, at, &sb))
        return false;
    if (!str_eq(sa.prefix, sb.prefix) || !str_eq(sa.suffix, sb.suffix))
        return false;
    *out_a = sa;
    *out_b = sb;
    return true;
}

/* Whether `next` is what counting on from `lo`, now at `value`, would print. */
static bool counts_on(struct str lo, uint64_t value, const struct split *next)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%0*llu", padding(lo), (unsigned long long)value + 1);
    return str_eq((struct str){ text, (size_t)n }, next->digits);
}

/* Writes the bracket of one family, starting at names[0]; returns how many names it took. */
static size_t fold_family(const char *const *names, size_t n, struct buf *out)
{
    struct split first, s;
    if (n < 2 || !family(names[0], names[1], &first, &s)) {
        buf_addz(out, names[0]);
        return 1;
    }
    buf_add(out, first.prefix);
    buf_addc(out, '[');
    struct split lo = first, last = first;
    size_t i = 1;
    for (;; i++) {
        bool more = i < n && split_at(names[i], MIN(first.prefix.n, strlen(names[i])), &s) &&
                    str_eq(s.prefix, first.prefix) && str_eq(s.suffix, first.suffix);
        if (more && counts_on(lo.digits, last.value, &s)) {
            last = s;
            continue;
        }
        buf_add(out, lo.digits);
        if (last.value != lo.value) {
            buf_addc(out, '-');
            buf_add(out, last.digits);
        }
        if (!more)
            break;
        buf_addc(out, ',');
        lo = last = s;
    }
    buf_addc(out, ']');
    buf_add(out, first.suffix);
    return i;
}

void hostlist_fold(const char *const *names, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n;) {
        if (i)
            buf_addc(out, ',');
        i += fold_family(names + i, n - i, out);
    }
}
