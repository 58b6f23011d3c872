/* render - a notice as people and programs read it: a subject, a mail (RFC 5322), a CloudEvent (1.0, structured).
 *
 * All of it is made from the notice's data, which is JSON as the store keeps it.  Pure.  Names and output of jobs may
 * be anything: in a subject control characters are blanks, in a mail's header everything else than ASCII is an
 * encoded word (RFC 2047), a mail's text is quoted-printable.  So nothing that a job is called or writes can begin
 * another line of a header or another part.
 */
#ifndef NS_NOTICE_RENDER_H
#define NS_NOTICE_RENDER_H

#include "base/json.h"
#include "notice/kind.h"
#include "store/store.h"

#define NOTICE_SUBJECT_MAX 200u /* bytes */
#define NOTICE_JOBS_MAX 20u     /* of several that are told of by name */
#define NOTICE_LOG_LINES 20u
#define NOTICE_LOG_MAX 8192u /* bytes */

/* Members of data about one job. */
void render_put_job(struct json_out *w, const struct store_job *j);

/* One line, without control characters. */
int render_subject(enum notice_event event, const struct json *data, struct buf *out, struct err *e)
    MUST_USE;

struct notice_letter {
    const char *id;
    enum notice_event event;
    int64_t made_ms;
    struct str subject;
    struct str data;       /* JSON */
    struct str log;        /* the last lines of the one job it tells of; or empty */
    const char *url;       /* of the page; NULL: not known */
    const char *from, *to; /* mail */
};
int render_mail(const struct notice_letter *l, struct buf *out, struct err *e) MUST_USE;
int render_event(const struct notice_letter *l, struct buf *out, struct err *e) MUST_USE;

/* Text of any origin: what is no UTF-8 is '?', control characters are blanks (lines: but line feeds and tabs). */
void render_clean(struct str text, bool lines, struct buf *out);

#endif
