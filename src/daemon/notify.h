/* notify - notices as the settings have them, and how they hear of what happens. */
#ifndef NS_DAEMON_NOTIFY_H
#define NS_DAEMON_NOTIFY_H

#include "control/ear.h"
#include "daemon/config.h"
#include "notice/notices.h"

struct notify_in {
    const struct config *config;
    struct loop *loop;
    struct log *log;
    struct clock clock;
    struct store *store;
    struct auth *auth;
    const char *const *send_argv;
};
/* What is set and does not go together is refused by name. */
struct notices *notify_open(const struct notify_in *in, struct err *e);
struct control_ear notify_ear(struct notices *n);

#endif
