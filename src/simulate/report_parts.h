/* report_parts - what the writers of a report share: figures as people write them, escaped text,
 * the list of what is compared between policies.  For report_*.c only.
 */
#ifndef NS_SIMULATE_REPORT_PARTS_H
#define NS_SIMULATE_REPORT_PARTS_H

#include "base/json.h"
#include "simulate/report.h"

#define TEXT_MAX 32
#define TEXT_UNKNOWN "–"

const char *text_duration(double s, char out[static TEXT_MAX]);   /* 42s, 12m 5s, 1h 12m, 3d 4h */
const char *text_percent(double part, char out[static TEXT_MAX]); /* 0.783 -> 78.3 % */
const char *text_count(double v, char out[static TEXT_MAX]);      /* 1,204; 57.4 below a hundred */
const char *text_ratio(double v, char out[static TEXT_MAX]);      /* 0.23 */
const char *text_of_100(double v, char out[static TEXT_MAX]);     /* 78.3 -> 78.3 % */
const char *text_weight(uint32_t milli, char out[static TEXT_MAX]);

/* Mon 14:20 while a replay fits into two weeks, else day 17, 14:20. */
const char *text_moment(const struct report *r, int64_t at_ms, char out[static TEXT_MAX]);
bool report_has_weekdays(const struct report *r);

/* Part of what it was entitled to; not finite when it was entitled to nothing. */
double report_got(const struct report_tenant *t);

/* One figure that every policy is judged by. */
struct figure {
    const char *name;  /* for a narrow column */
    const char *words; /* for a page */
    size_t offset;     /* of a double in struct report */
    const char *(*text)(double v, char out[static TEXT_MAX]);
    bool more_is_better;
};
struct figures {
    const struct figure *at;
    size_t n;
};
struct figures report_speed(void);                      /* how long jobs waited and took */
struct figures report_fairness(const struct report *r); /* how it was shared */
double figure_of(const struct figure *f, const struct report *r);

/* One figure in two worlds. */
#define CHANGES_MAX 16
struct change {
    const char *words;
    double before, after;
    const char *(*text)(double v, char out[static TEXT_MAX]);
    int better; /* 1: more is, -1: less is, 0: neither */
};
size_t report_changes(const struct report *before, const struct report *after,
                      struct change out[static CHANGES_MAX]);
/* before NULL: it had no jobs there. */
size_t tenant_changes(const struct report_tenant *before, const struct report_tenant *after,
                      struct change out[static CHANGES_MAX]);
const struct report_tenant *tenant_named(const struct report *r, const char *name);
const char *text_change(const struct change *c, char out[static TEXT_MAX]); /* -73 %, +4.2 points */
int change_verdict(const struct change *c); /* 1: better, -1: worse, 0: neither */

void html_text(struct buf *out, const char *z); /* safe between tags and in quoted attributes */

/* Which tenants the charts draw: the largest, the others summed up. */
#define PAGE_COLOURS 8u
struct page_tenants {
    uint32_t shown[PAGE_COLOURS]; /* indexes, in the report's order */
    uint32_t n;
    uint32_t rest; /* how many are summed up as one more */
};
struct page_tenants page_tenants(const struct report *r);
uint32_t page_colour(const struct page_tenants *p, uint32_t tenant); /* PAGE_COLOURS: none */

void page_begin(const struct report *r, struct buf *out);
void page_end(const struct report *r, size_t n, struct buf *out); /* the data and the script */
void page_frame(struct buf *out, const char *kind, const char *heading, struct buf *summary,
                bool worth_alone);
void page_plural(struct buf *out, double n, const char *one);

void page_charts(const struct report *r, struct buf *out);               /* of one policy */
void page_comparison(const struct report *r, size_t n, struct buf *out); /* of several */
void page_data(const struct report *r, size_t n, struct buf *out);       /* what the script draws */

/* Points with one decimal at most; what is not finite is 0, a NULL series all 0. */
void json_put_points(struct json_out *w, const char *key, const float *v, uint32_t n);

#endif
