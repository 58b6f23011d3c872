#!/bin/sh
# A text that the build embeds comes out of the program byte for byte.
. "$(dirname "$0")/lib.sh"

embed() {
    "$NIGHTSHIFT_SOURCE/tools/embed" in.txt text.inc &&
    printf '#include <stdio.h>\nstatic const char text[] =\n#include "text.inc"\n;\n%s\n' \
        'int main(void) { return fwrite(text, 1, sizeof text - 1, stdout) != sizeof text - 1; }' >a.c &&
    ${CC:-cc} -Wall -Wextra -Werror -o a a.c && ./a | cmp - in.txt
}

test_expect 'quotes, backslashes, tabs and trigraphs survive' '
    printf "a \"b\" \\\\n\\t%%d ??/ c\n\\n" >in.txt && embed'

test_expect 'a character beyond ASCII may be followed by a digit' '
    printf "ü1 …9\r\n" >in.txt && embed'

test_expect 'an empty text and one without a last line end are texts too' '
    : >in.txt && embed && printf "no end" >in.txt && embed'

test_done
