/* words - lists as people write them on the command line ("a,b", "k=v,k=v") as JSON, and lists of answers as text. */
#ifndef NS_CLI_WORDS_H
#define NS_CLI_WORDS_H

#include "base/json.h"

/* "a,b" as a list; empty text is null, which undoes it.  NULL: nothing is put. */
void words_put_list(struct json_out *w, const char *key, const char *text);
void words_put_text(struct json_out *w, const char *key,
                    const char *text); /* likewise, as one string */

/* "k=v,k=v" as members of the open object: "k=" is null; numbers are numbers. */
int words_put_pairs(struct json_out *w, const char *option, const char *text, struct err *e)
    MUST_USE;
int words_put_number(struct json_out *w, const char *key, const char *text, struct err *e) MUST_USE;

void words_add(struct buf *b, const struct json *list);      /* "a, b" */
void words_add_pairs(struct buf *b, const struct json *obj); /* "k=v, k=v" */
void words_add_number(struct buf *b, const struct json *v);  /* 8, 0.5 */

#endif
