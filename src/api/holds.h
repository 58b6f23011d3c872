/* holds - machines that their owners have taken back, as their agents tell it. */
#ifndef NS_API_HOLDS_H
#define NS_API_HOLDS_H

#include "api/state.h"

/* What the last report says of it: the machine is taken back, or let go. */
void hold_reported(struct call *c, struct str node, const struct report_hold *h);
/* Members: is it held by its owner, since when. */
void put_held(struct json_out *w, struct api *a, struct str node);
/* Lines of machines that are held. */
void put_held_list(struct json_out *w, struct api *a);

#endif
