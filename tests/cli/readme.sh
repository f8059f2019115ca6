#!/bin/bash
# readme.sh - README.md tells the truth: its examples are the files, its commands run, and the files, tests, verbs and
# options that it names exist.
# A block ```sh is run, in order, in one shell, with muster installed into a scratch prefix; ```c is compared with the
# file; ```text and ```ini are read only. The first block is tools/dev's, which is what runs this test.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
readme=$SOURCE_DIR/README.md
if [ ! -e "$BUILD_DIR/client/libmuster.so" ] || [ ! -x "$BUILD_DIR/tools/muster" ]; then
    echo "skipped: the programs are not built"
    exit 77
fi
unset "${!MUSTER_@}" # a job's identity comes from the README, not from around us
dir=$(mktemp -d "${TMPDIR:-/tmp}/muster-readme.XXXXXX")
patience=40
pids=()

clean_up() {
    local status=$? pid

    trap - EXIT
    for pid in ${pids[@]+"${pids[@]}"} $(jobs -p); do
        kill -TERM "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    if [ "$status" != 0 ] && [ -s "$dir/said" ]; then
        echo "--- what the commands said"
        tail -n 60 "$dir/said"
    fi
    rm -rf "$dir"
    exit "$status"
}
trap clean_up EXIT
fail() { echo "FAILED: $*"; exit 1; }

# await WHAT COMMAND... - until the command succeeds, at most so long.
await() {
    local what=$1 end=$((SECONDS + patience))

    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "waited in vain for $what"
        sleep 0.05 # between two looks
    done
}

# blocks LANGUAGE - writes the blocks of that language to $dir/LANGUAGE.1, .2, ...
blocks() {
    awk -v language="$1" -v stem="$dir/$1." '
        inside && /^```$/ { inside = 0; close(file); next }
        inside { print > file }
        !inside && $0 == "```" language { inside = 1; file = stem (++count); printf "" > file }' "$readme"
}

# --- the examples are the files
blocks c
[ -e "$dir/c.3" ] && [ ! -e "$dir/c.4" ] || fail "README.md has not exactly three blocks of C"
number=0
for example in minimal manager epochs; do
    number=$((number + 1))
    cmp "$dir/c.$number" "$SOURCE_DIR/client/examples/$example.c" || fail "block $number of C in README.md is not client/examples/$example.c"
done
[ "$(wc -l <"$dir/c.1")" -le 25 ] || fail "the example is longer than 25 lines"

# --- the first lines are the two commands
blocks sh
sed 's/ *#.*//' "$dir/sh.1" | cmp - <(printf '%s\n' './tools/dev demo' './tools/dev test') ||
    fail "the first block is not the two commands"
[ "$(sed -n 3p "$readme")" = '```sh' ] || fail "the two commands are not the first lines"

# --- what is named exists
while read -r path; do
    [ -e "$SOURCE_DIR/$path" ] || fail "README.md names $path, which is not there"
done < <(grep -oE '(tests|schema|client|tools|broker|node)/[a-zA-Z0-9_./-]*[a-zA-Z0-9]' "$readme" | LC_ALL=C sort -u)
tests=$(ctest --test-dir "$BUILD_DIR" -N)
while read -r name; do
    grep -qE ": $name\$" <<<"$tests" || fail "README.md names the test $name, which is not there"
done < <(grep -oE '`(unit|sim|proc|cli|fuzz|install|checks)\.[a-z_]+`' "$readme" | tr -d '`' | LC_ALL=C sort -u)
dev_help=$("$SOURCE_DIR/tools/dev" help)
while read -r command; do
    grep -q "^  $command " <<<"$dev_help" || fail "tools/dev has no command $command"
done < <(grep -oE '\./tools/dev [a-z]+' "$readme" | cut -d' ' -f2 | LC_ALL=C sort -u)
while read -r bench; do
    [ -e "$SOURCE_DIR/tests/bench/bench_$bench.c" ] || fail "there is no benchmark $bench"
done < <(grep -oE 'tools/dev bench [a-z]+' "$readme" | cut -d' ' -f3)
for page in README.md schema/PROTOCOL.md; do
    while read -r status; do
        grep -q "^X($status," "$SOURCE_DIR/schema/status.def" || fail "$page names $status, which is no status"
    done < <(grep -oE 'MUSTER_E_[A-Z_]+' "$SOURCE_DIR/$page" | LC_ALL=C sort -u)
done
while read -r name; do
    grep -q "^#define $name " "$SOURCE_DIR/schema/limits.h" || fail "PROTOCOL.md names $name, which is not in limits.h"
