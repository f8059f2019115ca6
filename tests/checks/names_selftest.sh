#!/bin/bash
# names_selftest.sh - names.sh must be able to fail: one name at a time in a small tree.
set -euo pipefail
. "$(dirname "$0")/lib_selftest.sh"

clean_tree() { # each folder of the rule with one file: of its own words, of its folder's and of what it exports
    rm -rf "$tree"
    local folder
    for folder in $(sed -n 's/^FOLDERS=(\(.*\))$/\1/p' "$here/names.sh"); do
        mkdir -p "$tree/$folder/rounds"
        printf '%s\n' 'static const char *const words[] = {"run()"};' 'static int (*hook)(int);' 'struct held {' '    int (*run)(void);' '};' \
            '' 'static int late_is(int a)' '{' '    return run(a);' '}' '' 'static int round_of(int a)' '{' '    return a;' '}' '' \
            'static __attribute__((format(printf, 1, 2))) void gate_say(const char *format, ...)' '{' '}' '' \
            'void gates_close(void)' '{' '}' >"$tree/$folder/rounds/too_late.c"
    done
}
refuses() { # FOLDER LINE NAME
    clean_tree
    printf '%b\n' "$2" '{' '}' >>"$tree/$1/rounds/too_late.c"
    must_refuse "$2 in $1" "^$1/rounds/too_late.c:[0-9]*: $3: " bash "$here/names.sh" "$tree"
}

clean_tree
bash "$here/names.sh" "$tree" >/dev/null || { echo "a tree without fault was refused"; failed=1; }
folder=broker
refuses "$folder" 'static void run(void)' run
refuses "$folder" 'static void rundown_late(void)' rundown_late
refuses "$folder" 'static inline bool is_late(int a)' is_late
refuses "$folder" 'static const struct held *held_of(int a)' held_of
refuses "$folder" 'static struct a_type_with_a_long_name_of_its_own *\nhold(struct a_type *a)' hold
refuses "$folder" 'static __attribute__((noreturn)) void end(int a)' end
refuses "$folder" 'static int lates_too(int a)\n{\n}\nstatic int toolate(int a)' toolate
rm -rf "${tree:?}"/*
! bash "$here/names.sh" "$tree" >/dev/null 2>&1 || { echo "a tree without a function was not refused"; failed=1; }
[ "$failed" = 0 ] && echo "every name without a word of its module is refused"
exit "$failed"
