/* split - whose a GPU's work is: what the driver says of the device and of its processes, made to add up.
 *
 * The device's own figure is right.  The driver measures processes over a stretch of its own, so their sum
 * may pass it: then all are lowered alike; what is missing is REPORT_NOT_TOLD.  A process of no task is
 * REPORT_OTHER.  Where the driver does not tell what processes did, all is a task's that is alone on the
 * GPU, else nobody's: nothing is guessed.  So the parts, and what is idle, are the device, to a thousandth.
 * Pure.
 */
#ifndef NS_NODE_SPLIT_H
#define NS_NODE_SPLIT_H

#include "wire/report.h"

struct split_process {
    char who[REPORT_WHO_MAX]; /* a task or a pod; empty: of neither */
    int64_t percent;          /* REPORT_UNKNOWN: not told */
    int64_t mem_mib;          /* likewise */
};

struct split_gpu {
    uint32_t place; /* what the parts say it is */
    int64_t permille, mem_used_mib;
    bool told; /* what processes did is */
    const struct split_process *process;
    size_t processes;
};

/* Adds the parts to the sample; past its room they count as not told. */
void split_add(const struct split_gpu *g, struct report_sample *s);

#endif
