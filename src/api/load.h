/* load - what machines measure, as parts of other answers. */
#ifndef NS_API_LOAD_H
#define NS_API_LOAD_H

#include "api/state.h"

/* What is wrong where this job has its GPUs now; false: nothing is known. */
bool job_trouble(struct api *a, uint64_t job, struct buf *out);
/* Members: does its agent report, why is it drained, what is wrong. */
void put_health(struct json_out *w, struct api *a, struct str node, bool drained);
/* Members: how busy it is. */
void put_gpu_load(struct json_out *w, struct api *a, struct str node, struct str uuid);

/* ---- for its neighbours ---- */

bool find_node(struct api *a, struct str name, uint32_t *out_i, struct node_view *out);
int no_node(struct str name, struct err *e);
bool load_of(struct api *a, struct str node, struct history_node *out); /* what its agent told */

#endif
