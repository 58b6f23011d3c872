/* commands - what operators ask of machines' agents.
 *
 * A command goes to the agent with the answer to each of its reports until a report acknowledges it, so it is done
 * once, or refused with a reason.  It is answered when it is durable, and kept with what became of it: a restart forgets
 * none.
 */
#ifndef NS_API_COMMANDS_H
#define NS_API_COMMANDS_H

#include "api/state.h"

#define COMMANDS_MAX 1024     /* kept, of all machines; the oldest that is answered goes first */
#define COMMANDS_WAIT_MAX 16u /* of one machine, not answered yet */

int commands_load(struct api *a, struct err *e) MUST_USE;
void commands_free(struct api *a);
/* What the last report says: holds, and answers to commands. */
void commands_reported(struct call *c, struct str node);
void commands_put(struct api *a, struct str node,
                  struct json_out *w); /* those that wait: "commands" */

/* Says of this run of a job that an operator paused it, where and who; false: nobody did. */
bool commands_paused(const struct api *a, uint64_t job, uint32_t run, struct buf *out);

#endif
