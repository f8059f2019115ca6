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
        find schema broker node client tools tests -name '*.[ch]' -print0
}
mapfile -d '' -t files < <(sources)
present=()
for file in "${files[@]}"; do
    [ -f "$file" ] && present+=("$file")
done
if [ "${1:-}" = --fix ]; then
    exec "$tool" -i "${present[@]}"
fi
wrong=0
for file in "${present[@]}"; do
    if ! "$tool" "$file" | cmp -s - "$file"; then
        echo "$file: not as clang-format writes it"
        wrong=$((wrong + 1))
    fi
done
echo "${#present[@]} files, $wrong to format"
[ "$wrong" = 0 ] || { echo "mend with: ./tools/dev format"; exit 1; }
