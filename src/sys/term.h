/* term - what may be assumed of a terminal behind a descriptor. */
#ifndef NS_SYS_TERM_H
#define NS_SYS_TERM_H

#include "base/base.h"

bool term_is_tty(int fd);
bool term_colour(int fd);      /* a terminal, not a dumb one, and NO_COLOR is unset or empty */
unsigned term_columns(int fd); /* 80 when nobody knows */

#endif
