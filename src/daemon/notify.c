#include "daemon/notify.h"

#define TIMEOUT_MAX_MS INT64_C(120000)

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int check_mail(const struct config *c, struct err *e)
{
    if (!c->mail_server)
        return 0;
    if (!begins(c->mail_server, "smtp://") && !begins(c->mail_server, "smtps://")) {
        err_set(e, ERR_INVALID, "mail_server: '%s' begins with neither smtp:// nor smtps://",
                c->mail_server);
        return err_hint(e, "e.g. smtps://mail.lab.example");
    }
    if (!c->mail_from) {
        err_set(e, ERR_INVALID, "mail_server is set and mail_from is not");
        return err_hint(e, "say who mail is from: mail_from: nightshift@lab.example");
    }
    if (mail_check_address(str_of(c->mail_from), e) < 0)
        return err_wrap(e, "mail_from");
    if (strcmp(c->mail_tls, "never") == 0 && c->mail_login) {
        err_set(e, ERR_INVALID, "mail_tls is never, and there is a mail_login");
        return err_hint(e, "a password is not sent without TLS: leave mail_tls as it is");
    }
    return 0;
}

static int check(const struct config *c, struct err *e)
{
    if (check_mail(c, e) < 0)
        return -1;
    if (c->notice_timeout_ms < 1000 || c->notice_timeout_ms > TIMEOUT_MAX_MS)
        return err_set(e, ERR_INVALID, "notice_timeout must be from 1s to 2m");
    return 0;
}

struct notices *notify_open(const struct notify_in *in, struct err *e)
{
    const struct config *c = in->config;
    struct notices_config nc = { .loop = in->loop,
                                 .log = in->log,
                                 .clock = in->clock,
                                 .store = in->store,
                                 .auth = in->auth,
                                 .send_argv = in->send_argv,
                                 .mail_server = c->mail_server,
                                 .mail_from = c->mail_from,
                                 .mail_login = c->mail_login,
                                 .mail_password_file = c->mail_password_file,
                                 .mail_ca = c->mail_ca,
                                 .mail_domains = c->mail_domains,
                                 .mail_plain = strcmp(c->mail_tls, "never") == 0,
                                 .webhook_ca = c->webhook_ca,
                                 .external_url = c->external_url,
                                 .gather_ms = c->notice_gather_ms,
                                 .retry_ms = c->notice_retry_ms,
                                 .give_up_ms = c->notice_give_up_ms,
                                 .patience_ms = c->notice_timeout_ms };
    if (check(c, e) < 0)
        return NULL;
    webhook_reach_parse(str_of(c->webhooks), &nc.webhooks);
    return notices_new(&nc, e);
}

static void on_budget(void *ctx, struct store_batch *b, const struct control_budget *v)
{
    struct notice_budget told = { .tenant = v->tenant,
                                  .percent = v->percent,
                                  .used_gpu_milli_ms = v->used_gpu_milli_ms,
                                  .gpu_milli_ms = v->gpu_milli_ms,
                                  .from_ms = v->from_ms,
                                  .until_ms = v->until_ms };
    notices_budget(ctx, b, &told);
}

struct control_ear notify_ear(struct notices *n)
{
    return (struct control_ear){ .job = notices_job,
                                 .budget = on_budget,
                                 .closing = notices_closing,
                                 .durable = notices_durable,
                                 .ctx = n };
}
