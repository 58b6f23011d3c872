/* copy_doc - the ConfigMap in which a copy of a job stands, in the daemon's own namespace.
 *
 * Pure.  The record is the daemon's own text and nobody's business here.  Number 0 is no job: it stands for what is
 * kept of all of them together.  Copies name their daemon, as pods do: another's are not ours.
 */
#ifndef NS_ENGINE_KUBE_COPY_DOC_H
#define NS_ENGINE_KUBE_COPY_DOC_H

#include "base/buf.h"
#include "base/json.h"

#define COPY_LABEL                                                                                 \
    "nightshift.dev/copies-of" /* the daemon, as a label can say it: see copy_label */
#define COPY_NAME_MAX 64
#define COPY_LABEL_MAX 20
#define COPY_RECORD_MAX ((size_t)1 << 20) /* more than a ConfigMap may have */

const char *copy_label(const char *daemon, char out[static COPY_LABEL_MAX]);
/* "nightshift-job-17-5f3a9c01", "nightshift-numbers-5f3a9c01" */
const char *copy_name(uint64_t job, const char *daemon, char out[static COPY_NAME_MAX]);

struct copy_doc {
    uint64_t job;
    const char *space, *daemon;
    struct str record;
};
void copy_make(const struct copy_doc *c, struct buf *out);
/* -1: it is not that daemon's, or not whole.  The record is borrowed from the document. */
int copy_read(const struct json *o, const char *daemon, struct copy_doc *out, struct err *e)
    MUST_USE;

#endif
