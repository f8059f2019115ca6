#!/bin/sh
# headers.sh - each public header compiles alone, as C11 and as C++, with warnings as errors.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
cc=${CC:-cc}
cxx=$(command -v g++ || command -v clang++ || true)
failed=0
count=0
for header in "$SOURCE_DIR"/client/include/muster/*.h "$BUILD_DIR/include/muster/status.h"; do
    [ -f "$header" ] || continue
    name=$(basename "$header")
    count=$((count + 1))
    for language in c c++; do
        case $language in
        c) set -- "$cc" -std=c11 -Wstrict-prototypes ;;
        c++) [ -n "$cxx" ] || continue
             set -- "$cxx" -std=c++11 ;;
        esac
        # Twice: the guard works.
        printf '#include <muster/%s>\n#include <muster/%s>\n' "$name" "$name" |
            "$@" -x "$language" -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror \
                -I "$SOURCE_DIR/client/include" -I "$BUILD_DIR/include" - ||
            { echo "muster/$name does not compile alone as $language"; failed=1; }
    done
done
if [ -n "$cxx" ]; then
    "$cxx" -std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror \
        -I "$SOURCE_DIR/client/include" -I "$BUILD_DIR/include" "$SOURCE_DIR/tests/install/consumer.cpp" ||
        { echo "a program in C++17 does not compile"; failed=1; }
fi
[ -n "$cxx" ] || echo "no C++ compiler: compiled as C only"
echo "$count public headers"
exit "$failed"
