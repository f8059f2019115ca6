#!/bin/bash
# A relay lies about its ranks, each job with a lie of its own: answers and numbers that are mixed up, one rank in the name of
# another, halves of bundles, other versions. Each time a sentence says what happened, and what was committed stays as it is.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

liar_said() { grep -q -- "$2" "$dir/$1.log"; }
liar_start() { # NAME LIE
    "$TESTS_DIR/proc/prog_lying_relay" "$(relay_at "$1")" "$broker" "$2" </dev/null >"$dir/$1.log" 2>&1 &
    relay_pid[$1]=$!
    started+=("$!")
    await "relay $1 to listen" liar_said "$1" ready
}

# The relay is honest until there is a checkpoint: $before is what that looks like.
options=(--steps 100000 --step-ms 20 --save-every 10 --sharded 1)
saved_once() { [ -n "$(committed)" ]; }
saved_again() { [ "$(newest)" -ge $((newest_of[$job] + 30)) ]; } # more than what was under way
newest() { committed | sed 's/.* //'; }
declare -A first_of newest_of before
files() { (cd "$dir/checkpoints-$job" && find . -path "./$1/*" -type f ! -path './.muster/*' -exec cksum {} + | sort); }
begin() { # JOB RELAY WORLD
    local head=$broker

    job=$1
    broker=$(relay_at "$2")
    ranks_start "$3"
    broker=$head
    keep
}
is_saved() { # JOB
    recall "$1"
    await "a checkpoint of job $job" saved_once
    first=$(committed)
    first=${first%% *}
    first_of[$job]=$first
    await "its manifest" committed_whole "$first"
    before[$job]=$(files "$first")
    says "${before[$job]}" manifest.json
}

# What was committed first is as it was, and the next launch, without the relay, resumes at the newest.
goes_on() {
    local rank

    for rank in "${!pids[@]}"; do
        rank_is_gone "$rank" || kill_child "${pids[rank]}" "rank $rank of job $job"
    done
    same "checkpoint ${first_of[$job]} of job $job" "$(files "${first_of[$job]}")" "${before[$job]}"
    saved=$(committed)
    same "the first checkpoint of job $job that counts" "${saved%% *}" "${first_of[$job]}"
    saved=${saved##* }
    ranks_start "${#pids[@]}" --steps $((saved + 20))
    all_finished $((saved + 20))
}
either_said() { rank_said 0 "$1" || rank_said 1 "$1"; }
broker_said() { grep -Eq -- "$1" "$dir/musterd.log"; }
cut_off() {
    for rank in 0 1; do
        rank_said $rank 'no broker was heard for 5 s' || rank_said $rank 'status=MUSTER_E_PEER' || return 1
    done
}
ended_by_a_peer() { rank_said 0 'status=MUSTER_E_PEER' && rank_said 1 'status=MUSTER_E_PEER'; }

broker_start
lies=(answers routes name bytes entries version frame)
for lie in "${lies[@]}"; do
    liar_start "$lie" "$lie"
    begin "$lie" "$lie" 2
done
liar_start jobs answers # one rank of each of two jobs
for job in one another; do
    begin "$job" jobs 1
    await "job $job to be there" saved_once
done
for job in "${lies[@]}" one another; do is_saved "$job"; done
for job in "${lies[@]}" one another; do newest_of[$job]=$(newest); done
for lie in "${lies[@]}" jobs; do kill -USR1 "${relay_pid[$lie]}"; done
for job in "${lies[@]}" one another; do
    recall "$job"
    case $job in
    answers) # 60 s for a save that comes no further, and 62 s more until a node waits for its verdict no longer
        patience=125 await "a save that was skipped" either_said 'was NOT saved: rank'
        ;;
    one | another) await "what is of another job" rank_said 0 'dropped a message for job .*: a relay gave it to the wrong rank' ;;
    routes) await "two ranks that no broker lets in again" cut_off ;;
    name) await "a rank that ends" either_said 'error: .*status=MUSTER_\(E_PEER\|PREEMPTED\)' ;;
    entries) await "the next checkpoint, as in a network that loses messages" saved_again ;;
    version)
        await "the refusal" liar_said version 'refused: the sender speaks protocol version 258, here it is 1: install'
        await "the end of both" ended_by_a_peer
        ;;
    frame)
        await "the broker to count them" broker_said 'dropped messages: .* [1-9][0-9]* of another version'
        await "the end of both" ended_by_a_peer
        ;;
    bytes)
        await "the broker to count them" broker_said 'dropped messages: .* [1-9][0-9]* not framed as ours'
        await "the end of both" ended_by_a_peer
        ;;
    esac
    goes_on
done
jobs_resumed 9
finish "a relay that lies in 8 ways: each time a sentence says so, what was committed is as it was, and the next launch resumes"
