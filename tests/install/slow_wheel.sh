#!/bin/bash
# slow_wheel.sh - A1: the wheel serves an empty environment of a bare Debian, without a compiler, and without any library
# of ours. Broker, tool and package come from it alone. The examples end with the bits of an uninterrupted run.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
skip() { echo "skipped: $*"; exit 77; }
say() { echo "$*"; }
[ "$(id -u)" = 0 ] || skip "only root can enter a chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
unshare -m --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

wheel=$("$SOURCE_DIR/tools/dev" wheel -y)
PYTHON=$SOURCE_DIR/build/python/bin/python
say "$(stat -c %s "$wheel") bytes: ${wheel##*/}"
. "$SOURCE_DIR/tests/install/lib_wheel.sh"
wheel_libraries "$wheel"
wheel_exports "$wheel"
wheel_holds "$wheel" "$SOURCE_DIR/build/wheel/static/bin/curl-config"
wheel_pythons "$wheel"
"$PYTHON" -m zipfile -l "$wheel" >"$dir/names"
for name in muster/_native.abi3.so muster/py.typed data/scripts/muster data/scripts/musterd muster/licences/zeromq3.txt; do
    grep -q "$name" "$dir/names" || { say "$wheel has no $name"; exit 1; }
done

# What the package index gives is fetched out here, where this machine's own way to it is set up.
"$PYTHON" -m pip download --disable-pip-version-check -q -d "$dir/index" "$wheel" numpy

# A bare Debian, made once; each run works on a layer over it.
. "$SOURCE_DIR/tests/proc/lib_chroot.sh"
chroot_dir=$SOURCE_DIR/build/chroot-python
chroot_packages=(python3-venv)
(
    flock 9
    chroot_is_there || chroot_make || skip "Debian could not be installed in $chroot_dir, see $chroot_dir.log"
) 9>"$chroot_dir.lock" || exit $?

# PyTorch is too large a download for a test: it is lent, where `./tools/dev python --slow` has installed it.
lent=$SOURCE_DIR/build/python/lib/python3.11/site-packages
cp "$SOURCE_DIR"/client/python/examples/{numpy_sgd,torch_ddp}.py "$dir"
cat >"$dir/inside.sh" <<'END_INSIDE'
set -eu
export HOME=/root LC_ALL=C.UTF-8 XDG_RUNTIME_DIR=/tmp/runtime
mkdir -p /tmp/runtime
unset TMPDIR TMP TEMP "${!PIP_@}" # of the machine around us
cd /tmp
for program in cc gcc c++ cmake pkg-config; do
    ! command -v $program >/dev/null || { echo "$program is installed: this is no bare Debian"; exit 1; }
done
seconds_max=300 # of the installation and PyTorch's example, which is preempted and ends, without PyTorch's download
began=$SECONDS
python3 -m venv fresh
. fresh/bin/activate
pip install -q --disable-pip-version-check --no-index --find-links /given/index libmuster numpy
installed=$((SECONDS - began))
echo "installed in $installed s: $(du -sh fresh/lib/python3*/site-packages/muster | cut -f 1)"
command -v muster musterd | grep -c '^/tmp/fresh/bin/' | grep -qx 2
muster --version && musterd --version
for file in fresh/bin/muster fresh/bin/musterd fresh/lib/python3*/site-packages/muster/_native.abi3.so; do
    ! ldd "$file" | grep -vE 'linux-vdso|ld-linux|/lib(c|m|stdc\+\+|gcc_s|pthread|rt|dl)\.so' ||
        { echo "$file names the above, which a Debian may lack"; exit 1; }
done
musterd 2>musterd.log &
broker=$!
trap 'kill $broker' EXIT
python -m muster doctor || true # tells of what a rank outside of a job lacks

weights() { sed -n 's/.*steps, weights //p' "$1"/?.log; }
preempted() { # EXAMPLE - its bits, with and without a notice in its middle
    local job=${1%.py} step='' attempt run_began
    MUSTER_CHECKPOINT_DIR=/tmp/whole-$job muster run -n 2 --job whole-$job --output whole-$job -- python /given/$1 200 0 >whole.log 2>&1 ||
        { echo "an uninterrupted $1 failed"; cat whole.log whole-$job/*; exit 1; }
    run_began=$SECONDS
    MUSTER_CHECKPOINT_DIR=/tmp/$job muster run -n 2 --job $job --output $job-logs -- python /given/$1 200 0.05 >run.log 2>&1 &
    local run=$!
    for attempt in $(seq 600); do # until steps are on record
        step=$(muster status $job 2>/dev/null | sed -n 's/^ *step *\([0-9]*\).*/\1/p')
        [ "${step:-0}" -lt 10 ] || break
        sleep 0.1
    done
    [ "${step:-0}" -ge 10 ] || { echo "no step was taken"; cat run.log musterd.log $job-logs/*; exit 1; }
    muster notify --job $job 1
    wait $run || { echo "the job failed"; cat run.log $job-logs/*; exit 1; }
    took=$((installed + SECONDS - run_began))
    muster why --job $job | grep 'No step is lost'
    grep -q '2 launches, 1 preemption' run.log || { cat run.log; exit 1; }
    [ "$(weights $job-logs)" = "$(weights whole-$job)" ] || { echo "$1 ended with other bits"; exit 1; }
    [ -n "$(weights whole-$job)" ] || { echo "$1 told no weights"; exit 1; }
    echo "$1: preempted, resumed, the same bits; $took s with the installation"
}
preempted numpy_sgd.py
if [ -d /lent/torch ]; then
    echo /lent >>"$(echo fresh/lib/python3*/site-packages)/lent.pth"
    preempted torch_ddp.py
    [ $took -lt $seconds_max ] || { echo "that took more than $seconds_max s"; exit 1; }
else
    echo 'skipped: PyTorch is not in build/python, so its example was not shown; `./tools/dev python --slow` installs it'
    exit 77
fi
END_INSIDE
mkdir "$dir/upper" "$dir/work" "$dir/root"
unshare -mp --fork --kill-child --propagation private bash -euc '
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root" 2>/dev/null ||
        { cp -a "$1/." "$2/root"; }
    mount -t proc proc "$2/root/proc"
    mount --rbind /dev "$2/root/dev"
    mount -t tmpfs tmpfs "$2/root/tmp"
    mkdir -p "$2/root/given" "$2/root/lent"
    mount --bind "$2" "$2/root/given"
    [ ! -d "$3/torch" ] || mount --bind "$3" "$2/root/lent"
    exec chroot "$2/root" bash /given/inside.sh' - "$chroot_dir" "$dir" "$lent"
