#!/bin/bash
# Two builds of one source, in folders of other names and lengths and at other times, install the same bytes; and what they
# install has the guards that hardening.sh asks for.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
work=$BUILD_DIR/tests/reproducible
rm -rf "$work"
mkdir -p "$work"

copy() { # FOLDER
    mkdir -p "$1"
    (cd "$SOURCE_DIR" && tar cf - --exclude=./build --exclude=./.git .) | tar xf - -C "$1"
}

build() { # FOLDER
    (cd "$1" && CMAKE_C_COMPILER_LAUNCHER='' cmake -S . -B made -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DBUILD_TESTING=OFF -DMUSTER_HARDENING=ON -DCMAKE_INSTALL_PREFIX=/usr >/dev/null &&
        cmake --build made && DESTDIR=$1/root cmake --install made) >"$1.log" 2>&1 || { tail -n 30 "$1.log" && exit 1; }
    (cd "$1/root" && find . -type f | LC_ALL=C sort | xargs -d '\n' sha256sum) >"$1.sums"
}

copy "$work/one" # both at once: they are of one moment
copy "$work/another folder with a longer name"
build "$work/one"
build "$work/another folder with a longer name"
count=$(wc -l <"$work/one.sums")
[ "$count" -ge 20 ] || { echo "only $count files were installed" && exit 1; }
diff "$work/one.sums" "$work/another folder with a longer name.sums" || { echo "these files differ" && exit 1; }
mapfile -t binaries < <(find "$work/one/root/usr/bin" "$work"/one/root/usr/lib* -type f \( -name musterd -o -name muster -o -name 'libmuster*.so*' \))
bash "$SOURCE_DIR/tests/cli/hardening.sh" "${binaries[@]}"
rm -rf "$work"
echo "proved: two builds in other folders install $count files of the same bytes"
