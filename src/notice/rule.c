#include "notice/rule.h"

#include <strings.h>

#include "base/url.h"
#include "sys/ip.h"

static const char *const reaches[] = {
#define X(id, name) name,
    WEBHOOK_REACHES(X)
#undef X
};

const char *webhook_reach_name(enum webhook_reach r)
{
    return reaches[r];
}

bool webhook_reach_parse(struct str name, enum webhook_reach *out)
{
    for (size_t i = 0; i < ARRAY_LEN(reaches); i++)
        if (str_is(name, reaches[i])) {
            *out = (enum webhook_reach)i;
            return true;
        }
    return false;
}

int64_t notice_pause_ms(int64_t first_ms, uint32_t tries)
{
    int64_t ms = MAX(first_ms, INT64_C(1));
    for (uint32_t i = 1; i < tries && ms < NOTICE_PAUSE_MAX_MS; i++)
        ms *= 2;
    return MIN(ms, NOTICE_PAUSE_MAX_MS);
}

int64_t notice_due_ms(int64_t now_ms, int64_t last_ms, int64_t gather_ms)
{
    int64_t soon_ms = now_ms + MIN(gather_ms, NOTICE_HOLD_MS);
    /* A clock that was set back does not keep it waiting for long. */
    int64_t next_ms = last_ms ? MIN(last_ms, now_ms + gather_ms) + gather_ms : 0;
    return MAX(soon_ms, next_ms);
}

int64_t notice_ready_ms(int64_t due_ms, int64_t now_ms, int64_t pause_ms)
{
    return due_ms - now_ms > pause_ms ? now_ms : due_ms;
}

/* ---- mail ---- */

static int bad_address(struct str s, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not a mail address", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "e.g. ana@lab.example: letters, digits and signs of ASCII, and a domain");
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool all_of(struct str s, const char *signs)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter((unsigned char)s.p[i]) && (!s.p[i] || !strchr(signs, s.p[i])))
            return false;
    return s.n > 0 && s.p[0] != '.' && s.p[s.n - 1] != '.';
}

int mail_check_address(struct str address, struct err *e)
{
    struct str local, domain;
    if (address.n > MAIL_ADDRESS_MAX || !str_cut(address, '@', &local, &domain) || local.n > 64 ||
        !all_of(local, "!#$%&'*+-/=?^_`{|}~.") || !all_of(domain, "-.") || domain.p[0] == '-' ||
        memmem(address.p, address.n, "..", 2))
        return bad_address(address, e);
    return 0;
}

static bool ends_with_domain(struct str domain, struct str end)
{
    if (domain.n < end.n || end.n == 0)
        return false;
    const char *at = domain.p + domain.n - end.n;
    return strncasecmp(at, end.p, end.n) == 0 && (domain.n == end.n || at[-1] == '.');
}

bool mail_domain_listed(struct str address, struct str domains)
{
    struct str local, domain, word;
    bool any = false;
    str_cut(address, '@', &local, &domain);
    while (str_next_word(&domains, &word)) {
        while (word.n && word.p[word.n - 1] == ',')
            word.n--;
        any = true;
        if (ends_with_domain(domain, word))
            return true;
    }
    return !any;
}

/* ---- webhooks ---- */

int webhook_check_url(struct str url, enum webhook_reach reach, struct err *e)
{
    static const enum ip_kind least[] = {
        [WEBHOOK_PUBLIC] = IP_PUBLIC, [WEBHOOK_NETWORK] = IP_PRIVATE, [WEBHOOK_ANY] = IP_HERE
    };
    struct url u;
    uint8_t ip[IP_BYTES];
    if (reach == WEBHOOK_NONE) {
        err_set(e, ERR_CONFLICT, "webhooks are not allowed here");
        return err_hint(e, "the administrator can allow them: the setting `webhooks`");
    }
    if (url_parse(url, &u, e) < 0)
        return -1;
    bool here = url_is_loopback(&u) && reach != WEBHOOK_ANY;
    if (here || (ip_parse(u.host, ip) && ip_kind(ip) < least[reach])) {
        err_set(e, ERR_DENIED, "a webhook at '%.*s' is not allowed here", STR_ARG(u.host));
        return err_hint(e, "which are: the administrator's setting `webhooks`, which is %s",
                        reaches[reach]);
    }
    return 0;
}
