#!/bin/bash
# names.sh [ROOT] - a static function's name begins with a word of its module: so a stack trace, grep and ctags find it.
#
# Words of a module are those of its file's name, its folder's name, and the first word of each function that the file
# gives to others. `round_decide.c` of the folder `rounds` may begin with `round` or `decide`; an s at the end counts
# for nothing. The rule holds for FOLDERS and what is below them: all but the examples and what cffi compiles.
set -euo pipefail
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

FOLDERS=(broker client/manager client/node client/query client/tasks client/training fenced node schema tools)

mapfile -t files < <(find "${FOLDERS[@]}" -name '*.c' | LC_ALL=C sort)
awk '
function bare(word) { sub(/s$/, "", word); return word }
function first_word(name) { sub(/_.*/, "", name); return bare(name) }
# The function that a line at the margin begins, or "": a variable, a struct, a macro or the end of one.
function function_of(text) {
    gsub(/__attribute__\(\(.*\)\) |[A-Z][A-Z_0-9]*\([^)]*\) /, "", text)
    if (text !~ /^[a-z]/ || text ~ /^typedef / || !match(text, /[A-Za-z_0-9]+\(/)) return ""
    if (index(substr(text, 1, RSTART), "=") > 0) return ""
    return substr(text, RSTART, RLENGTH - 1)
}
function look(name, is_static) {
    if (name == "") return
    if (!is_static) words[file, first_word(name)]
    else if (!((file, name) in seen)) { seen[file, name]; count++; order[count] = name; at[count] = file; lines[count] = FNR }
}
FNR == 1 {
    file = FILENAME
    parts = split(file, path, "/")
    stem = path[parts]; sub(/\.c$/, "", stem)
    words[file, bare(path[parts - 1])]
    pieces = split(stem, piece, "_")
    for (i = 1; i <= pieces; i++) words[file, bare(piece[i])]
    broken = ""
}
broken != "" { $0 = broken " " $0; broken = "" }
/^static [^(=;{]*$/ { broken = $0; next } # its name is on the next line
/^[a-z]/ { look(function_of($0), $0 ~ /^static /) }
END {
    for (i = 1; i <= count; i++)
        if (!((at[i], first_word(order[i])) in words)) {
            printf "%s:%d: %s: a static function begins with a word of its module\n", at[i], lines[i], order[i]
            bad++
        }
    printf "%d static functions, %d without a word of their module\n", count, bad
    exit bad > 0 || count == 0
}' "${files[@]}"
