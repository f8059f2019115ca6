#!/bin/bash
# slow_recipes.sh - the image and the manifests of tools/recipes: a linter and a schema validator find nothing, they
# agree with each other, and a bare Debian goes the image's steps, one by one, and serves a job then.
set -euo pipefail
: "${SOURCE_DIR:?}"
skip() { echo "skipped: $*"; exit 77; }
say() { echo "$*"; }
fail() { echo "FAILED: $*"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
recipes=$SOURCE_DIR/tools/recipes

# --- schemas and linter, in an environment of their own
tools=$SOURCE_DIR/build/recipes
if ! cmp -s "$SOURCE_DIR/tests/install/requirements-recipes.txt" "$tools/installed"; then
    python3 -m venv "$tools" || skip "no Python environment can be made here (apt-get install python3-venv)"
    "$tools/bin/pip" install -q --disable-pip-version-check -r "$SOURCE_DIR/tests/install/requirements-recipes.txt" ||
        skip "the package index did not answer"
    cp "$SOURCE_DIR/tests/install/requirements-recipes.txt" "$tools/installed"
fi
validate() { "$tools/bin/kubernetes-validate" --strict -k "$1" "$2" >"$dir/said" 2>&1; }
for version in 1.31 1.37; do
    for manifest in "$recipes"/kubernetes/*.yaml; do
        validate $version "$manifest" || fail "$(cat "$dir/said")"
    done
done
sed 's/replicas: 1/replicas: one/' "$recipes/kubernetes/broker.yaml" >"$dir/wrong.yaml"
! validate 1.37 "$dir/wrong.yaml" || fail "the validator takes anything"
"$tools/bin/hadolint" "$recipes/docker/Dockerfile" || fail "the linter found the above"
sed 's/^FROM .*/FROM debian/' "$recipes/docker/Dockerfile" >"$dir/Dockerfile"
! "$tools/bin/hadolint" "$dir/Dockerfile" >/dev/null || fail "the linter takes anything"

# --- what one names, the other has
number() { sed -n "s/.*$1:* *\"*\([0-9]*\)\"*.*/\1/p" "$2" | head -n 1; }
[ "$(number completions "$recipes/kubernetes/job.yaml")" = "$(number 'MUSTER_WORLD_SIZE, value' "$recipes/kubernetes/job.yaml")" ] ||
    fail "the world is not as large as the job"
[ "$(number runAsUser "$recipes/kubernetes/broker.yaml")" = "$(sed -n 's/^USER \([0-9]*\):.*/\1/p' "$recipes/docker/Dockerfile")" ] ||
    fail "the pod's user is not the image's"
version=$(sed -n 's/^project(muster VERSION \([0-9.]*\).*/\1/p' "$SOURCE_DIR/CMakeLists.txt")
[ "$(grep -h 'image:' "$recipes"/kubernetes/*.yaml | grep -vc "muster:$version")" = 0 ] || fail "an image is of another version than $version"

# --- the steps of the Dockerfile
[ "$(id -u)" = 0 ] || skip "only root can enter a chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
unshare -m --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
"$SOURCE_DIR/tools/dev" package -y >/dev/null
. "$SOURCE_DIR/tests/proc/lib_chroot.sh"
chroot_dir=$SOURCE_DIR/build/chroot-bare
chroot_packages=(procps)
chroot_have

mkdir "$dir/upper" "$dir/work" "$dir/root" "$dir/context"
cp "$SOURCE_DIR"/build/package/packages/*.deb "$dir/context"
python3 - "$recipes/docker/Dockerfile" >"$dir/steps.sh" <<'STEPS'
import json, re, shlex, sys

text = re.sub(r"\\\n", " ", "".join(l for l in open(sys.argv[1]) if not l.startswith("#")))
print("set -eu")
entry = []
for line in filter(None, map(str.strip, text.splitlines())):
    step, _, rest = line.partition(" ")
    if step == "COPY":
        *files, place = rest.split()
        print(f"mkdir -p {place}; (cd /given/context && cp {' '.join(files)} {place})")
    elif step == "RUN":
        print(rest)
    elif step == "ENTRYPOINT" or step == "CMD":
        entry += json.loads(rest)
    elif step == "ENV":
        print("export", rest)
    elif step == "USER":
        user, _, group = rest.partition(":")
        print(f"as=(setpriv --reuid {user} --regid {group} --clear-groups)")
    elif step not in ("FROM", "VOLUME", "EXPOSE"):
        sys.exit(f"unknown step {step}")
print("entry=(" + shlex.join(entry) + ")")
STEPS
cat >"$dir/inside.sh" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
. /given/steps.sh >/given/steps.log 2>&1 || { tail -n 30 /given/steps.log; exit 1; }
# as the pod: a key first, then the broker
! "${as[@]}" "${entry[@]}" 2>/given/refused.log || { echo "a broker without keys listened to other hosts"; exit 1; }
grep -q 'muster key add' /given/refused.log
"${as[@]}" muster key add jobs --job '*' --db /var/lib/muster/muster.db --file /var/lib/muster/jobs.key >/dev/null
"${as[@]}" "${entry[@]}" 2>/tmp/musterd.log &
broker=$!
for attempt in $(seq 100); do ! grep -q 'is ready' /tmp/musterd.log || break; sleep 0.1; done
grep -q 'is ready' /tmp/musterd.log || { cat /tmp/musterd.log; exit 1; }
# as the job: four indexed pods
export MUSTER_JOB=train MUSTER_WORLD_SIZE=4 MUSTER_BROKER=tcp://127.0.0.1:7700 MUSTER_KEY_FILE=/var/lib/muster/jobs.key \
    MUSTER_CHECKPOINT_DIR=/tmp/checkpoints MUSTER_RUNTIME_DIR=/tmp/muster
install -d -o 10001 /tmp/checkpoints
life() {
    pods=()
    for rank in 0 1 2 3; do
        JOB_COMPLETION_INDEX=$rank "${as[@]}" muster demo rank >>/tmp/rank-$rank.log 2>&1 &
        pods+=($!)
    done
}
step() { exec 5<>/dev/tcp/127.0.0.1/7790; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&5; sed -n 's/^muster_job_step{.*} //p' <&5; exec 5>&-; }
life
for attempt in $(seq 300); do [ "$(step)" -lt 100 ] 2>/dev/null || [ -z "$(step)" ] || break; sleep 0.1; done
kill -TERM "${pods[2]}" # the kubelet
for pod in "${pods[@]}"; do
    code=0
    wait "$pod" || code=$?
    [ $code = 42 ] || { echo "a pod exited with $code"; cat /tmp/rank-*.log /tmp/musterd.log; exit 1; }
done
life
for pod in "${pods[@]}"; do wait "$pod" || { echo "a second life failed"; cat /tmp/rank-*.log; exit 1; }; done
grep -q 'demo: resumed at [1-9]' /tmp/rank-3.log
kill $broker
wait $broker
echo "the image's steps made a broker that served a job of four indexed pods, one of which was evicted"
END
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
