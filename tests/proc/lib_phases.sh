# lib_phases.sh - sourced after lib.sh: ranks of prog_phases that stop at named places, and a notice at each of them.
trainer=$TESTS_DIR/proc/prog_phases
gates=$dir/gates
mkdir "$gates"
options=(--gates "$gates")
steps=20
seed=${PHASES_SEED:-$((EPOCHSECONDS % 100000))}
RANDOM=$seed
say "PHASES_SEED=$seed"

notices() { query "SELECT count(*) FROM notice WHERE job = '$job'"; }
notices_are() { [ "$(notices)" -ge "$1" ]; }
decided() { [ -n "$(query "SELECT 1 FROM round WHERE job = '$job' AND step = $1")" ]; }

# launch_to PLACE RANKS OPTIONS... - all ranks, which stop at the place if it names a rank, else all of them.
launch_to() {
    local place=$1 ranks=$2 rank

    shift 2
    : >"$gates/$place"
    ranks_start "$ranks" --steps $steps "$@"
    for ((rank = 0; rank < ranks; rank++)); do
        case $place in
            *.*) [ "$rank" = "${place##*.}" ] || continue ;;
            save-*) has_writer "$rank" || continue ;;
        esac
        await "rank $rank at $place" rank_said "$rank" "^at ${place%.*}\$"
    done
}

has_writer() { [ "$1" = 0 ] || [[ " ${options[*]} " == *" --sharded 1 "* ]]; }

# tell_end RANKS - SIGTERM to one of them; until it is on record.
tell_end() {
    local told=$((RANDOM % $1)) before

    before=$(notices)
    kill -TERM "${pids[told]}"
    await "the notice of rank $told" notices_are $((before + 1))
}

go_on() { rm "$gates/$1"; }

# nothing_wrong - no rank saw a save, an argument or a step that it should not.
nothing_wrong() { each_has wrong 0; }

# leaves_at STEP RANKS - all leave with the restart code; STEP is committed and where the next launch resumes.
leaves_at() {
    all_exited
    nothing_wrong
    same "step of the save of $job, launch $launch" "$saved" "$1"
    committed_whole "$1"
}

newest_round() { query "SELECT cause, step, state FROM round WHERE job = '$job' ORDER BY round DESC LIMIT 1"; }
round_is() { [ "$(newest_round)" = "$1" ]; }

# all_phases RANKS MODE LAYOUT OPTIONS... - one job that is told to end at one place after the other.
all_phases() {
    local ranks=$1 mode=$2 next=0

    options=(--gates "$gates" --mode "$mode" --sharded "$3")
    shift 3
    options+=("$@")
    launch=0
    case $mode in -1 | 1 | 3) next=1 ;; esac # who checks after its steps has then begun the one after
    say "--- $job"
    launch_to open-0 "$ranks" # before the first step of all: there is nothing to save
    tell_end "$ranks"
    await "the end of the round" round_is "termination|0|unchanged"
    go_on open-0
    ranks_end 42
    nothing_wrong
    same "checkpoints of $job" "$(committed)" ''

    launch_to eval-4 "$ranks" # in an evaluation, which has no boundaries
    tell_end "$ranks"
    await "the decision" decided $((4 + next))
    explicit_will_save $((4 + next))
    go_on eval-4
    leaves_at $((4 + next))

    launch_to "open-$saved" "$ranks" # before the first step after a restart: nothing newer to save
    tell_end "$ranks"
    await "the end of the round" round_is "termination|$saved|unchanged"
    go_on "open-$saved"
    ranks_end 42
    each_has resumed "$saved"
    same "checkpoints of $job" "$(committed)" "$saved"

    : >"$gates/step-9.0" # one rank is held, the others have begun the next step
    launch_to hold-8.1 "$ranks"
    await "step 9 of rank 0" rank_said 0 '^at step-9$'
    tell_end "$ranks"
    await "the decision" decided 9
    go_on hold-8.1
    go_on step-9.0
    leaves_at 9

    launch_to save-12 "$ranks" --save-every 12 # inside a save: it becomes the termination's
    tell_end "$ranks"
    await "the termination of the round" round_is "termination|12|decided"
    go_on save-12
    leaves_at 12

    launch_to step-$steps "$ranks" # in the last step: close is a boundary too
    tell_end "$ranks"
    await "the decision" decided $steps
    go_on step-$steps
    leaves_at $steps

    ranks_start "$ranks" --steps $steps
    all_finished $steps
    nothing_wrong
    same "checkpoints of $job" "$(committed)" "$((4 + next)) 9 12 $steps"
    same "calls in all, as each life of rank 0 counted them" "$(total_run_calls)" $steps
}

