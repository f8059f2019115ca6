#!/bin/bash
# readme.sh - README.md tells the truth: its examples are the files, its commands run, and the files, tests, verbs and
# options that it names exist.
# A block ```sh is run, in order, in one shell, with muster installed into a scratch prefix. ```c is compared with the
# file, which is built with fewer steps than a reader gets. ```text is read only. The first block is tools/dev's, which
# is what runs this test.
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

# --- the example is the file
blocks c
[ -e "$dir/c.1" ] && [ ! -e "$dir/c.2" ] || fail "README.md has not exactly one block of C"
cmp "$dir/c.1" "$SOURCE_DIR/client/examples/minimal.c" || fail "the C in README.md is not client/examples/minimal.c"
[ "$(wc -l <"$dir/c.1")" -le 25 ] || fail "the example is longer than 25 lines"

# --- the first block is the two commands, on the first screen
blocks sh
sed 's/ *#.*//' "$dir/sh.1" | cmp - <(printf '%s\n' './tools/dev demo' './tools/dev test') ||
    fail "the first block is not the two commands"
[ "$(grep -n -m 1 '^```sh$' "$readme" | cut -d: -f1)" -le 15 ] || fail "the two commands are not on the first screen"

# --- what is named exists
named_in() { grep -oE "$2" "$SOURCE_DIR/$1" | LC_ALL=C sort -u; } # PAGE PATTERN
mkdir "$dir/list" # of its own: a list in $BUILD_DIR would take the place of the log of the run that this is part of
echo "subdirs(\"$BUILD_DIR\")" >"$dir/list/CTestTestfile.cmake"
tests=$(ctest --test-dir "$dir/list" -N)
dev_help=$("$SOURCE_DIR/tools/dev" help)
for page in README.md CONTRIBUTING.md CHANGELOG.md tests/README.md tests/PROMISES.md tests/bench/FIGURES.md; do
    while read -r path; do
        [ -e "$SOURCE_DIR/$path" ] || fail "$page names $path, which is not there"
    done < <(named_in "$page" '\b(tests|schema|fenced|client|tools|broker|node)/[a-zA-Z0-9_./-]*[a-zA-Z0-9]' | grep -v 'NAME\|NNNN')
    while read -r name; do
        grep -qE ": $name\$" <<<"$tests" || fail "$page names the test $name, which is not there"
    done < <(named_in "$page" '`(unit|sim|proc|cli|faults|model|fuzz|install|checks)\.[a-z_]+`' | tr -d '`')
    while read -r command; do
        grep -q "^  $command " <<<"$dev_help" || fail "$page: tools/dev has no command $command"
    done < <(named_in "$page" '\./tools/dev [a-z]+' | cut -d' ' -f2)
    while read -r bench; do
        [ -e "$SOURCE_DIR/tests/bench/bench_$bench.c" ] || fail "$page: there is no benchmark $bench"
    done < <(named_in "$page" 'tools/dev bench [a-z]+' | cut -d' ' -f3 | grep -v NAME)
done
while read -r name; do
    grep -qrw "$name" "$SOURCE_DIR"/{schema,broker,node,client,tools,tests} || fail "CONTRIBUTING.md names $name, which is nowhere"
done < <(named_in CONTRIBUTING.md '`[a-z]+_[a-z_]+`' | tr -d '`' | grep -vx ret_x)
rule_pages=(schema/PROTOCOL.md schema/RECOVERY.md schema/TASKS.md)
for page in README.md "${rule_pages[@]}"; do
    while read -r status; do
        grep -q "^X($status," "$SOURCE_DIR/schema/status.def" || fail "$page names $status, which is no status"
    done < <(grep -oE 'MUSTER_E_[A-Z_]+' "$SOURCE_DIR/$page" | LC_ALL=C sort -u)
done
while read -r name; do
    grep -q "^#define $name " "$SOURCE_DIR/schema/limits.h" || fail "a page of schema/ names $name, which is not in limits.h"
