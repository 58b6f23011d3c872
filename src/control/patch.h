/* patch - the newest segment of the journal, when what it begins with is damaged.
 *
 * A segment begins with lines that make anew what the one before it ends with, so that one makes them again: they are written as
 * they were, if every line that is whole is among them.  Nothing is guessed: else it is ERR_INTERNAL, and says what to do.
 */
#ifndef NS_CONTROL_PATCH_H
#define NS_CONTROL_PATCH_H

#include "store/store.h"

int patch_journal(struct store *s, struct log *log, struct err *e) MUST_USE;

#endif
