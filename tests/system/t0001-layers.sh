#!/bin/sh
# The layer lint can fail: each way to break a layer, in a tree made for it.
. "$(dirname "$0")/lib.sh"

lint="$NIGHTSHIFT_SOURCE/tools/check-layers"
fresh_tree() {
    rm -rf tree
    mkdir -p tree/tools tree/src/base tree/src/core tree/src/store
    cp "$NIGHTSHIFT_SOURCE/tools/layers.txt" tree/tools/
    printf '#include "base/base.h"\n#include <stdint.h>\n' >tree/src/core/place.c
}

test_expect 'a tree that keeps to the table passes' '
    fresh_tree && "$lint" tree'

test_expect 'an include upwards is named with file and line' '
    fresh_tree && echo "#include \"store/store.h\"" >>tree/src/core/place.c &&
    exits_with 1 "$lint" tree >out &&
    grep "^src/core/place.c:3: core may not include store$" out'

test_expect 'blanks before and after the hash do not hide an include' '
    fresh_tree && echo "  # include \"store/store.h\"" >>tree/src/core/place.c &&
    exits_with 1 "$lint" tree'

test_expect 'the core has no clock' '
    fresh_tree && echo "#include <time.h>" >>tree/src/core/place.c &&
    exits_with 1 "$lint" tree >out && grep "place.c:3: core may not include <time.h>" out'

test_expect 'an include without its folder is refused' '
    fresh_tree && echo "#include \"job.h\"" >>tree/src/core/place.c &&
    exits_with 1 "$lint" tree >out && grep "write the folder too" out'

test_expect 'a folder without a row is refused' '
    fresh_tree && mkdir tree/src/misc && echo "#include \"base/base.h\"" >tree/src/misc/a.c &&
    exits_with 1 "$lint" tree >out && grep "folder misc has no row" out'

test_expect 'only a test may include the test library' '
    fresh_tree && echo "#include \"tests/lib/test.h\"" >tree/src/core/place_test.c &&
    "$lint" tree &&
    echo "#include \"tests/lib/test.h\"" >>tree/src/core/place.c &&
    exits_with 1 "$lint" tree'

test_done
