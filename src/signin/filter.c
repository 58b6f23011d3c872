#include "signin/filter.h"

static void add_escaped(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool odd = *p < 0x20 || *p >= 0x7f || strchr("*()\\", *p);
        if (odd)
            buf_printf(out, "\\%02x", *p);
        else
            buf_addc(out, (char)*p);
    }
}

int filter_expand(const char *template, const char *user, const char *dn, struct buf *out,
                  struct refusal *r)
{
    for (const char *p = template; *p; p++) {
        if (*p != '%') {
            buf_addc(out, *p);
            continue;
        }
        p++;
        const char *value = *p == 'u' ? user : *p == 'd' ? dn : NULL;
        if (*p == '%')
            buf_addc(out, '%');
        else if (value)
            add_escaped(out, value);
        else
            return refuse(r, REASON_BAD_REQUEST, "the filter '%s' has a %% that is no %%u or %%d",
                          template);
    }
    return out->full ? refuse(r, REASON_BAD_REQUEST, "the filter is too long") : 0;
}

bool filter_has(const char *template, char mark)
{
    for (const char *p = template; *p && p[1]; p++) {
        if (*p == '%' && p[1] == mark)
            return true;
        p += *p == '%'; /* "%%u" is no mark */
    }
    return false;
}
