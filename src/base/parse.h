/* parse - text into checked values; nothing is guessed, nothing is left over unread.
 *
 * Each returns 0, or -1 with a message that quotes the text and a hint that shows a right one.
 * Numbers are read the same in every locale, and are finite.
 */
#ifndef NS_BASE_PARSE_H
#define NS_BASE_PARSE_H

#include "base/err.h"
#include "base/str.h"

int parse_u64(struct str s, uint64_t max, uint64_t *out, struct err *e) MUST_USE;
int parse_i64(struct str s, int64_t min, int64_t max, int64_t *out, struct err *e) MUST_USE;
int parse_f64(struct str s, double min, double max, double *out, struct err *e) MUST_USE;
int parse_bool(struct str s, bool *out, struct err *e) MUST_USE; /* yes no true false on off 1 0 */

/* 90 (seconds), 500ms, 30s, 5m, 8h, 2d, 1w, 1h30m; 1-12:00:00 (days-h:m:s), 12:30:00, 12:30 (h:m),
 * 1-12:30 (days-h:m). */
int parse_duration_ms(struct str s, int64_t *out_ms, struct err *e) MUST_USE;

/* 512 (bytes), 16Gi, 16GiB, 16G (decimal), 1.5Ti; K M G T P and Ki Mi Gi Ti Pi. */
int parse_size_bytes(struct str s, uint64_t *out_bytes, struct err *e) MUST_USE;

/* CPUs and GPUs in thousandths: 4, 0.5, 1.25, 250m. */
int parse_milli(struct str s, uint64_t max_milli, uint64_t *out_milli, struct err *e) MUST_USE;

/* The inverse, as short as it can be exactly: 5400000 -> "1h30m", 17179869184 -> "16Gi". */
const char *format_duration_ms(int64_t ms, char out[static 32]);
const char *format_size(uint64_t bytes, char out[static 32]);

#endif
