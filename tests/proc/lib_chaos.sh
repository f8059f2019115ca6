# lib_chaos.sh - a job of `muster run` that lives through many rounds in a row while its ranks and its broker are killed
# and stopped at random. What is done, and to whom, comes from a seed; when it meets a round is left to chance.
. "$(dirname "${BASH_SOURCE[0]}")/lib_crash.sh"

save_every=60  # steps: a save by policy comes by itself
stop_max_ms=600 # less than the silence of 5 s after which a rank is lost
all_faults='kill_rank kill_rank stop_rank kill_broker kill_broker kill_both kill_all_ranks kill_late none'

rounds() { query "SELECT count(*) FROM round WHERE job = '$job' AND ended_unix_ms > 0"; }
rank_pid() { # RANK - of the newest launch, if it is there
    query "SELECT n.pid FROM node n JOIN job j ON j.job = n.job AND j.generation = n.generation
        WHERE n.job = '$job' AND n.rank = $1 AND n.state IN ('joined', 'restored') ORDER BY n.joined_unix_ms DESC LIMIT 1"
}
nap() { # MS - the moment of a fault is to be a random one, so nothing is awaited
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
}
signal_rank() { # SIGNAL RANK - who has gone meanwhile is not there to be harmed; sets $harmed
    local pid

    harmed=
    pid=$(rank_pid "$2") || return 0
    [ -n "$pid" ] || return 0
    if grep -q prog_trainer "/proc/$pid/comm" 2>/dev/null && kill "-$1" "$pid" 2>/dev/null; then
        faults=$((faults + 1)) harmed=$pid
    fi
}
kill_kept_broker() {
    if kill -KILL "$(cat "$dir/broker.pid")" 2>/dev/null; then
        faults=$((faults + 1))
    fi
}

harm() { # FAULT RANK
    case $1 in
    kill_rank) signal_rank KILL "$2" ;;
    kill_late) nap $((RANDOM % 400)) && signal_rank KILL "$2" ;;
    stop_rank)
        signal_rank STOP "$2"
        nap $((RANDOM % stop_max_ms))
        # by its number: one that was stopped on its way out is no rank of the job any more
        [ -z "$harmed" ] || kill -CONT "$harmed" 2>/dev/null || true
        ;;
    kill_broker) kill_kept_broker ;;
    kill_both) kill_kept_broker && signal_rank KILL "$2" ;;
    kill_all_ranks) for rank in 0 1 2; do signal_rank KILL "$rank"; done ;;
    none) ;;
    esac
}

# One order for a round, or none (then the next one by policy), and one fault near it. Then the job has to go on.
chaos_turn() {
    local cause=$((RANDOM % 3)) fault=$((RANDOM % $(wc -w <<<"$all_faults") + 1)) victim=$((RANDOM % 3))
    local before asked=''

    before=$(newest)
    fault=$(cut -d' ' -f"$fault" <<<"$all_faults")
    case $turns in # of a short story too
    0) fault=kill_broker ;;
    1) fault=kill_rank ;;
    esac
    case $cause in
    0) "$muster" save --broker "$broker" --job "$job" --timeout 2 >>"$dir/orders.log" 2>&1 & asked=$! ;;
    1) signal_rank TERM $((RANDOM % 3)) ;;
    esac
    nap $((RANDOM % 150))
    harm "$fault" "$victim"
    [ -z "$asked" ] || wait "$asked" || true # without a broker it may be in vain
    await "a checkpoint after step $before, $fault of rank $victim, cause $cause, turn $turns" chaos_goes_on "$before"
    turns=$((turns + 1))
}
chaos_goes_on() {
    kill -0 "$supervisor" || fail "muster run has ended: $(tail -n 5 "$dir/run.log")"
    committed_beyond "$1"
}

# chaos LAYOUT ROUNDS SEED - in a lane.
chaos() {
    local layout=0 code=0 steps

    RANDOM=$3
    job=chaos-$1 turns=0 faults=0 supervisor=
    [ "$1" = replicated ] || layout=1
    options=(--barrier 1 --sharded "$layout" --step-ms 3 --save-every "$save_every")
    say "seed $3"
    keeper_start
    mkdir -p "$dir/runtime"
    XDG_RUNTIME_DIR="$dir/runtime" TRAINER_GROUP=$group-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
        "$muster" run -n 3 --job "$job" --broker "$broker" --max-failures -1 --backoff-ms 50 -- \
        "$trainer" "${options[@]}" --steps 100000000 --until-file "$dir/until" </dev/null >"$dir/run.log" 2>&1 &
    supervisor=$!
    started+=("$supervisor")
    await "the first checkpoint" committed_beyond 0
    while [ "$(rounds)" -lt "$2" ] || [ "$turns" -lt 2 ]; do
        chaos_turn
        [ $((turns % 25)) -ne 0 ] || invariants
    done
    touch "$dir/until"
    await "the end of muster run" not kill -0 "$supervisor"
    wait "$supervisor" || code=$?
    same "exit code of muster run" "$code" 0
    grep -q 'weights=WRONG' "$dir/run.log" && fail "a rank's weights are wrong"
    await "the end of every round" rounds_ended
    invariants
    chaos_same_as_uninterrupted "$layout"
    keeper_stop
    finish
    say "lane: rounds $(rounds) turns $turns faults $faults kills $(kills) databases $checked" \
        "launches $(query "SELECT generation FROM job WHERE job = '$job'")" \
        "commits $(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'committed'")" \
        "aborts $(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'aborted'")"
}

# The last launch ended at one step, with the sums of a run to that step that nobody interrupted.
chaos_same_as_uninterrupted() {
    local rank sums steps

    steps=$(sed -n 's/.* trainer: rank=0 .* done=\([0-9]*\) .*/\1/p' "$dir/run.log" | tail -n 1)
    sums=$(for rank in 0 1 2; do sed -n "s/.* trainer: rank=$rank .* sum=\([0-9]*\) .*/\1/p" "$dir/run.log" | tail -n 1; done | xargs)
    job=uninterrupted options=()
    ranks_start 3 --steps "$steps" --step-ms 0 --sharded "$1"
    ranks_end 0
    sums_right
    same "sums of the job and of an uninterrupted run of $steps steps" "$sums" "$(for rank in 0 1 2; do field $rank sum; done | xargs)"
    job=chaos-$([ "$1" = 1 ] && echo sharded || echo replicated)
}

# rounds_under_kills ROUNDS SEED - in both layouts at once.
rounds_under_kills() {
    local layout

    for layout in replicated sharded; do
        lane_start "$dir/$layout" chaos "$layout" "$1" "$2"
    done
    lanes_end
    grep -h '^lane: ' "${lane_logs[@]}"
    holds "rounds" "$(lane_sum rounds)" -ge $((2 * $1))
    holds "faults" "$(lane_sum faults)" -ge $((2 * $1 / 10)) # or nothing was tested
    holds "kills of the broker" "$(lane_sum kills)" -ge 1
    finish "$(lane_sum rounds) rounds in a row, both layouts, under $(lane_sum faults) random kills and stops of ranks and broker \
($(lane_sum commits) committed, $(lane_sum aborts) aborted, $(lane_sum launches) launches): the job went on after each and ended \
with the weights of an uninterrupted run, invariants hold in $(lane_sum databases) readings of the database"
}
