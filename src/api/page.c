/* The live page and the one to sign in on: texts that the program carries inside. */
#include "api/state.h"

static const char html[] =
#include "live.html.inc"
    ;
static const char script[] =
#include "live.js.inc"
    ;
static const char style[] =
#include "live.css.inc"
    ;

static const char door[] =
#include "door.html.inc"
    ;
static const char door_script[] =
#include "door.js.inc"
    ;

static int send(struct call *c, const char *type, struct str text)
{
    http_add_header(c->rq, "Content-Security-Policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                    "img-src 'self' data:; base-uri 'none'; form-action 'none'; "
                    "frame-ancestors 'none'");
    http_reply(c->rq, 200, type, text);
    return 0;
}

int api_page(struct call *c, struct err *e)
{
    (void)e;
    return send(c, "text/html; charset=utf-8", (struct str){ html, sizeof html - 1 });
}

int api_page_script(struct call *c, struct err *e)
{
    (void)e;
    return send(c, "text/javascript; charset=utf-8", (struct str){ script, sizeof script - 1 });
}

int api_page_style(struct call *c, struct err *e)
{
    (void)e;
    return send(c, "text/css; charset=utf-8", (struct str){ style, sizeof style - 1 });
}

int api_door_page(struct call *c, struct err *e)
{
    (void)e;
    return send(c, "text/html; charset=utf-8", (struct str){ door, sizeof door - 1 });
}

int api_door_script(struct call *c, struct err *e)
{
    (void)e;
    return send(c, "text/javascript; charset=utf-8",
                (struct str){ door_script, sizeof door_script - 1 });
}
