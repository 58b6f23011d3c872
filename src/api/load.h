/* load - what machines measure, as parts of other answers. */
#ifndef NS_API_LOAD_H
#define NS_API_LOAD_H

#include "api/state.h"

/* What is wrong where this job has its GPUs now; false: nothing is known. */
bool job_trouble(struct api *a, uint64_t job, struct buf *out);
/* Members: does its agent report, why is it drained, what is wrong. */
void put_health(struct json_out *w, struct api *a, struct str node, bool drained);
/* Members: how busy it is. */
void put_gpu_load(struct json_out *w, struct api *a, const struct node_view *v,
                  const struct holder *holders, uint32_t g);

/* ---- pieces that load.c and load_gpu.c share ---- */

bool load_of(struct api *a, struct str node, struct history_node *out);
bool load_is_fresh(struct api *a, const struct history_node *n);
void put_known(struct json_out *w, const char *key, int64_t v); /* below 0: null */
void put_scaled(struct json_out *w, const char *key, int64_t v, double unit, int digits);
/* Where in the report a machine's GPU is: by its UUID, or, where the engine knows none (Kubernetes), by the pod that
 * has it; those that no job has follow in order. */
/* Those that we may give out, and on Kubernetes those that pods of others have now: n NULL, its agent is silent. */
uint32_t load_gpus(struct api *a, const struct node_view *v, const struct history_node *n);
bool gpu_place(struct api *a, const struct node_view *v, const struct history_node *n,
               const struct holder *holders, uint32_t g, uint32_t *out);
const struct holder *load_holder(const struct holder *list, uint64_t job);
bool may_name(struct call *c, const struct holder *h);
/* A GPU whole: `known` NULL when its machine is silent. */
void put_whole_gpu(struct call *c, struct json_out *w, const struct node_view *v, uint32_t g,
                   const struct history_node *known, const struct holder *holders);

/* ---- for its neighbours ---- */

bool find_node(struct api *a, struct str name, uint32_t *out_i, struct node_view *out);
int no_node(struct str name, struct err *e);

#endif
