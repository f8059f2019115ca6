#!/bin/sh
# symbols.sh - what the objects define and the libraries show:
# no name is defined by two of our objects (the tests link all of them), libmuster shows muster_* only and
# needs neither czmq nor sqlite, holds all of ours that it calls (with sanitizers the linker does not ask), and can be
# unloaded (no -z nodlopen).
set -eu
: "${BUILD_DIR:?}"
failed=0

archive=$BUILD_DIR/tests/libmuster_everything.a
twins=$(nm -g --defined-only "$archive" 2>/dev/null |
    awk '/^[^ ]*:$/ { member = $1 } NF == 3 && $2 ~ /[TDBRC]/ && $3 !~ /^(__|_GLOBAL|fuzzer)/ {
             seen[$3]++; where[$3] = where[$3] " " member }
         END { for (name in seen) if (seen[name] > 1) print name " is defined in" where[name] }')
if [ -n "$twins" ]; then
    printf '%s\n' "$twins"
    failed=1
fi

ours=$(mktemp)
trap 'rm -f "$ours"' EXIT
nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$ours"

for library in "$BUILD_DIR/client/libmuster.so" "$BUILD_DIR/client/libmuster-query.so"; do
    [ -e "$library" ] || continue
    others=$(nm -D --defined-only "$library" | awk '$3 !~ /^(muster_|MUSTER_)/ { print $3 }')
    if [ -n "$others" ]; then
        printf '%s shows what is not muster_*:\n%s\n' "$library" "$others"
        failed=1
    fi
    missing=$(nm -D --undefined-only "$library" | awk '{ print $2 }' | LC_ALL=C sort -u | LC_ALL=C comm -12 - "$ours")
    if [ -n "$missing" ]; then
        printf '%s calls what is ours and not in it:\n%s\n' "$library" "$missing"
        failed=1
    fi
    needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    case $library in
    *-query.so) forbidden='czmq' ;;
    *) forbidden='czmq|sqlite' ;;
    esac
    if printf '%s\n' "$needed" | grep -E "$forbidden"; then
        echo "$library must not need it"
        failed=1
    fi
    if readelf -d "$library" | grep -E 'FLAGS.*NOOPEN'; then
        echo "$library was linked with -z nodlopen"
        failed=1
    fi
done
[ "$failed" = 0 ] && echo "no name twice, nothing shown but muster_*, nothing of ours missing"
exit "$failed"
