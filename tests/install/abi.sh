#!/bin/bash
# abi.sh - programs that were built against the last release run with this library: abidiff compares it with abi/*.xz.
# Additions are welcome. A change that breaks a program needs a higher SOVERSION (client/CMakeLists.txt), and then a new
# baseline, as a release does: MUSTER_ABI_UPDATE=1 writes it.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
command -v abidiff >/dev/null || { echo "there is no abidiff here (apt-get install abigail-tools)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
headers=$SOURCE_DIR/client/include
public=(--headers-dir2 "$headers" --drop-private-types)

soname() { objdump -p "$1" | sed -n 's/.*SONAME *//p'; }
breaks() { # BASELINE LIBRARY - abidiff's bits: 1 and 2 it failed, 4 there is a change, 8 it breaks programs
    local code=0
    abidiff "${public[@]}" "$1" "$2" >"$dir/said" 2>&1 || code=$?
    [ $((code & 3)) = 0 ] || { echo "abidiff failed:"; cat "$dir/said"; exit 1; }
    [ $((code & 8)) != 0 ]
}

for name in libmuster libmuster-query; do
    baseline=$SOURCE_DIR/tests/install/abi/$name.abi.xz
    library=$(readlink -f "$BUILD_DIR/client/$name.so")
    if [ -n "${MUSTER_ABI_UPDATE:-}" ]; then
        abidw --exported-interfaces-only --no-show-locs --headers-dir "$headers" --drop-private-types --no-corpus-path \
            --no-comp-dir-path --out-file "$dir/$name.abi" "$library"
        xz -9e <"$dir/$name.abi" >"$baseline"
        continue
    fi
    xz -dc "$baseline" >"$dir/$name.abi"
    before=$(sed -n "s/.*soname='\([^']*\)'.*/\1/p" "$dir/$name.abi" | head -n 1)
    [ "$before" = "$(soname "$library")" ] ||
        { echo "$name is $(soname "$library") now, and its baseline is of $before: write a new one"; exit 1; }
    if breaks "$dir/$name.abi" "$library"; then
        echo "this $name breaks programs of the last release: raise SOVERSION, or keep what they use"
        cat "$dir/said"
        exit 1
    fi
done
[ -z "${MUSTER_ABI_UPDATE:-}" ] || exit 0

# the comparison sees a call that is gone
sed "s/'muster_node_open\([@']\)/'muster_node_gone\1/g" "$dir/libmuster.abi" >"$dir/other.abi"
breaks "$dir/other.abi" "$(readlink -f "$BUILD_DIR/client/libmuster.so")" || { echo "a removed call was not seen"; exit 1; }
echo "programs that were built against the last release run with this library"
