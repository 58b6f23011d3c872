/* Whatever a file holds: it is refused, or the chain has a result; and what verifies can be verified again. */
#include "cli/audit_file.h"
#include "tests/fuzz/target.h"

static int verify(const uint8_t *data, size_t size, struct audit_chain *out)
{
    struct err e = { 0 };
    FILE *from = fmemopen((void *)(uintptr_t)data, size, "r");
    if (!from)
        abort();
    struct audit_file f = { .from = from, .name = "x" };
    int rc = audit_file_verify(&f, out, &e);
    fclose(from);
    if (rc < 0 && !e.msg[0])
        abort();
    return rc;
}

FUZZ_TARGET(data, size)
{
    struct audit_chain one = { 0 }, other = { 0 };
    if (size == 0 || size > 100000)
        return 0;
    int rc = verify(data, size, &one);
    if (verify(data, size, &other) != rc)
        abort();
    if (rc == 0 && (one.fault != other.fault || one.rows != other.rows ||
                    (!one.fault && one.at.number - one.from.number != one.rows)))
        abort();
    return 0;
}
