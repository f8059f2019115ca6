#!/bin/bash
# format.sh [--fix] - clang-format 14 over every .c and .h that git knows or would add.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ]; then
    echo "skipped: no clang-format (Debian: apt-get install clang-format)"
    exit 77
fi
sources() {
    git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' 2>/dev/null ||
        find schema fenced broker node client tools tests -name '*.[ch]' -print0
}
mapfile -d '' -t files < <(sources)
present=()
for file in "${files[@]}"; do
    [ -f "$file" ] && present+=("$file")
done
if [ "${1:-}" = --fix ]; then
    exec "$tool" -i "${present[@]}"
fi
# One process for all: most of the time of one a file was its start.
status=0
said=$("$tool" --dry-run --Werror "${present[@]}" 2>&1) || status=$?
wrong=$(sed -n 's/:[0-9]*:[0-9]*: error: code should be clang-formatted.*//p' <<<"$said" | sort -u)
if [ $status != 0 ] && [ -z "$wrong" ]; then
    printf '%s\n' "$said"
    exit 1
fi
echo "${#present[@]} files, $(grep -c . <<<"$wrong" || true) to format"
[ -z "$wrong" ] || { sed 's/$/: not as clang-format writes it/' <<<"$wrong"; echo "mend with: ./tools/dev format"; exit 1; }
