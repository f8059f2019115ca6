#!/bin/bash
# tested_selftest.sh - tested.sh must be able to fail: one fault at a time in a small tree.
set -euo pipefail
. "$(dirname "$0")/lib_selftest.sh"

code() { # FILE LINES [TEXT]
    mkdir -p "$tree/$(dirname "$1")"
    { echo '/* what it is */'; [ -z "${3:-}" ] || echo "$3"; printf 'int a;%.0s\n' $(seq "$2"); } >"$tree/$1"
}
clean_tree() {
    rm -rf "$tree"
    mkdir -p "$tree"/{fenced,node,client,schema,tools,tests/checks}
    code broker/core/rounds.c 61
    code broker/loop.c 61 'puts("it stands");'
    code broker/small.c 60
    code tools/cmd_show.c 61
    code tests/unit/broker/test_core_round_more.c 9
    code tests/cli/test_show.c 9 '#include "tools/show.h"'
    code tests/proc/way.sh 9 'grep -q "it stands"'
    echo 'broker/loop.c | tests/proc/way.sh | it stands' >"$tree/tests/checks/tested.txt"
}
refuses() { # WHAT_THE_FINDING_SAYS
    must_refuse "$1" "$1" bash "$here/tested.sh" "$tree"
    clean_tree
}

clean_tree
bash "$here/tested.sh" "$tree" >/dev/null || { echo "a tree without fault was refused"; failed=1; }
code broker/small.c 61
refuses '^broker/small.c: 61 lines of code, and no test has its name'
mv "$tree/tests/unit/broker/test_core_round_more.c" "$tree/tests/unit/broker/test_core_rounded.c"
refuses '^broker/core/rounds.c: .*no test has its name'
code tests/cli/test_show.c 9 '#include "node/show.h"'
refuses '^tools/cmd_show.c: .*no test has its name'
code tests/proc/way.sh 9
refuses 'tested.txt: tests/proc/way.sh has no "it stands"'
code broker/loop.c 61
refuses 'tested.txt: broker/loop.c has no "it stands"'
rm "$tree/tests/proc/way.sh"
refuses 'both files are there'
rm -r "$tree"/broker "$tree"/tools
mkdir "$tree"/broker "$tree"/tools
refuses '^0 product files'
[ "$failed" = 0 ] && echo "each file without a test is found"
exit "$failed"
