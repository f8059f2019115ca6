# lib_chroot.sh - sourced: a Debian of its own with Slurm, Open MPI and MPICH, so that they need not be on this machine.
# It is made once, under build/, from this machine's own package sources, and only ever entered in a mount namespace
# of the test's: what runs there is this build's programs, bound to the same path. Skips (77) where it cannot be made.
chroot_dir=${SOURCE_DIR:?}/build/chroot
chroot_packages=(slurmd slurmctld slurm-client munge openmpi-bin mpich
    libzmq5 libczmq4 libpq5 libsqlite3-0 libjansson4 libcurl3-gnutls libmsgpackc2 libxxhash0 libsodium23 libmicrohttpd12
    libasan8 libubsan1 libtsan2 procps python3-cffi-backend python3-numpy)

skip() {
    say "skipped: $*"
    exit 77
}

chroot_make() { # under the lock
    local mirror codename

    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n "s/^$codename main //p" | head -n 1)
    [ -n "$mirror" ] || skip "apt has no main archive of Debian's $codename among its sources"
    rm -rf "$chroot_dir"
    mkdir -p "$chroot_dir/usr/sbin"
    (
        unset TMPDIR TMP TEMP # no such directory is in there
        debootstrap --variant=minbase "$codename" "$chroot_dir" "$mirror" &&
            printf '#!/bin/sh\nexit 101\n' >"$chroot_dir/usr/sbin/policy-rc.d" &&
            chmod 755 "$chroot_dir/usr/sbin/policy-rc.d" &&
            DEBIAN_FRONTEND=noninteractive chroot "$chroot_dir" \
                apt-get install -q -y --no-install-recommends "${chroot_packages[@]}" &&
            rm -rf "$chroot_dir"/var/cache/apt/archives/*.deb &&
            printf '%s\n' "${chroot_packages[*]}" >"$chroot_dir/.complete"
    ) >"$chroot_dir.log" 2>&1 </dev/null
}

chroot_is_there() { [ "$(cat "$chroot_dir/.complete" 2>/dev/null)" = "${chroot_packages[*]}" ]; }

# chroot_have - makes it if need be. For one of another kind set chroot_dir and chroot_packages before.
chroot_have() {
    [ "$(id -u)" = 0 ] || skip "only root can enter a chroot"
    command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
    unshare -m --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
    (
        flock 9
        chroot_is_there || chroot_make ||
            skip "Debian's packages could not be installed in $chroot_dir, see $chroot_dir.log"
    ) 9>"$chroot_dir.lock" || exit $?
}

# chroot_enter - has it, and starts what holds its mount namespace; `inside COMMAND...` runs there. With
# chroot_layer=1 what is written there goes with the test.
chroot_enter() {
    chroot_have
    BUILD_DIR=$BUILD_DIR dir=$dir root=$chroot_dir layer=${chroot_layer:-} unshare -mnp --propagation private --fork --kill-child bash -ec '
        ip link set lo up
        ip addr add 192.0.2.1/32 dev lo # with 127.0.0.1 alone getaddrinfo finds no address family
        if [ -n "$layer" ]; then
            mkdir "$dir/upper" "$dir/work"
            mount -t overlay overlay -o "lowerdir=$root,upperdir=$dir/upper,workdir=$dir/work" "$root"
        fi
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        for path in dev/shm run tmp; do
            mount -t tmpfs tmpfs "$root/$path"
        done
        mount -t sysfs sysfs "$root/sys"
        echo "127.0.0.1 localhost $(hostname)" >"$root/run/hosts"
        touch "$root/etc/hosts"
        mount --bind "$root/run/hosts" "$root/etc/hosts"
        for path in "$BUILD_DIR" "$dir"; do
            mkdir -p "$root$path"
            mount --bind "$path" "$root$path"
        done
        : >"$dir/mounted"
        sleep infinity & wait' >"$dir/holder.log" 2>&1 & # bash as process 1 there: it takes orphans
    holder=$!
    started+=("$holder") # all that runs there ends with it
    await "the chroot's mounts" holder_has_mounted
    holder=$(pgrep -P "$holder")
}

holder_has_mounted() {
    kill -0 "$holder" 2>/dev/null || fail "the chroot's mounts: $(cat "$dir/holder.log")"
    [ -f "$dir/mounted" ]
}

# inside COMMAND... - there, with loopback as the only network; sockets in $dir are the same inside and outside.
inside() { nsenter -t "$holder" -m -n -p chroot "$chroot_dir" "$@"; }

# packages_take - this tree's packages in $dir/packages, but for those of developers and of Python, and $dir/minimal, which was built with that.
packages_take() {
    local package libraries

    "$SOURCE_DIR/tools/dev" package -y >"$dir/package.log" 2>&1 || fail "there are no packages"
    mkdir "$dir/packages"
    cp "$SOURCE_DIR"/build/package/packages/*.deb "$dir/packages"
    for package in libmuster-dev libmuster1; do dpkg-deb -x "$dir/packages/$package"_*.deb "$dir/dev"; done
    libraries=$(dirname "$(find "$dir/dev" -name libmuster.so)")
    "${CC:-cc}" -o "$dir/minimal" "$SOURCE_DIR/client/examples/minimal.c" -I"$dir/dev/usr/include" -L"$libraries" -lmuster
    rm "$dir"/packages/libmuster-dev_* "$dir"/packages/python3-muster_*
}
