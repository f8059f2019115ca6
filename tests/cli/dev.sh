#!/bin/bash
# dev.sh - what tools/dev says and hides: against a cmake, a ctest and a dpkg-query of this script's.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }

mkdir -p "$dir/tools" "$dir/bin" "$dir/tests/python"
touch "$dir"/tests/python/{test_one.py,test_slow_two.py,requirements.txt,requirements-slow.txt}
cp "$SOURCE_DIR/tools/dev" "$dir/tools/dev"
cp "$SOURCE_DIR/CMakePresets.json" "$dir/"
for program in bash cat awk sed tr grep head tail mkdir dirname readlink nproc env touch rm wc printf cmp chmod; do
    ln -s "$(command -v $program)" "$dir/bin/$program"
done
stub() { { echo '#!/bin/bash'; cat; } >"$dir/bin/$1" && chmod +x "$dir/bin/$1"; }
stub id <<<'echo 1000'
stub apt-get <<<'exit 0'
stub dpkg-query <<<'echo "${INSTALLED:-installed}"'
stub cmake <<'END'
echo "$*" >>called
case $* in
--preset*) mkdir -p "build/$2" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$2/CMakeCache.txt" && echo >"build/$2/build.ninja" ;;
*)
    for i in {1..700}; do echo "[$i/700] Building C object part_$i.o"; done
    [ -z "${BREAKS:-}" ] || { echo 'FAILED: part_9.o' && echo 'part.c:1: error: it is broken' && exit 1; }
    ;;
esac
END
stub python3 <<'END'
echo "$*" >>called
[ "$1" = -m ] || exit 0 # else it makes an environment, whose pip installs
mkdir -p "$3/bin"
printf '%s\n' '#!/bin/bash' 'echo "$*" >>called' '[ -z "${OFFLINE:-}" ]' >"$3/bin/python"
chmod +x "$3/bin/python"
END
stub date <<<'cat clock'
echo 1000 >"$dir/clock"
stub ninja <<<'for i in {1..700}; do echo step; done'
stub ctest <<'END'
mkdir -p "$2/Testing/Temporary"
[[ -z ${PYTHON_TAKES:-} || $* != *"-L python"* ]] || echo $(($(cat clock) + PYTHON_TAKES)) >clock
printf '%s\n' '1/4 Test: unit.a' 'Test Passed.' '2/4 Test: unit.b' 'Test Passed.' '3/4 Test: proc.c' 'skipped: no network' >"$2/Testing/Temporary/LastTest.log"
[ -z "${BREAKS_IN:-}" ] || { [[ $2 != *"$BREAKS_IN" ]] || { echo 'Test Failed.' >>"$2/Testing/Temporary/LastTest.log"; exit 8; }; }
END
dev() { (cd "$dir" && CI=1 PATH=$dir/bin bash tools/dev "$@"); }

# --- no sudo: the whole command that root has to run
if INSTALLED=no dev build release 2>"$dir/out"; then fail "packages were missing, and nothing was said"; fi
grep -q 'as root run: apt-get update && apt-get install -y --no-install-recommends build-essential' "$dir/out" || fail "no command for root:" "$dir/out"

# --- a build: what it will cost, what is installed, and none of its lines
dev build release 2>"$dir/out" || fail "build failed:" "$dir/out"
grep -qE '700 steps: the first time about [0-9]+ min on [0-9]+ cores, and [0-9]+ MB' "$dir/out" || fail "no word of the cost:" "$dir/out"
grep -qx -- "--build $dir/build/release --target programs" "$dir/called" || fail "not what is installed was built:" "$dir/called"
[ "$(wc -l <"$dir/out")" -le 5 ] || fail "a build says too much:" "$dir/out"
dev build release --target all 2>"$dir/out" || fail "build failed:" "$dir/out"
grep -qx -- "--build $dir/build/release --target all" "$dir/called" || fail "not all was built:" "$dir/called"

