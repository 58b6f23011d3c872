/* str - borrowed bytes with a length; what comes from outside travels like this. */
#ifndef NS_BASE_STR_H
#define NS_BASE_STR_H

#include <string.h>

#include "base/base.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(lit) ((struct str){ (lit), sizeof(lit) - 1 })
#define STR_ARG(s) (int)((s).n > 4096 ? 4096 : (s).n), (s).p /* for "%.*s" */

static inline struct str str_of(const char *z)
{
    return (struct str){ z, strlen(z) };
}

bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *z);
struct str str_trim(struct str s); /* without blanks, tabs, CR and LF at both ends */

/* Splits at the first `sep`.  false when there is none: head is then all of s, tail empty. */
bool str_cut(struct str s, char sep, struct str *out_head, struct str *out_tail);

/* Takes the next line (without its LF or CRLF) off *rest; false when *rest is empty. */
bool str_next_line(struct str *rest, struct str *out_line);

/* Takes the next blank-separated word off *rest; false when there is none. */
bool str_next_word(struct str *rest, struct str *out_word);

/* Take that byte, or exactly n digits (at most 9), off the front of *rest; false when it does not
 * begin so, and *rest is as it was. */
bool str_take(struct str *rest, char c);
bool str_take_digits(struct str *rest, size_t n, uint32_t *out);

/* Length of the well-formed UTF-8 character that s, which is not empty, begins with, or 0: overlong forms,
 * surrogates and numbers past U+10FFFF are not characters. */
size_t str_utf8_len(struct str s);
bool str_is_utf8(struct str s);

uint64_t str_hash(struct str s);

#endif
