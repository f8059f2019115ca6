#!/bin/bash
# static.sh FOLDER - the libraries that a wheel holds, from Debian's sources, into FOLDER/static: position independent
# archives, each with no more than muster uses of it. curl speaks HTTP alone. A second run finds them there.
# FOLDER/static/licences has what their authors ask to be told.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
prefix=$folder/static
sources=(libsodium zeromq3 czmq curl jansson libmicrohttpd msgpack-c xxhash sqlite3)
stamp="$(sha256sum <"${BASH_SOURCE[0]}") $(gcc -dumpfullversion)"
[ "$(cat "$prefix/.complete" 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf "$prefix" "$folder/source"
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include" "$prefix/licences" "$folder/source"
cd "$folder/source"

# apt's own lists have no sources as a rule: these are fetched beside them, so that nothing of the machine changes.
mkdir -p apt/lists/partial apt/cache/archives/partial
apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(REPO_URI) $(RELEASE) main' 'Created-By: Packages' |
    sed -n 's@^Debian|main|@deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] @p' >apt/sources.list
[ -s apt/sources.list ] || { echo "static.sh: apt knows no main archive of Debian; see apt-get indextargets" >&2; exit 1; }
cat >apt/apt.conf <<CONF
Dir::Etc::SourceList "$PWD/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$PWD/apt/lists";
Dir::Cache "$PWD/apt/cache";
APT::Sandbox::User "";
CONF
APT_CONFIG=$PWD/apt/apt.conf apt-get update -q
APT_CONFIG=$PWD/apt/apt.conf apt-get source -q "${sources[@]}" # apt checks what Debian signed

# Libraries are built small, since muster waits for disks and networks; those that sum or encrypt bytes are `fast`.
flags="-Os -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -fstack-protector-strong -D_FORTIFY_SOURCE=2"
flags="$flags -ffile-prefix-map=$PWD/="
export CFLAGS=$flags CXXFLAGS=$flags PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
fast="$flags -O2"
jobs=$(nproc)

licence() { cp "$1"/debian/copyright "$prefix/licences/${1%-[0-9]*}.txt"; }
with_cmake() { # FOLDER OPTION...
    local from=$1
    shift
    cmake -G Ninja -S "$from" -B "$from.build" -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$prefix" \
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=OFF "$@"
    cmake --build "$from.build" --target install -j "$jobs"
    licence "$from"
}
with_configure() { # FOLDER OPTION...
    (
        cd "$1"
        ./configure --prefix="$prefix" --libdir="$prefix/lib" --disable-shared --enable-static --with-pic "${@:2}"
        make -j "$jobs" install
    )
    licence "$1"
}
# What links with NAME: its .pc file says all of it, as nobody asks for --static.
package() { # NAME VERSION LIBS
    printf 'Name: %s\nDescription: of the wheel\nVersion: %s\nLibs: -L%s %s\nCflags: -I%s\n' \
        "$1" "$2" "$prefix/lib" "$3" "$prefix/include" >"$prefix/lib/pkgconfig/$1.pc"
}
version() { # SOURCE - as its folder says
    local found=("$1"-[0-9]*/)
    found=${found[0]%/}
    printf '%s' "${found##*-}"
}
of() { printf '%s-%s' "$1" "$(version "$1")"; }

(cd "$(of libsodium)" && autoreconf -fi)
CFLAGS=$fast with_configure "$(of libsodium)"
package libsodium "$(version libsodium)" -lsodium
with_cmake "$(of zeromq3)" -DBUILD_SHARED=OFF -DBUILD_STATIC=ON -DBUILD_TESTS=OFF -DWITH_PERF_TOOL=OFF -DWITH_DOCS=OFF \
    -DENABLE_CPACK=OFF -DENABLE_WS=OFF -DENABLE_DRAFTS=OFF -DWITH_LIBSODIUM=ON -DWITH_LIBSODIUM_STATIC=ON -DENABLE_CURVE=ON \
    -DWITH_LIBBSD=OFF -DWITH_OPENPGM=OFF -DWITH_NORM=OFF -DWITH_VMCI=OFF -DWITH_TLS=OFF
package libzmq "$(version zeromq3)" '-lzmq -lsodium -lstdc++ -lm -lrt -lpthread'
without=()
for package in uuid systemd lz4 libcurl nss libmicrohttpd; do
    without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
with_cmake "$(of czmq)" -DCZMQ_BUILD_SHARED=OFF -DCZMQ_BUILD_STATIC=ON -DBUILD_TESTING=OFF -DENABLE_DRAFTS=OFF \
    -DCMAKE_EXE_LINKER_FLAGS="-L$prefix/lib" -DCMAKE_C_STANDARD_LIBRARIES='-lzmq -lsodium -lstdc++ -lm -lrt -lpthread' "${without[@]}"
package libczmq "$(version czmq)" '-lczmq -lzmq -lsodium -lstdc++ -lm -lrt -lpthread'
with_cmake "$(of curl)" -DHTTP_ONLY=ON -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DCURL_ENABLE_SSL=OFF -DCURL_ZLIB=OFF \
    -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
    -DENABLE_MANUAL=OFF -DENABLE_UNIX_SOCKETS=OFF
package libcurl "$(version curl)" '-lcurl -lpthread'
with_cmake "$(of jansson)" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
package jansson "$(version jansson)" -ljansson
with_cmake "$(of msgpack-c)" -DMSGPACK_BUILD_EXAMPLES=OFF -DMSGPACK_BUILD_TESTS=OFF -DMSGPACK_ENABLE_SHARED=OFF \
    -DMSGPACK_ENABLE_CXX=OFF
package msgpack "$(version msgpack-c)" -lmsgpackc
with_configure "$(of libmicrohttpd)" --disable-https --disable-doc --disable-examples --disable-curl --disable-postprocessor
package libmicrohttpd "$(version libmicrohttpd)" '-lmicrohttpd -lpthread'

from=$(of xxhash)
gcc $fast -c "$from/xxhash.c" -o xxhash.o
[ "$(uname -m)" != x86_64 ] || gcc $fast -c "$from/xxh_x86dispatch.c" -o xxh_x86dispatch.o
ar rcs "$prefix/lib/libxxhash.a" xxh*.o
cp "$from"/*.h "$prefix/include"
licence "$from"
package libxxhash "$(version xxhash)" -lxxhash

from=$(of sqlite3)
(cd "$from" && ./configure --disable-tcl --disable-readline && make sqlite3.c)
gcc $flags -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_JSON -DSQLITE_OMIT_DEPRECATED \
    -DSQLITE_OMIT_SHARED_CACHE -c "$from/sqlite3.c" -o sqlite3.o
ar rcs "$prefix/lib/libsqlite3.a" sqlite3.o
cp "$from/sqlite3.h" "$prefix/include"
licence "$from"
package sqlite3 "$(version sqlite3)" '-lsqlite3 -lm -lpthread'

rm -rf "$folder/source"
printf '%s\n' "$stamp" >"$prefix/.complete"
