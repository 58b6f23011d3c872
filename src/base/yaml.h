/* yaml - YAML text into the document that JSON text would give, read with json.h from there on.
 *
 * The scalars are those of YAML 1.2's core schema: 4, -2, 0.5, 1e3, 0x1f, 0o17 are numbers; true,
 * false, null and ~ (with a capital or in capitals too) and nothing at all are what they say.
 * Everything else is text, and so are the traps of older YAML: yes, no, on, off, 1:30:00, 1_000,
 * 0755, .inf, a number that does not fit 64 bits.  What is quoted is always text.
 * Refused, with the line: keys given twice, keys that are not text, anchors, aliases and tags
 * (except !!str), a second document, and whatever is past the bounds below.  So a text of n bytes
 * gives a document of the order of n, in time of the order of n.
 * A text without values (empty, or comments only) is an empty mapping.
 */
#ifndef NS_BASE_YAML_H
#define NS_BASE_YAML_H

#include "base/json.h"

#define YAML_TEXT_MAX (1u << 20) /* bytes */
#define YAML_DEPTH_MAX 32
#define YAML_VALUES_MAX 100000
#define YAML_KEY_MAX 160 /* bytes */

struct json_doc *yaml_read(struct str text, struct err *e);                 /* json_free it */
int yaml_to_json(struct str text, struct buf *out, struct err *e) MUST_USE; /* appends one line */

/* On which line the outermost mapping has this key, from 1; 0 when it has not, or when the text
 * cannot be read.  So "field 'gpus': …" from json.h can be told with its place in the file. */
size_t yaml_line_of(struct str text, const char *key);

#endif
