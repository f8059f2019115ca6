# lib.sh - sourced by the scripts here: a broker, ranks of prog_trainer, and questions to both.
# Owns the scenario's directory and every process that it starts; all are gone when the script ends, however it ends.
# Nothing here sleeps blindly: `await` looks for a condition until a deadline. A failed test keeps its directory.
set -euo pipefail

musterd=${MUSTERD:?run by ctest, or set the variables of tests/CMakeLists.txt}
muster=${MUSTER:?}
fail_points=${MUSTER_FAIL_POINTS_BUILT:-0}
trainer=${TESTS_DIR:?}/proc/prog_trainer
sql=$TESTS_DIR/proc/prog_sql
floor=${MUSTER_TEST_FLOOR:-sqlite} # postgres: each broker here shares a PostgreSQL database (broker_start)
unset "${!MUSTER_@}" MUSTER # a job's identity comes from here, not from around us

dir=$(mktemp -d "${TMPDIR:-/tmp}/muster proc.XXXXXX") # a space, since paths may have one
db="$dir/state/muster.db"
listen='tcp://127.0.0.1:*' # or "$ipc": the same address again after a restart
ipc="ipc://$dir/broker.sock"
job=job
group=proc-$$ # nobody else meets there
world=0
launch=0 # lives of the job that were started
patience=40 # seconds for anything that should take less than one, on two loaded cores under sanitizers
hangs_after=220 # seconds: for `timeout` before a whole job; ctest's own limit says less
broker='' broker_pid=''
pids=()    # of the ranks of the newest launch, by rank
started=() # of everything
mounted=()

. "$(dirname "${BASH_SOURCE[0]}")/lib_invariants.sh"

say() { printf '%s\n' "$*"; }

fail() {
    say "FAILED: $*"
    exit 1
}

