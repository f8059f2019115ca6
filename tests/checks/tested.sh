#!/bin/bash
# tested.sh [ROOT] - each product file of logic has a test that is found by the file's name.
#
# The test of TOP/FOLDER/NAME.c has NAME in its own name, in whole words: test_NAME.c, test_core_NAME_more.c. A verb's
# test may omit `cmd_`. It is in tests/unit/TOP, or includes the file or a header of its folder.
# A file that is tested otherwise has a line in tested.txt: FILE | TEST | TEXT. The text stands in both: a function that
# the test calls, or words that it expects.
#
# Files of LINES_MIN lines of code or fewer need none.
set -euo pipefail
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

LINES_MIN=60

find broker fenced node client schema tools tests -name '*.c' ! -path 'client/examples/*' ! -path 'client/python/*' |
    LC_ALL=C sort | awk -v least="$LINES_MIN" -v table=tests/checks/tested.txt '
function wrong(text) { print text; bad = 1 }
function trimmed(text) { gsub(/^ +| +$/, "", text); return text }
function read_file(path,   line) { # once; its lines of code are counted
    if (path in text_of) return text_of[path] != ""
    text_of[path] = ""
    while ((getline line < path) > 0) {
        text_of[path] = text_of[path] line "\n"
        if (line !~ /^[ \t]*($|\/\*|\*|#)/) lines_of[path]++
    }
    close(path)
    return text_of[path] != ""
}
function words(path) { # _of_its_name_, each in the singular
    sub(/.*\//, "", path); sub(/\.c$/, "", path); sub(/^(test|fuzz|cmd)_/, "", path)
    gsub(/s_/, "_", path); sub(/s$/, "", path)
    return "_" path "_"
}
function is_of(test, file,   folder, top) {
    folder = file; sub(/\/[^\/]*$/, "", folder)
    top = file; sub(/\/.*/, "", top)
    if (index(test, "tests/unit/" top "/") == 1) return 1
    read_file(test)
    return index(text_of[test], "#include \"" folder "/") > 0
}
function has_test(file,   i) {
    if (file in told) return 1
    for (i = 1; i <= tests; i++)
        if (index(words(test[i]), words(file)) && is_of(test[i], file)) return 1
    return 0
}
/^tests\/.*\/(test|fuzz)_[^\/]*$/ { test[++tests] = $0 }
!/^tests\// { product[++products] = $0 }
END {
    while ((getline line < table) > 0) {
        if (line ~ /^#/ || line == "") continue
        file = trimmed(substr(line, 1, index(line, "|") - 1)); line = substr(line, index(line, "|") + 1)
        by = trimmed(substr(line, 1, index(line, "|") - 1)); what = trimmed(substr(line, index(line, "|") + 1))
        if (!read_file(file) || !read_file(by) || what == "")
            wrong(table ": " file " | " by ": a line is FILE | TEST | TEXT, and both files are there")
        else if (!index(text_of[file], what)) wrong(table ": " file " has no \"" what "\"")
        else if (!index(text_of[by], what)) wrong(table ": " by " has no \"" what "\"")
        told[file]
    }
    for (p = 1; p <= products; p++) {
        file = product[p]
        read_file(file)
        if (lines_of[file] <= least) continue
        logic++
        if (!has_test(file))
            wrong(file ": " lines_of[file] " lines of code, and no test has its name: write one, or tell it in " table)
    }
    printf "%d product files of more than %d lines of code, each with a test\n", logic, least
    exit bad || !logic
}'
