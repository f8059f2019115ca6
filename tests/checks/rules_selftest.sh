#!/bin/bash
# rules_selftest.sh - rules.sh must be able to fail: one fault at a time in a small tree.
set -eu
. "$(dirname "$0")/lib_selftest.sh"
script=$here/rules.sh

clean_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/schema" "$tree/tests/unit" "$tree/tests/proc" "$tree/tests/checks"
    printf -- '- **R1.1** One.\n- **R1.2** Two, see R1.1.\n' >"$tree/schema/PROTOCOL.md"
    printf -- '- **R9.1** Nine.\n' >"$tree/schema/RECOVERY.md"
    printf -- '- **R20.1** Twenty.\n' >"$tree/schema/TASKS.md"
    printf '/* It holds (R1.1). */\nstatic void it_holds(void **state)\n{\n    f(); /* and R20.1 */\n}\n' >"$tree/tests/unit/test_a.c"
    printf '/* Of two lines, with\n * R9.1 in the second. */\nint two(void)\n{\n}\n' >"$tree/tests/unit/b.h"
    printf '#!/bin/bash\n# A story: R1.2.\nexit 0\n' >"$tree/tests/proc/c.sh"
    printf '# R7.7 is an example\n' >"$tree/tests/checks/d.sh"
}

refuses() { # FILE TEXT FINDING - the text is appended to the file, or `sed` changes it
    clean_tree
    case $2 in
    s/*) sed -i "$2" "$tree/$1" ;;
    *) printf '%b' "$2" >>"$tree/$1" ;;
    esac
    must_refuse "$1 with $2" "$3" bash "$script" "$tree"
}

clean_tree
bash "$script" "$tree" || { echo "a tree without fault was refused"; failed=1; }
listed='R1.1 tests/unit/test_a.c:1 it_holds
R1.2 tests/proc/c.sh:2 c.sh
R9.1 tests/unit/b.h:2 two
R20.1 tests/unit/test_a.c:4 it_holds'
[ "$(bash "$script" --list "$tree")" = "$listed" ] || { echo "another list:"; bash "$script" --list "$tree"; failed=1; }

refuses schema/PROTOCOL.md '- **R1.3** Three.\n' '^schema/PROTOCOL.md:3: R1.3 is named by no test'
refuses schema/TASKS.md '- **R1.2** Again.\n' '^schema/PROTOCOL.md:2 schema/TASKS.md:2 defines R1.2'
refuses tests/unit/test_a.c '/* R1.4 */\nint f(void)\n{\n}\n' '^tests/unit/test_a.c:6: R1.4 is no rule'
refuses tests/proc/c.sh 'echo # R1.4\n' '^tests/proc/c.sh:4: R1.4 is no rule'
refuses tests/proc/c.sh 's/: R1.2/: R1.22/' '^schema/PROTOCOL.md:2: R1.2 is named by no test'
refuses tests/unit/test_a.c 's/R20.1/XR20.1/' '^schema/TASKS.md:1: R20.1 is named by no test'
refuses tests/unit/test_a.c 's/.*R20.1.*/    f("R20.1");/' '^schema/TASKS.md:1: R20.1 is named by no test'

sed "s/^missing='/&\nR1.3 a reason/" "$here/rules.sh" >"$tree.sh"
script=$tree.sh
trap 'rm -rf "$tree" "$tree.sh"' EXIT
clean_tree
printf -- '- **R1.3** Three.\n' >>"$tree/schema/PROTOCOL.md"
bash "$script" "$tree" || { echo "a rule on the list was refused"; failed=1; }
refuses schema/PROTOCOL.md '' 'R1.3 is on its list and no rule'
clean_tree
printf -- '- **R1.3** Three.\n' >>"$tree/schema/PROTOCOL.md"
printf '# R1.3\n' >>"$tree/tests/proc/c.sh"
if bash "$script" "$tree" >/dev/null; then echo "a rule that has a test may stay on the list"; failed=1; fi
[ "$failed" = 0 ] && echo "every fault is found"
exit "$failed"
