/* instance - how one Nightshift of several on a machine calls what is the machine's: control groups,
 * bridges, the table of its firewall.
 *
 * An id of five characters, drawn once and kept in STATE/instance with the path of that folder, so that a
 * copy of it is not the same instance.  Without the file the names are those of versions that had one each
 * for all.
 */
#ifndef NS_NODE_INSTANCE_H
#define NS_NODE_INSTANCE_H

#include "base/err.h"

struct instance {
    char id[8];                         /* "": an older version's */
    char cgroup[32];                    /* "nightshift-4k2mq" */
    char net_prefix[11], net_table[32]; /* "nsi4k2mq", "nightshift_4k2mq" */
};

/* False: there is no such file (yet); *out has the older names then. */
bool instance_read(const char *state, struct instance *out);

/* Makes it when it is not there. */
int instance_open(const char *state, struct instance *out, struct err *e) MUST_USE;

#endif
