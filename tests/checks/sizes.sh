#!/bin/bash
# sizes.sh [ROOT] - no source file has more lines than a reader can hold, LINES_MAX, and no function in C more than
# FUNCTION_MAX, its braces included.
# Pages have bounds of their own (prose.sh), and the Promela model is one file by nature.
set -euo pipefail
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

LINES_MAX=800
FUNCTION_MAX=70

sources() {
    git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.def' '*.sh' '*.py' tools/dev 2>/dev/null ||
        find . -path ./build -prune -o -name '*.[ch]' -print -o -name '*.def' -print -o -name '*.sh' -print -o -name '*.py' -print
}
mapfile -t files < <(sources)
present=()
for file in "${files[@]}"; do
    [ -f "$file" ] && present+=("$file") # else it is deleted, and git was not told yet
done
long=$(wc -l "${present[@]}" | awk -v max="$LINES_MAX" '$2 != "total" && $1 > max { print $2 ": " $1 " lines" }')
echo "${#present[@]} files, $(grep -c . <<<"$long" || true) of more than $LINES_MAX lines"
functions=$(printf '%s\n' "${present[@]}" | grep '\.[ch]$' | xargs awk -v max="$FUNCTION_MAX" '
    FNR == 1 { begun = 0 }
    /^{/ { begun = FNR }
    /^}/ {
        if (begun > 0 && FNR - begun + 1 > max)
            printf "%s:%d: a function of %d lines, %d at most\n", FILENAME, begun, FNR - begun + 1, max
        begun = 0
    }')
[ -z "$functions" ] || { printf '%s\n' "$functions"; exit 1; }
[ -z "$long" ] || { printf '%s\n' "$long" "split each into files that a sentence without \"and\" describes"; exit 1; }
