/* A table of any bytes: no row has more or fewer values than the header, a number lies in its
 * range, and an error is one line that names file, line and field. */
#include "simulate/csv.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static const struct csv_column columns[] = {
    { "id", 0 },
    { "gpus", CSV_OPTIONAL },
    { "note", CSV_OPTIONAL | CSV_EMPTY },
};

static void refused(const struct err *e)
{
    must(e->code == ERR_INVALID && strncmp(e->msg, "t:", 2) == 0 && e->hint[0]);
    must(strstr(e->msg, ": field '") && !strchr(e->msg, '\n'));
}

FUZZ_TARGET(data, size)
{
    static const struct csv_table table = { columns, ARRAY_LEN(columns), 100 };
    const struct csv_source from = { "t", { (const char *)data, size } };
    struct csv c;
    struct err e = { 0 };
    if (csv_open(&c, &from, &table, &e) < 0) {
        refused(&e);
        return 0;
    }
    size_t rows = 0;
    int rc;
    while ((rc = csv_next(&c, &e)) > 0) {
        int64_t v;
        double d;
        must(++rows <= c.room && csv_text(&c, 0).n > 0);
        if (csv_i64(&c, 0, -5, 500, &v, &e) == 0)
            must(v >= -5 && v <= 500 && csv_f64(&c, 0, -5, 500, &d, &e) == 0 && d == (double)v);
        else
            refused(&e);
        for (size_t i = 0; i < c.columns + c.fields; i++)
            must(csv_text(&c, i).n < CSV_LINE_MAX);
    }
    if (rc < 0)
        refused(&e);
    return 0;
}