# is_ours PID - a live child of this shell. The number of one that ended may by now be another's, on a host that starts
# many processes: it is not to be killed, nor waited for.
is_ours() {
    local stat

    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${stat##*) } # state, parent
    [ "$1" != Z ] && { [ "$2" = $$ ] || [ "$2" = "$BASHPID" ]; }
}

# kill_child PID WHAT - by SIGKILL; its death is awaited.
child_is_gone() { not is_ours "$1"; }
kill_child() {
    kill -KILL "$1"
    await "the death of $2" child_is_gone "$1"
    wait "$1" 2>/dev/null || true
}

clean_up() {
    local status=${1:-$?} pid path

    trap - EXIT
    # bash runs this in a child, too, that is killed before its program has begun
    [ "$BASHPID" = "$cleaner" ] || exit "$status"
    for pid in ${started[@]+"${started[@]}"}; do
        if is_ours "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
    done
    for pid in $(cat "$dir/broker.pid" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    if [ "$status" != 0 ] && [ "$status" != 77 ]; then
        say "--- what was said (kept in '$dir')"
        for path in "$dir"/*.log; do
            [ ! -s "$path" ] || { say "--- ${path##*/}" && tail -n 40 "$path"; }
        done
    fi
    for path in ${mounted[@]+"${mounted[@]}"}; do
        umount -l "$path" 2>/dev/null || true
    done
    [ "$status" != 0 ] && [ "$status" != 77 ] || rm -rf "$dir"
    exit "$status"
}
cleaner=$BASHPID
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

now_ms() { # EPOCHREALTIME is seconds.microseconds
    printf '%s\n' $((${EPOCHREALTIME/[.,]/} / 1000))
}

# await WHAT COMMAND... - until the command succeeds.
await() {
    local what=$1 begun=$SECONDS looks=0

    shift
    until "$@" >/dev/null 2>&1; do
        looks=$((looks + 1))
        is_patient $((SECONDS - begun)) $looks || fail "waited $((SECONDS - begun)) s in vain for $what"
        sleep 0.02 # between two looks
    done
}
# is_patient SECONDS LOOKS - on a busy machine each look takes longer, as does what is awaited: there are five looks for
# each second of patience, and four times the seconds at most.
is_patient() {
    [ "$1" -lt "$patience" ] || { [ "$2" -lt $((5 * patience)) ] && [ "$1" -lt $((4 * patience)) ]; }
}

# passed_ms SINCE MS - for a fault that lasts so long: `await` it.
passed_ms() { [ $(($(now_ms) - $1)) -ge "$2" ]; }

# same WHAT ACTUAL EXPECTED
# without_checksum FILE... - manifests as an older muster wrote them, which a test may then edit
without_checksum() {
    sed -i -z 's/,\n "checksum": "xxh3-128:[0-9a-f]*"\n}$/\n}/' "$@"
    sed -i '/^ "database": /d' "$@"
}
same() { [ "$2" = "$3" ] || fail "$1: got \"$2\", expected \"$3\""; }

# holds WHAT CONDITION... - as `test`
holds() {
    local what=$1

    shift
    [ "$@" ] || fail "$what: not [ $* ]"
}

# says TEXT PATTERN... - the text has each extended regular expression.
says() {
    local text=$1 pattern

    shift
    for pattern in "$@"; do
        grep -Eqi -- "$pattern" <<<"$text" || fail "\"$text\" does not say \"$pattern\""
    done
}

not() { ! "$@"; }

needs_fail_points() {
    [ "$fail_points" = 1 ] || { say "skipped: built without MUSTER_FAIL_POINTS"; exit 77; }
}

# needs_tmpfs DIRECTORY SIZE - a small file system of its own there, so that the disk can be full.
needs_tmpfs() {
    mkdir -p "$1"
    mount -t tmpfs -o "size=$2" muster-proc-test "$1" 2>/dev/null ||
        { say "skipped: this user cannot mount a tmpfs"; exit 77; }
    mounted+=("$1")
}

# --- the broker

# broker_start [NAME=VALUE...] - with those variables, and with the array `broker_options`; leaves its address in $broker.
broker_start() {
    local shared_here=()

    [ "$floor" != postgres ] || shared_here=(--shared "$(shared_for "$db")")
    rm -f "$dir/port"
    env "$@" "$musterd" --db "$db" --listen "$listen" --port-file "$dir/port" \
        ${shared_here[@]+"${shared_here[@]}"} ${broker_options[@]+"${broker_options[@]}"} </dev/null >>"$dir/musterd.log" 2>&1 &
    broker_pid=$!
    started+=("$broker_pid")
    await "musterd's port" broker_said_where
    broker=$(head -n 1 "$dir/port")
}

# broker_counted NAME: what `muster broker` has counted, asked with key all.key.
broker_counted() {
    "$muster" broker --json --broker "$broker" --key "$dir/all.key" | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"
}

broker_said_where() {
    kill -0 "$broker_pid" 2>/dev/null || fail "musterd ended at its start"
    [ "$(wc -l <"$dir/port")" -ge 2 ]
}

broker_is_gone() { not is_ours "$broker_pid"; }

broker_kill() {
    kill -KILL "$broker_pid"
    broker_await_killed
}

broker_await_killed() {
    local code=0

    await "musterd's death" broker_is_gone
    wait "$broker_pid" 2>/dev/null || code=$?
    same "musterd's exit code" "$code" 137
    broker_pid=
}

# An orderly end: exit code 0, which under sanitizers also says that nothing leaked.
broker_stop() {
    local code=0

    kill -TERM "$broker_pid" || fail "musterd is not there any more"
    await "musterd's end" broker_is_gone
    wait "$broker_pid" || code=$?
    same "musterd's exit code" "$code" 0
    broker_pid=
}

# --- ranks

# rank_start RANK OPTIONS... - one process of the job; world, job, broker, checkpoints from the variables. The array
# `rank_through` may be a command that becomes the rank.
rank_start() {
    local rank=$1

    shift
    MUSTER_JOB=$job MUSTER_RANK=$rank MUSTER_WORLD_SIZE=$world MUSTER_BROKER=$broker \
        MUSTER_CHECKPOINT_DIR=${checkpoints:-$dir/checkpoints-$job} TRAINER_GROUP=$group-$job \
        ${rank_through[@]+"${rank_through[@]}"} "$trainer" ${options[@]+"${options[@]}"} "$@" </dev/null \
        >"$(log "$rank")" 2>&1 &
    pids[rank]=$!
    started+=("${pids[rank]}")
}

# ranks_start WORLD OPTIONS... - a launch of all ranks. The array `options` goes before, in every launch.
ranks_start() {
    local rank

    world=$1
    shift
    launch=$((launch + 1))
    pids=()
    for ((rank = 0; rank < world; rank++)); do
        rank_start "$rank" "$@"
    done
}

# keep, recall JOB - two jobs at once: `keep` puts the present one aside, `recall` makes it the present one again.
declare -A kept_pids kept_launch
keep() { kept_pids[$job]=${pids[*]} kept_launch[$job]=$launch; }
recall() { job=$1 launch=${kept_launch[$1]} && read -ra pids <<<"${kept_pids[$1]}"; }

log() { printf '%s\n' "$dir/$job-$launch-rank$1.log"; } # of the newest launch

rank_is_gone() { not is_ours "${pids[$1]}"; }

# rank_ends RANK CODE
rank_ends() {
    local code=0

    await "the end of rank $1" rank_is_gone "$1"
    wait "${pids[$1]}" 2>/dev/null || code=$?
    same "exit code of rank $1 of job $job" "$code" "$2"
}

# ranks_end CODE [RANK...] - all of them, or these.
ranks_end() {
    local code=$1 rank

    shift
    [ $# -gt 0 ] || set -- "${!pids[@]}"
    for rank; do
        rank_ends "$rank" "$code"
    done
}

# field RANK NAME - from the line that a rank of the newest launch ended with.
field() { sed -n "s/^trainer: .*\\b$2=\\([^ ]*\\).*/\\1/p" "$(log "$1")"; }

# error_of RANK - the line that tells which error a rank ended with.
error_of() { grep '^error: ' "$(log "$1")" || fail "rank $1 told no error"; }

rank_said() { grep -q -- "$2" "$(log "$1")"; }

# each_has NAME VALUE [RANK...] - every rank ended with it.
each_has() {
    local name=$1 value=$2 rank

    shift 2
    [ $# -gt 0 ] || set -- "${!pids[@]}"
    for rank; do
        same "$name of rank $rank of job $job" "$(field "$rank" "$name")" "$value"
    done
}

# all_preempted - every rank left with the restart code and the right sum; sets $saved to the step of all who had to
# save. In a replicated job the others may be behind it: its round is over as soon as the writer has saved.
all_preempted() {
    all_exited
    each_has status MUSTER_PREEMPTED
}

# all_exited - the same for policy EXIT, which ends the process inside of a call.
all_exited() {
    local rank

    ranks_end 42
    sums_right
    saved=$(field 0 done)
    for rank in "${!pids[@]}"; do
        if [ "$(field "$rank" done)" != "$saved" ] && { [ "$(field "$rank" done)" -gt "$saved" ] || has_to_save "$rank"; }; then
            fail "rank $rank of job $job left at step $(field "$rank" done), rank 0 at $saved"
        fi
    done
}

# has_to_save RANK - is its shard needed for the checkpoint of step $saved?
has_to_save() {
    [ 1 = "$(query "SELECT count(*) FROM participant p JOIN round r ON r.job = p.job AND r.round = p.round
        WHERE r.job = '$job' AND r.step = $saved AND r.state = 'committed' AND p.rank = $1 AND p.writer = 1")" ]
}

# all_finished STEPS - every rank resumed at $saved, did exactly the rest, and got the sum of an uninterrupted run.
all_finished() {
    ranks_end 0
    each_has resumed "$saved"
    each_has computed $(($1 - saved))
    each_has "done" "$1"
    sums_right
    [ "$saved" = 0 ] || resumed_right[$job]=1
}
declare -A resumed_right # the jobs of which that was seen behind a checkpoint

# jobs_resumed MIN - prints how many those are; fails if they are fewer.
jobs_resumed() {
    holds "jobs that resumed bit for bit" "${#resumed_right[@]}" -ge "$1"
    say "${#resumed_right[@]} jobs resumed at their checkpoint and ended with the weights of an uninterrupted run"
}

sums_right() {
    local rank

    for rank in "${!pids[@]}"; do
        same "sum of rank $rank of job $job" "$(field "$rank" sum)" "$(field "$rank" expected)"
        same "weights of rank $rank of job $job, bit for bit" "$(field "$rank" weights)" right
    done
}

# --- what was recorded

query() { "$sql" "$db" "$1"; }

# committed - the steps of the job's committed checkpoints that count.
committed() { query "SELECT step FROM checkpoint WHERE job = '$job' AND state = 'committed' AND NOT $gone_back ORDER BY step" | xargs; }

# of a row of checkpoint: a later launch went back behind it, and it does not count
gone_back="EXISTS (SELECT 1 FROM launch l WHERE l.job = checkpoint.job AND l.generation > checkpoint.generation
    AND l.began_step < checkpoint.step)"

# save_refused WHY PATTERN... - a save by the operator fails, and says that; $first is the only checkpoint, as it was.
save_refused() {
    local why=$1 code=0 answer

    shift
    answer=$("$muster" save --wait --broker "$broker" --job "$job" 2>&1) || code=$?
    same "exit code of muster save $why" "$code" 1
    says "$answer" aborted "$@"
    same "committed" "$(committed)" "$first"
    say "$answer"
}

# committed_whole STEP - a checkpoint of this step is committed, with every shard required, from one round and from
# the incarnations of its decision; manifest and directory are there.
committed_whole() {
    local row path

    row=$(query "SELECT c.round, c.shards_required, c.path, (SELECT count(*) FROM shard s JOIN participant p
        ON p.job = s.job AND p.round = s.round AND p.rank = s.rank AND p.incarnation = s.incarnation AND p.writer = 1
        WHERE s.job = c.job AND s.round = c.round) FROM checkpoint c
        WHERE c.job = '$job' AND c.step = $1 AND c.state = 'committed'")
    [ -n "$row" ] || fail "no checkpoint of step $1 is committed; committed are: $(committed)"
    same "shards of the checkpoint of step $1" "$(cut -d'|' -f4 <<<"$row")" "$(cut -d'|' -f2 <<<"$row")"
    path=$(cut -d'|' -f3 <<<"$row")
    [ -n "$path" ] || path=$(ls -d "${checkpoints:-$dir/checkpoints-$job}"/*"$1")
    case $path in /*) ;; *) path=${checkpoints:-$dir/checkpoints-$job}/$path ;; esac
    [ -f "$path/manifest.json" ] || fail "the checkpoint of step $1 has no manifest in $path: $(ls -aR "$path")"
}

# damage_byte FILE OFFSET - it is another byte than before, whatever it was; a negative offset counts from the end.
damage_byte() {
    local at=$2 byte

    [ "$at" -ge 0 ] || at=$(($(stat -c %s "$1") + at))
    byte=$(od -An -tu1 -j "$at" -N 1 "$1")
    printf '%b' "\\0$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

ask() { MUSTER_TEST_NOW=1900000000000 "$muster" "$@" --job "$job"; }

# same_why [ARGUMENTS] - `muster why` of the broker and of the database file give the same; sets $story to it.
same_why() {
    local from_file

    story=$(ask why "$@" --broker "$broker") || fail "muster why $*: exit code $?"
    from_file=$(ask why "$@" --db "$db") || fail "muster why $* --db: exit code $?"
    same "the story from the database file" "$from_file" "$story"
}

# finish WHAT-WAS-PROVED... - the last line of each script: stops the broker and says what was proved. A sanitizer's
# report of any process fails the test, whatever that process's exit code was expected to be.
finish() {
    local fact

    [ -z "$broker_pid" ] || broker_stop
    [ ! -f "$db" ] || [ -n "${not_checked:-}" ] || invariants
    if grep -lsE 'Sanitizer|runtime error:' "$dir"/*.log; then
        fail "a sanitizer complained in the files above"
    fi
    for fact; do
        say "proved: $fact"
    done
}

shopt -s extglob
case $floor/$(basename "$0" .sh) in
postgres/*shared_*) floor=sqlite ;; # they have servers of their own
postgres/bad_full_database?(_leave|_round) | postgres/import_@(cut_short|older_copy|verify) | postgres/lost_database | \
    postgres/put_back_@(newer|running|unnamed) | postgres/newer_unreadable | postgres/keys_signed | \
    postgres/manager_@(back_beside_newer|hours|lost_database|policies))
    say "skipped: this test fills, loses, replaces or writes the broker's file, which is only a copy with a shared database"
    exit 77
    ;;
postgres/*)
    . "$(dirname "${BASH_SOURCE[0]}")/lib_shared.sh"
    postgres_start
    ;;
esac
