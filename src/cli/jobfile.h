/* jobfile - job files: YAML or JSON, one document or several, into specs as JSON. */
#ifndef NS_CLI_JOBFILE_H
#define NS_CLI_JOBFILE_H

#include "base/arena.h"
#include "base/json.h"

#define JOBFILE_MAX (1u << 20)
#define JOBFILE_DOCUMENTS_MAX 1000

/* The next document of a file, with its first line's number less one.  false: no more. */
struct jobfile {
    struct str rest;
    size_t line; /* of the file, where `rest` begins, from 0 */
};
bool jobfile_next(struct jobfile *f, struct str *out_text, size_t *out_line);

/* Reads one document; errors name the line within the file. */
struct json_doc *jobfile_read(struct str text, size_t line, struct err *e);

/* The line (from 1) where a field like "resources.gpus" stands, or 0. */
size_t jobfile_line_of(struct str text, size_t line, const char *field);

#endif
