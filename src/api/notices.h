/* notices - what people want to be told: the calls about it, and GPUs that do nothing (idle.c). */
#ifndef NS_API_NOTICES_H
#define NS_API_NOTICES_H

#include "api/state.h"
#include "notice/notices.h"

/* Looks once a minute for jobs whose GPU does nothing; NULL when nobody can be told. */
struct idling *idling_new(struct api *a);
struct idling *idling_free(struct idling *i); /* NULL ok; returns NULL */

void notice_tail(void *api, uint64_t job, uint32_t run, struct buf *out); /* of a job's output */
void put_notice_metrics(const struct api *a, struct buf *b);

#endif
