#!/bin/bash
# slow_packages.sh - the Debian packages: lintian finds nothing, they serve a user on a Debian that has nothing else of
# ours, and a purge leaves no file behind. Two runs make the same bytes.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
skip() { echo "skipped: $*"; exit 77; }
say() { echo "$*"; }
command -v lintian >/dev/null || skip "lintian is not installed (apt-get install lintian)"
[ "$(id -u)" = 0 ] || skip "only root can enter a chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
unshare -m --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

packages=$SOURCE_DIR/build/package/packages
"$SOURCE_DIR/tools/dev" package -y
sha256sum "$packages"/*.deb >"$dir/first"
"$SOURCE_DIR/tools/dev" package -y >/dev/null
sha256sum "$packages"/*.deb | diff "$dir/first" - || { echo "a second run made other bytes"; exit 1; }
lintian --allow-root --fail-on error,warning "$packages"/*.deb || { echo "lintian found the above"; exit 1; }

# A bare Debian, made once; each run works on a layer over it.
. "$SOURCE_DIR/tests/proc/lib_chroot.sh"
chroot_dir=$SOURCE_DIR/build/chroot-bare
chroot_packages=(procps)
chroot_have

cp "$packages"/*.deb "$SOURCE_DIR/client/examples/minimal.c" "$dir"
cat >"$dir/inside.sh" <<'END'
set -eu
unset "${!MUSTER@}" # of the build
cd /given
export DEBIAN_FRONTEND=noninteractive HOME=/root XDG_RUNTIME_DIR=/tmp/runtime
mkdir -p /tmp/runtime
files() { find / -xdev \( -path /proc -o -path /given -o -path /tmp -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
    -o -path /var/log -o -path /dev -o -path /sys -o -path /run -o -path /root \) -prune -o -print | LC_ALL=C sort; }
apt-get update -q >apt.log
apt-get install -q -y --no-install-recommends gcc libc6-dev pkg-config >>apt.log 2>&1
files >before
apt-get install -q -y --no-install-recommends ./*.deb >>apt.log 2>&1 || { tail -30 apt.log; exit 1; }
[ "$(muster --version)" = "muster $(dpkg-query -W -f='${Version}' muster-tools | sed 's/-.*//')" ]

# two programs of two packages find each other
TMPDIR=/tmp muster demo >/tmp/demo.log 2>&1 || { echo "muster demo failed"; cat /tmp/demo.log; exit 1; }
grep 'bit for bit' /tmp/demo.log || { echo "the demo proved nothing"; cat /tmp/demo.log; exit 1; }

# the README's way: a job of four ranks, one is taken away
musterd 2>/tmp/musterd.log &
broker=$!
preempted() { # JOB COMMAND...
    job=$1
    shift
    MUSTER_CHECKPOINT_DIR=/tmp/checkpoints-$job muster run -n 4 --job $job -- "$@" >/tmp/run.log 2>&1 &
    run=$!
    for attempt in $(seq 300); do # until a step is on record
        step=$(muster status $job 2>/dev/null | sed -n 's/^ *step *\([0-9]*\).*/\1/p')
        [ "${step:-0}" -lt 1 ] || break
        sleep 0.1
    done
    [ "${step:-0}" -ge 1 ] || { echo "no step was taken"; cat /tmp/run.log /tmp/musterd.log; exit 1; }
    muster notify 2 --job $job
    wait $run || { echo "the job failed"; cat /tmp/run.log; exit 1; }
    muster why --job $job | grep 'No step is lost'
}
cc -o /tmp/minimal minimal.c $(pkg-config --cflags --libs muster)
preempted mine /tmp/minimal

# python3-muster: Debian's Python, and the library that is installed, not one inside the module
cat >/tmp/loop.py <<'PYTHON'
import time
import muster

print("version", muster.__version__)
save = lambda context: (context.directory / "step").write_text(str(context.step))
restore = lambda context: print("restored", (context.directory / "step").read_text())
with muster.Node(save=save, restore=restore) as node:
    while node.steps_done < 200:
        time.sleep(0.02)
        node.step()
PYTHON
ldd /usr/lib/python3/dist-packages/muster/_native.abi3.so | grep -c '/libmuster[a-z-]*\.so\.1 ' | grep -qx 2 ||
    { echo "the Python module does not use the installed libraries"; exit 1; }
preempted python /usr/bin/python3 /tmp/loop.py
grep 'restored [1-9]' /tmp/run.log || { echo "Python restored nothing"; cat /tmp/run.log; exit 1; }
python3 -m muster doctor | grep '^ok *library .*/usr/lib/python3/' || { echo "python -m muster doctor says nothing of its library"; exit 1; }
kill $broker
wait $broker

apt-get purge -q -y 'muster-*' 'libmuster*' python3-muster >>apt.log 2>&1
apt-get autoremove --purge -q -y >>apt.log 2>&1
files >after
diff before after | grep -v '/etc/ld.so.cache$' | grep '^[<>]' && { echo "the purge left the above behind"; exit 1; }
echo "installed, used and removed"
END
mkdir "$dir/upper" "$dir/work" "$dir/root"
unshare -mp --fork --kill-child --propagation private bash -euc '
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root" 2>/dev/null ||
        { cp -a "$1/." "$2/root"; }
    mount -t proc proc "$2/root/proc"
    mount --rbind /dev "$2/root/dev"
    mount -t tmpfs tmpfs "$2/root/tmp"
    mkdir -p "$2/root/given"
    mount --bind "$2" "$2/root/given"
    cp /etc/resolv.conf "$2/root/etc/resolv.conf" 2>/dev/null || true
    exec chroot "$2/root" bash /given/inside.sh' - "$chroot_dir" "$dir"
