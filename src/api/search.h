/* search - a word in the output of many jobs: what others have to know of it. */
#ifndef NS_API_SEARCH_H
#define NS_API_SEARCH_H

#include "base/str.h"

struct api;

/* Those who wait are told so. */
void searchings_free(struct api *a);
void searchings_end_of(struct api *a, struct str user); /* what it may see has changed */

#endif
