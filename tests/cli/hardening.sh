#!/bin/bash
# hardening.sh [FILE...] - programs and libraries as they are shipped: at a random address, their tables read only, no stack
# that can be executed, guarded stacks, checked copies. Without files those of this build.
set -euo pipefail
command -v readelf >/dev/null || { echo "skipped: there is no readelf (package binutils)" && exit 77; }
files=("$@")
[ $# -gt 0 ] || files=("${MUSTERD:?}" "${MUSTER:?}" "${BUILD_DIR:?}"/client/libmuster*.so)
wrong=0

wrong() {
    echo "$1: $2"
    wrong=1
}

for file in "${files[@]}"; do
    [ -e "$file" ] || continue
    symbols=$(readelf -Ws --dyn-syms "$file")
    if [ $# -eq 0 ] && grep -Eq '__(asan|tsan|ubsan|gcov)_' <<<"$symbols"; then
        echo "skipped: this build is for tests, and sanitizers replace the guards"
        exit 77
    fi
    header=$(readelf -h "$file") segments=$(readelf -Wl "$file") dynamic=$(readelf -d "$file")
    grep -q 'Type: *DYN' <<<"$header" || wrong "$file" "is at a fixed address: -fPIE -pie is missing"
    grep -q GNU_RELRO <<<"$segments" || wrong "$file" "its tables stay writable: -z relro is missing"
    grep -Eq 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || wrong "$file" "its tables are filled late: -z now is missing"
    grep -Eq 'GNU_STACK.* RW +0x' <<<"$segments" || wrong "$file" "its stack can be executed"
    ! grep -Eq 'LOAD.* RWE ' <<<"$segments" || wrong "$file" "a part can be written and executed"
    ! grep -Eq 'R(UN)?PATH' <<<"$dynamic" || [ $# -eq 0 ] || wrong "$file" "it looks for libraries in a fixed place"
    grep -q __stack_chk_fail <<<"$symbols" || wrong "$file" "no guarded stack: -fstack-protector-strong is missing"
    grep -Eq '_chk(@|$| )' <<<"$(grep -v __stack_chk_fail <<<"$symbols")" || wrong "$file" "no checked copy: _FORTIFY_SOURCE is missing"
done
[ $wrong -eq 0 ] || exit 1
echo "proved: ${#files[@]} files have the guards that they are shipped with"