# What each launch of rank 0 began with and ended at: the steps follow on each other, none is counted twice.
total_run_calls() {
    local i at=0 of

    for ((i = 1; i <= launch; i++)); do
        of=$dir/$job-$i-rank0.log
        [ "$(sed -n 's/^trainer: .* resumed=\([0-9]*\) .*/\1/p' "$of")" -le "$at" ] || fail "launch $i resumed after step $at"
        at=$(sed -n 's/^trainer: .* done=\([0-9]*\) .*/\1/p' "$of")
    done
    say "$at"
}

# The loop that asks has heard, where it stands, that the call which ends step STEP will save.
explicit_will_save() {
    local rank

    for rank in "${!pids[@]}"; do
        case $(mode_of "$rank") in 3) await "rank $rank to know of the save" rank_said "$rank" "^will save $1\$" ;; esac
    done
}

mode_of() {
    local mode="${options[*]}"

    mode=${mode#*--mode } mode=${mode%% *}
    [ "$mode" -ge 0 ] || mode=$(($1 % 4))
    say "$mode"
}

# after_close LAYOUT - rank 0 is in close(), which serves a save; then it is told to end.
after_close() {
    options=(--gates "$gates" --mode 0 --sharded "$1")
    launch=0
    say "--- $job"
    launch_to step-$steps 2
    : >"$gates/save-$steps"
    "$muster" save --broker "$broker" --job "$job" >>"$dir/answers.log"
    await "the decision" decided $steps
    go_on step-$steps
    await "the save inside close" rank_said 0 "^at save-$steps\$"
    same "round" "$(newest_round)" "operator|$steps|decided"
    tell_end 1
    await "the termination of the round" round_is "termination|$steps|decided"
    go_on save-$steps
    leaves_at $steps
    ranks_start 2 --steps $steps
    all_finished $steps
}

# one_is_behind LAYOUT - a policy save that one rank still writes while the other trains on: the notice makes it the
# termination's.
one_is_behind() {
    local writer=$1 other=$((1 - $1)) # sharded: rank 1 is the slow one of both; replicated: rank 0 writes alone

    options=(--gates "$gates" --mode 0 --sharded "$1")
    launch=0
    say "--- $job"
    : >"$gates/step-13.$other"
    launch_to "save-12.$writer" 2 --save-every 12
    await "rank $other in the step after the save" rank_said "$other" '^at step-13$'
    tell_end 2
    await "the termination of the round" round_is "termination|12|decided"
    go_on "save-12.$writer"
    go_on "step-13.$other"
    leaves_at 12
    ranks_start 2 --steps $steps
    all_finished $steps
    same "checkpoints of $job" "$(committed)" 12
}

# after_the_end - between the last call and close. Who checks after its steps seems to be in another one, which nobody
# will do. Each rank has finished, or is the one that could still save the last step; then the restart finds nothing to do.
after_the_end() {
    local codes=() rank code

    options=(--gates "$gates" --mode 1)
    launch=0
    say "--- $job"
    launch_to eval-$steps 3
    tell_end 3
    await "the decision" decided $((steps + 1))
    go_on eval-$steps
    for rank in 0 1 2; do
        await "the end of rank $rank" rank_is_gone "$rank"
        code=0
        wait "${pids[rank]}" || code=$?
        codes+=("$code")
    done
    each_has "done" $steps
    nothing_wrong
    sums_right
    if [ -z "$(committed)" ]; then
        same "exit codes of $job, of which nothing was saved" "${codes[*]}" '0 0 0'
        return
    fi
    same "checkpoints of $job" "$(committed)" $steps
    for code in "${codes[@]}"; do [ "$code" = 0 ] || same "an exit code of $job" "$code" 42; done
    saved=$steps
    ranks_start 3 --steps $steps
    all_finished $steps
}

# written_behind - an operator's save of step 12 is written while all evaluate: a notice needs no save of its own.
written_behind() {
    local rank

    options=(--gates "$gates" --mode 2 --sharded "$1" --behind 1)
    launch=0
    say "--- $job"
    launch_to step-12 2
    : >"$gates/save-12"
    : >"$gates/eval-12"
    "$muster" save --broker "$broker" --job "$job" >>"$dir/answers.log"
    await "the decision" decided 12
    go_on step-12
    for rank in 0 1; do await "rank $rank in its evaluation" rank_said "$rank" '^at eval-12$'; done
    await "the save behind" rank_said 0 '^at save-12$'
    tell_end 2
    go_on eval-12
    same "checkpoints of $job while it is written" "$(committed)" ''
    go_on save-12
    leaves_at 12
    same "checkpoints of $job" "$(committed)" 12
    ranks_start 2 --steps $steps
    all_finished $steps
}