done < <(cd "$SOURCE_DIR" && grep -ohE '`[A-Z_]+_(MS|MAX)`' "${rule_pages[@]}" | tr -d '`' | LC_ALL=C sort -u)
while read -r call; do
    grep -qw "$call" "$SOURCE_DIR"/client/include/muster/*.h || fail "README.md names $call, which no header has"
done < <(grep -oE 'muster_(node|state)_[a-z_0-9]+|on_preempted|grace_period_ms|save_every_steps|offline_ok|(join|connect)_timeout_ms' \
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
export HOME=$dir/home
mkdir -p "$dir/here/client/examples" "$dir/here/tools" "$HOME"
cd "$dir/here"
# `./tools/dev build release` is what was built already.
printf '#!/bin/sh\nmkdir -p build && ln -s "%s" build/release\n' "$BUILD_DIR" >tools/dev
chmod +x tools/dev
cc() { # shellcheck disable=SC2086
    command "${CC:-cc}" ${INSTRUMENT_FLAGS:-} "$@"
}
steps=1400 # of 12,000, so that the job lasts seconds and not a minute
sed "s/< 12000/< $steps/" "$SOURCE_DIR/client/examples/minimal.c" >client/examples/minimal.c
grep -q "< $steps" client/examples/minimal.c || fail "the example has no 12000 steps"
# `musterd` without options has its socket and database at the user's own place: here in the scratch directory.
printf '%s\n' "listen = ipc://$dir/broker" "db = $dir/muster.db" >"$dir/musterd.conf"
export MUSTER_CONFIG="$dir/musterd.conf" MUSTER_BROKER="ipc://$dir/broker"
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
[ "$(command -v muster)" = "$HOME/muster/bin/muster" ] || fail "the README's PATH does not find muster"
run_block 3
broker=${pids[0]}
job=${pids[1]}
await "the job's first step" stepping
running || fail "the job does not run"
run_block 4
await "the job's second launch" grep -q 'launch 2: restarting 4 ranks' "$dir/said"
await "the second launch's first step" stepping
run_block 5
await "the end of the job" over "$job"
wait "$job" || fail "the job ended with exit code $?"
for text in 'was told by an operator (local socket uid ' 'The notice says: host needs a new disk.' \
    'Job mine, generation 1, round 1: saved at step' 'Generation 2 resumed at step' 'No step is lost.' \
    'restart code 42 from all 4 ranks' 'job mine finished (2 launches, 1 preemption, 0 failures)'; do
    grep -qF "$text" "$dir/said" || fail "the commands did not say: $text"
done
model=$(awk -v steps=$steps 'BEGIN { printf "%.4f", 3 - 3 * 0.999 ^ steps }')
[ "$(grep -c "finished, model $model" "$dir/said")" = 4 ] || fail "not all four ranks finished with the trained model"
[ -s "checkpoints/$(muster latest | cut -d' ' -f1)/manifest.json" ] || fail "muster latest names no checkpoint"

# --- each line of the story that is shown is one that is told now, but for its numbers, names and times. Whether rank 1
# to 3 captured is a matter of milliseconds: that line has two forms.
shape() { sed -E 's/^Job [a-z]+, /Job N, /; s/[0-9]+(\.[0-9]+)?( ms| s| B|%)?/N/g; s/operator-[0-9a-zN]+/ID/g; s#/[^ ]*##g; s/host [a-z0-9N.-]+,/host H,/; s/, rank N,/,/'; }
shape <"$dir/said" >"$dir/shapes"
awk '/^```text$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" | sed -n '/^Job /,$p' |
    sed '/^No step/q; /No step is lost/q' >"$dir/story"
[ "$(wc -l <"$dir/story")" -ge 10 ] || fail "README.md shows no story of muster why"
while IFS= read -r line; do
    grep -qxF -- "$line" "$dir/shapes" || fail "muster why tells no such line now: $line"
done < <(shape <"$dir/story" | sed '/^$/d; /^All captured/d')
kill -TERM "$broker"
wait "$broker" || fail "musterd ended with exit code $?"
echo "README.md: one example, five blocks of commands and all names are as they are"
