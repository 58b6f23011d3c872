/* commands - what operators ask of machines' agents, and what owners say there.
 *
 * A command goes to the agent with the answer to each of its reports until a report acknowledges it, so it is done
 * once, or refused with a reason.  Kept in memory: what was not delivered is forgotten with the daemon.
 */
#ifndef NS_API_COMMANDS_H
#define NS_API_COMMANDS_H

#include "api/state.h"

#define COMMANDS_MAX 1024     /* kept, of all machines; the oldest that is answered goes first */
#define COMMANDS_WAIT_MAX 16u /* of one machine, not answered yet */

void commands_free(struct api *a);
/* What the last report says: holds, and answers to commands. */
void commands_reported(struct call *c, struct str node);
void commands_put(struct api *a, struct str node,
                  struct json_out *w); /* those that wait: "commands" */

/* Members: is it held by its owner, since when. */
void put_held(struct json_out *w, struct api *a, struct str node);
/* Lines of machines that are held. */
void put_held_list(struct json_out *w, struct api *a);

#endif
