/* tenants - those of the settings file and those of people, for the files of this folder. */
#ifndef NS_CONTROL_TENANTS_H
#define NS_CONTROL_TENANTS_H

#include "control/control.h"

struct tenants {
    struct tenant **at; /* tenants.c */
    size_t n, cap;
};

int tenants_load(struct control *c, struct err *e) MUST_USE;
void tenants_learn_pools(struct control *c); /* pools have changed: who may use which */
int64_t tenants_wake_ms(
    struct control *c);                 /* when a budget comes near its end; INT64_MAX: not so */
void tenants_review(struct control *c); /* budgets: new periods, and who is near the end */
void tenants_free(struct control *c);
int no_tenant(struct str name, struct err *e);
int tenant_check_spec(const struct control *c, struct str name, const struct spec *s, struct err *e)
    MUST_USE;

#endif
