/* page - the agent's own /metrics: what it last measured, as wire/metrics.h writes it, over HTTP/1.1.
 *
 * GET and HEAD of /metrics, and nothing else.  The connection is closed behind the answer.  Pure.
 */
#ifndef NS_AGENT_PAGE_H
#define NS_AGENT_PAGE_H

#include "wire/report.h"

struct page_facts {
    const struct report_head *head;
    const struct report_sample *sample; /* NULL: none yet */
    bool away;                          /* the control plane does not answer */
    uint64_t lost;                      /* samples */
    size_t waiting_bytes;
};

void page_answer(const struct page_facts *f, struct str request, struct buf *out);

#endif
