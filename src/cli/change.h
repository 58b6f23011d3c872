/* change - what differs between two JSON objects, in a few words or as lines. */
#ifndef NS_CLI_CHANGE_H
#define NS_CLI_CHANGE_H

#include "base/buf.h"

/* "weight 1 → 2, nodes pc1 → pc1 pc2".  One that is empty was not there: what the other has is told then. */
void change_add_summary(struct buf *out, struct str before, struct str after);

/* A line a member: "  name value", and where it changed "- name old" and "+ name new". */
void change_add_lines(struct buf *out, struct str before, struct str after, bool colour);

#endif
