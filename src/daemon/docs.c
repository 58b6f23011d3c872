#include "daemon/docs.h"

#include <stdio.h>

#include "api/api.h"
#include "auth/ways.h"
#include "daemon/config.h"
#include "notice/kind.h"
#include "spec/spec.h"
#include "spec/tenant.h"
#include "wire/audit.h"

#define PAGE_MAX (1u << 20)

static const struct page {
    const char *name;
    void (*print)(struct buf *out);
} pages[] = {
    { "api", api_print_reference },
    { "audit", audit_print_reference },
    { "configuration", config_print_reference },
    { "job-spec", spec_print_reference },
    { "notice-events", notice_print_events },
    { "notice-kinds", notice_print_kinds },
    { "permissions", api_print_permissions },
    { "signin", ways_print_reference },
    { "tenant", tenant_print_reference },
};

int docs_print(const char *page, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (strcmp(pages[i].name, page) != 0)
            continue;
        AUTO(buf_free) struct buf b = BUF(PAGE_MAX);
        pages[i].print(&b);
        if (fputs(b.p, stdout) < 0 || fflush(stdout) != 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot write to standard output");
        return 0;
    }
    err_set(e, ERR_NOT_FOUND, "--docs: there is no page '%s'", page);
    return err_hint(
        e,
        "api, audit, configuration, job-spec, notice-events, notice-kinds, permissions, signin or "
        "tenant");
}