ninja -C "$BUILD_DIR" -t inputs programs >"$dir/inputs"
grep -q '^tools/.*\.o$' "$dir/inputs" || fail "\"programs\" is not what is installed:" "$dir/inputs"
! grep '^tests/' "$dir/inputs" || fail "what is installed needs tests"

# --- one that fails shows why, and where the rest is
if BREAKS=1 dev build dev 2>"$dir/out"; then fail "a build that failed was taken for good"; fi
grep -q 'it is broken' "$dir/out" || fail "the error is not shown:" "$dir/out"
! grep -q part_500 "$dir/out" || fail "what was built is shown, too"
log=$(sed -n 's/.*the whole output is in //p' "$dir/out")
grep -q part_500 "$log" || fail "the whole output is not in $log"

# --- the last lines of a test run
dev test 2>"$dir/out" || fail "test failed:" "$dir/out"
tail -n 5 "$dir/out" >"$dir/end"
head -n 1 "$dir/end" | grep -q 'what was run, in 0 min:' || fail "the end does not say what was run:" "$dir/end"
grep -qx '  dev (gcc, Debug, ASan + UBSan, fail points): 2 tests ran, 0 failed, 1 skipped' "$dir/end" || fail "not the numbers of dev:" "$dir/end"
grep -q '  not run: .*--nightly' "$dir/end" || fail "the end does not say what was not run:" "$dir/end"
grep -q -- '--preset release -DMUSTER_PYTHON=ON' "$dir/called" || fail "the Python package was not built:" "$dir/called"

# --- without a package index the Python tests are skipped, each by its name, and counted
rm -r "$dir/build/python"
# A12, as below: tests are skipped and counted without the package index, and what takes more than six minutes is named.
OFFLINE=1 dev test 2>"$dir/out" || fail "test failed without a package index:" "$dir/out"
for name in one slow_two; do
    grep -q "^  python.$name: skipped" "$dir/out" || fail "python.$name was skipped silently:" "$dir/out"
done
grep -q '^  python: 0 tests ran, 0 failed, 2 skipped' "$dir/out" || fail "the skipped are not counted:" "$dir/out"

# --- how long the Python tests took, and a warning of more than six minutes
PYTHON_TAKES=360 dev test 2>"$dir/out" || fail "test failed:" "$dir/out"
grep -q '^  release .* 2 tests ran, .*; Python build and tests took 360 s$' "$dir/out" || fail "not the time of the Python tests:" "$dir/out"
for command in test python; do
    PYTHON_TAKES=361 dev $command 2>"$dir/out" || fail "$command fails where Python's tests are slow:" "$dir/out"
    grep -q '^  release .*; Python build and tests took 361 s. Warning: that is more than 360 s; ' "$dir/out" ||
        fail "$command does not warn of slow Python tests:" "$dir/out"
done
PYTHON_TAKES=361 dev python --slow 2>"$dir/out" || fail "python --slow failed:" "$dir/out"
! grep -q 'Warning' "$dir/out" || fail "slow tests may take longer:" "$dir/out"
if PYTHON_TAKES=5 BREAKS_IN=release dev python 2>"$dir/out"; then fail "a Python test that failed was taken for good"; fi
grep -q '^  release .*; Python build and tests took 5 s' "$dir/out" || fail "no time of tests that failed:" "$dir/out"

if BREAKS_IN=dev dev test 2>"$dir/out"; then fail "a test that failed was taken for good"; fi
grep -q '3 tests ran, 1 failed' "$dir/out" || fail "the failure is not counted:" "$dir/out"
dev test --nightly 2>"$dir/out" || fail "test --nightly failed:" "$dir/out"
grep -q 'mutants.py run$' "$dir/called" || fail "--nightly ran no mutants:" "$dir/called"
for preset in dev tsan release coverage fuzz clang; do
    grep -q "^  $preset (" "$dir/out" || fail "--nightly did not run $preset:" "$dir/out"
done
echo "tools/dev says what it does"
