#!/bin/bash
# install.sh - what `cmake --install` leaves behind serves a user: two consumers, one that finds muster with
# find_package and one with pkg-config, from a prefix with a space in it.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
if [ ! -e "$BUILD_DIR/client/libmuster.so" ] || [ ! -e "$BUILD_DIR/client/libmuster-query.so" ]; then
    echo "skipped: the libraries are not built"
    exit 77
fi
work=$BUILD_DIR/tests/install
prefix="$work/the prefix"
here=$SOURCE_DIR/tests/install
flags="${INSTRUMENT_FLAGS:-} -std=c11 -Wall -Wextra -Werror"
rm -rf "$work/the prefix" "$work/cmake" "$work/pkgconfig"
cmake --install "$BUILD_DIR" --prefix "$prefix" >"$work.log" || { cat "$work.log"; exit 1; }

for program in musterd muster; do
    [ ! -e "$BUILD_DIR/tools/$program" ] || "$prefix/bin/$program" --version
done

echo "find_package:"
cmake -S "$here/cmake" -B "$work/cmake" -G Ninja -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$work/cmake"
for program in consumer consumer_static consumer_query; do
    "$work/cmake/$program"
done

echo "pkg-config:"
libdir=$(dirname "$(find "$prefix" -name muster.pc)")
mkdir -p "$work/pkgconfig"
cp "$here/pkgconfig/Makefile" "$here/consumer.c" "$here/consumer_query.c" "$work/pkgconfig/"
PKG_CONFIG_PATH=$libdir make -C "$work/pkgconfig" CC="${CC:-cc}" CFLAGS="$flags"
for program in consumer consumer_query; do
    LD_LIBRARY_PATH=$(dirname "$libdir") "$work/pkgconfig/$program"
done
echo "both ways serve"