done < <(grep -oE '`[A-Z_]+_(MS|MAX)`' "$SOURCE_DIR/schema/PROTOCOL.md" | tr -d '`' | LC_ALL=C sort -u)
while read -r call; do
    grep -qw "$call" "$SOURCE_DIR"/client/include/muster/*.h || fail "README.md names $call, which no header has"
done < <(grep -oE 'muster_(node|state)_[a-z_]+|on_preempted|grace_period_ms|save_every_steps|offline_ok|(join|connect)_timeout_ms' \
    "$readme" | LC_ALL=C sort -u)

# --- every command of muster and musterd that is shown has a verb and options that exist
muster_help=$("$BUILD_DIR/tools/muster" help)
commands=$({ grep -oE '`musterd? [^`]*`' "$readme" | tr -d '`'
             awk '/^```(sh|text)$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$readme"
             sed -n 's/^ExecStart=.*\/\(musterd .*\)/\1/p' "$readme"; } | grep -E '^musterd? ')
while read -r program verb rest; do
    if [ "$program" = musterd ]; then
        help=$("$BUILD_DIR/broker/musterd" --help)
        rest="$verb $rest"
    elif [ "$verb" = help ]; then
        continue
    else
        grep -q "^  $verb " <<<"$muster_help" || fail "muster has no verb $verb"
        help=$("$BUILD_DIR/tools/muster" "$verb" --help)
    fi
    for option in $(grep -oE -- ' --?[a-z][a-z-]*' <<<" ${rest%% -- *}"); do
        grep -qE -- "(^|[ ,])$option([ ,]|\$)" <<<"$help" || fail "$program $verb has no option $option"
    done
done <<<"$commands"

# --- the commands run
cmake --install "$BUILD_DIR" --prefix "$dir/prefix" >"$dir/install.log" || { cat "$dir/install.log"; exit 1; }
libdir=$(dirname "$(dirname "$(find "$dir/prefix" -name muster.pc)")")
export PATH="$dir/prefix/bin:$PATH" PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"
cc() { # shellcheck disable=SC2086
    command "${CC:-cc}" ${INSTRUMENT_FLAGS:-} "$@"
}
mkdir "$dir/here"
cd "$dir/here"
cp "$SOURCE_DIR/client/examples/minimal.c" .
running() { muster status --json | grep -q '"state": *"running"'; }
stepping() { muster status --json | grep -qE '"step": *[1-9]'; }
over() { ! kill -0 "$1" 2>/dev/null; }

run_block() { # NUMBER; stops at the first command that fails
    local code

    sed '/&$/!s/$/ || return/' "$dir/sh.$1" >"$dir/block" # errexit does not reach into what is tested by ||
    # shellcheck disable=SC1091
    . "$dir/block" >>"$dir/said" 2>&1 || { code=$?; fail "block $1 of README.md ended with $code: $(cat "$dir/sh.$1")"; }
    mapfile -t pids < <(jobs -p)
}

[ -e "$dir/sh.5" ] && [ ! -e "$dir/sh.6" ] || fail "README.md has other blocks of sh than this test knows"
run_block 2
[ -x minimal ] || fail "the README's command did not build the example"
run_block 3
broker=${pids[0]}
job=${pids[1]}
await "the job's first step" stepping
running || fail "the job does not run"
run_block 4
await "the end of the job" over "$job"
wait "$job" || fail "the job ended with exit code $?"
run_block 5
for text in 'Round 1 is committed at step' 'was told by an operator that it will be ended' 'The notice says: host needs a new disk.' \
    'Job minimal, generation 1, round 2: saved at step' 'Generation 2 resumed at step' 'No step is lost.' \
    'restart code 42 from all 4 ranks' 'job minimal finished (2 launches, 1 preemption, 0 failures)'; do
    grep -qF "$text" "$dir/said" || fail "the commands did not say: $text"
done
[ "$(grep -c 'finished, model 2.9999' "$dir/said")" = 4 ] || fail "not all four ranks finished with the trained model"
[ -s "checkpoints/$(muster latest | cut -d' ' -f1)/manifest.json" ] || fail "muster latest names no checkpoint"

# --- the output that is shown has the tables of today
while read -r header; do
    grep -qxF "$header" <(tr -s ' ' <"$dir/said" | sed 's/ $//') || fail "the table \"$header\" is not what is printed now"
done < <(grep -E '^[A-Z][A-Z0-9 ]+ [A-Z]+$' "$readme" | tr -s ' ')
kill -TERM "$broker"
wait "$broker" || fail "musterd ended with exit code $?"
echo "README.md: three examples, five blocks of commands and all names are as they are"
