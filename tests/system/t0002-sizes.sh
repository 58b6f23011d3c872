#!/bin/sh
# The size lint can fail: each bound of it, in a tree made for it.
. "$(dirname "$0")/lib.sh"

lint="$NIGHTSHIFT_SOURCE/tools/check-sizes"
fresh_tree() {
    rm -rf tree
    mkdir -p tree/src/core tree/tests
}
# lines N TEXT: TEXT, N times
lines() {
    yes "$2" | head -n "$1"
}
# a_function LINES
a_function() {
    printf 'static void f(void)\n{\n'
    lines $(($1 - 3)) '    g();'
    printf '}\n'
}

test_expect 'small files pass without a word' '
    fresh_tree && a_function 20 >tree/src/core/a.c && "$lint" tree >out && ! [ -s out ]'

test_expect 'a file over 500 lines is noted, over 800 fails' '
    fresh_tree && lines 501 "int a;" >tree/src/core/a.c && "$lint" tree >out &&
    grep "^note: src/core/a.c: 501 lines" out &&
    lines 801 "int a;" >tree/src/core/a.c && exits_with 1 "$lint" tree >out &&
    grep "^src/core/a.c: 801 lines (hard bound 800)" out'

test_expect 'a test may be long' '
    fresh_tree && lines 900 "int a;" >tree/src/core/a_test.c && "$lint" tree >out && ! [ -s out ]'

test_expect 'a header over 150 lines is noted, over 250 fails' '
    fresh_tree && lines 151 "int a;" >tree/src/core/a.h && "$lint" tree >out && grep ^note out &&
    lines 251 "int a;" >tree/src/core/a.h && exits_with 1 "$lint" tree'

test_expect 'a function over 60 lines is noted, over 100 fails' '
    fresh_tree && a_function 61 >tree/src/core/a.c && "$lint" tree >out &&
    grep "^note: src/core/a.c:1: f: 61 lines" out &&
    a_function 101 >tree/src/core/a.c && exits_with 1 "$lint" tree'

test_expect 'a function of a test is bounded too' '
    fresh_tree && a_function 101 >tree/src/core/a_test.c && exits_with 1 "$lint" tree'

test_expect 'seven parameters fail, six and a callback with commas do not' '
    fresh_tree && printf "void f(int a, int b, int c, int d, int e,\n       int g, int h)\n{\n}\n" >tree/src/core/a.c &&
    exits_with 1 "$lint" tree >out && grep "f: 7 parameters" out &&
    printf "void f(int a, int b, int c, int d, int e, int (*g)(int, int))\n{\n}\n" >tree/src/core/a.c &&
    "$lint" tree'

test_expect 'a fourth level of nesting fails, braces or not' '
    fresh_tree && printf "void f(void)\n{\n    for (;;)\n        if (a) {\n            while (b)\n                do\n                    g();\n                while (c);\n        }\n}\n" >tree/src/core/a.c &&
    exits_with 1 "$lint" tree >out && grep "f: 4 levels" out'

test_expect 'an else-if ladder is flat' '
    fresh_tree && { printf "void f(void)\n{\n    if (a)\n        g();\n"
    lines 8 "    else if (b) g();"; printf "}\n"; } >tree/src/core/a.c && "$lint" tree >out && ! [ -s out ]'

test_expect 'words in comments and strings are not code' '
    fresh_tree && { printf "void f(void)\n{\n"
    lines 30 "    g(\"if (a && b) {\"); /* if (a || b) { */"; printf "}\n"; } >tree/src/core/a.c &&
    "$lint" tree >out && ! [ -s out ]'

test_expect 'too many decisions in one function fail' '
    fresh_tree && { printf "void f(void)\n{\n"
    lines 13 "    if (a && b) g();"; printf "}\n"; } >tree/src/core/a.c &&
    exits_with 1 "$lint" tree >out && grep "f: 27 decisions" out'

test_expect 'the core may not outgrow 13,000 lines, tests aside' '
    fresh_tree && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do lines 770 "int a;" >tree/src/core/$i.c; done &&
    exits_with 1 "$lint" tree >out && grep "^src/core: 13090 lines without tests" out &&
    mv tree/src/core/17.c tree/src/core/17_test.c && "$lint" tree'

test_done
