/* The web page and the one to sign in on: files that the program carries inside. */
#include "api/state.h"
#include "web.inc" /* where the build put them, and a tag of their content */

/* FILE with its compressed twin, as FILE .. FILE_end and FILE_gz .. FILE_gz_end. */
#define CARRY_ONE(symbol, path)                                                                    \
    asm(".pushsection .rodata\n.balign 16\n" #symbol ":\n.incbin \"" path "\"\n" #symbol           \
        "_end:\n.byte 0\n.popsection");                                                            \
    extern const char symbol[], symbol##_end[]
#define CARRY(symbol, path)                                                                        \
    CARRY_ONE(symbol, path);                                                                       \
    CARRY_ONE(symbol##_gz, path ".gz")

CARRY(web_page_html, WEB_PAGE_HTML);
CARRY(web_page_js, WEB_PAGE_JS);
CARRY(web_page_css, WEB_PAGE_CSS);

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
    http_add_header(c->rq, "X-Frame-Options", "DENY"); /* for what knows no frame-ancestors */
    http_reply(c->rq, 200, type, text);
    return 0;
}

struct carried {
    struct str plain, small;
};
#define CARRIED(symbol)                                                                            \
    (struct carried)                                                                               \
    {                                                                                              \
        { symbol, (size_t)(symbol##_end - symbol) },                                               \
        {                                                                                          \
            symbol##_gz, (size_t)(symbol##_gz_end - symbol##_gz)                                   \
        }                                                                                          \
    }

/* Browsers keep it and ask each time whether it is still the same: a new daemon is seen at once. */
static int send_kept(struct call *c, const char *type, struct carried what)
{
    const char *has = http_header(c->rq, "If-None-Match");
    const char *takes = http_header(c->rq, "Accept-Encoding");
    bool small = takes && strstr(takes, "gzip");
    http_add_header(c->rq, "Cache-Control", "no-cache");
    http_add_header(c->rq, "ETag", WEB_TAG);
    http_add_header(c->rq, "Vary", "Accept-Encoding");
    if (has && strstr(has, WEB_TAG)) {
        http_reply(c->rq, 304, NULL, STR(""));
        return 0;
    }
    if (small)
        http_add_header(c->rq, "Content-Encoding", "gzip");
    return send(c, type, small ? what.small : what.plain);
}

int api_page(struct call *c, struct err *e)
{
    (void)e;
    return send_kept(c, "text/html; charset=utf-8", CARRIED(web_page_html));
}

int api_page_script(struct call *c, struct err *e)
{
    (void)e;
    return send_kept(c, "text/javascript; charset=utf-8", CARRIED(web_page_js));
}

int api_page_style(struct call *c, struct err *e)
{
    (void)e;
    return send_kept(c, "text/css; charset=utf-8", CARRIED(web_page_css));
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
