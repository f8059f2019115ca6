#!/bin/bash
# tidy.sh [whole] - clang-tidy over the product's sources, two at a time.
# The analyzer follows each function as far as it will go with `whole` only (checks.slow_tidy); else it ends
# after 20,000 states of one, which takes a sixth of the time and leaves every other check as it is.
# A file found clean is not read again until it, a header it includes, .clang-tidy or the tool changes: its
# key (a hash of all of them) is kept in BUILD_DIR/tidy/.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
tool=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [ -z "$tool" ]; then
    echo "skipped: no clang-tidy (Debian: apt-get install clang-tidy)"
    exit 77
fi
depth=${1:-quick}
kept=$BUILD_DIR/tidy/$depth
states=20000
[ "$depth" != whole ] || states=225000 # its own default
export SOURCE_DIR BUILD_DIR tool depth kept states
tool_version=$("$tool" --version | sha256sum)
export tool_version

tidy_one() {
    local file=$1 keep key
    keep=$kept/${file//\//_}.clean
    key=$( { "${CC:-cc}" -D_GNU_SOURCE -MM -MG -MT x -I. -Iclient/include -I"$BUILD_DIR/include" "$file" |
                 sed -e 's/^x://' -e 's/\\$//' | xargs cat 2>/dev/null || true # -MG tells of files not made yet
             cat .clang-tidy
             echo "$tool_version $states"; } | sha256sum)
    [ "$(cat "$keep" 2>/dev/null)" != "$key" ] || return 0
    if "$tool" --quiet -p "$BUILD_DIR" --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
        --extra-arg="max-nodes=$states" "$SOURCE_DIR/$file" 2>/dev/null; then
        echo "$key" >"$keep"
    else
        echo "$file: not clean"
        return 1
    fi
}
export -f tidy_one

cd "$SOURCE_DIR"
mkdir -p "$kept"
# Only what is compiled here: a source that CMake has not seen yet has no flags to be read with.
find schema fenced broker node client tools -name '*.c' | LC_ALL=C sort |
    while IFS= read -r file; do
        if grep -qF "/$file\"" "$BUILD_DIR/compile_commands.json"; then printf '%s\0' "$file"; fi
    done >"$kept/files"
xargs -0 -r -n1 -P2 bash -c 'tidy_one "$1"' tidy <"$kept/files" || exit 1
echo "$(tr -cd '\0' <"$kept/files" | wc -c) files clean"
