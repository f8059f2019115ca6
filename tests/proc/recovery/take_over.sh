#!/bin/bash
# A job is given the addresses of two brokers, one by tcp and one by a local socket. The first is killed and the second
# is started: its ranks find it, save on notice there, and resume. The tools take the same list. (One that is frozen:
# shared_take_over.)
. "$(dirname "$0")/../lib.sh"

ask_all() { "$muster" "$@" --broker "$both" --timeout 20; }

# started_with_both - a launch of two ranks that trains; $broker is where the first broker listens.
started_with_both() {
    listen='tcp://127.0.0.1:*'
    broker_start
    first=$broker first_pid=$broker_pid both=$broker,$ipc
    broker=$both
    options=(--steps 100000 --step-ms 10)
    ranks_start 2
    for rank in 0 1; do await "rank $rank to train" rank_said "$rank" '^opened'; done
    says "$(ask_all status "$job")" "job $job: running"
}

# second_takes_over WHAT - at the other address. Heard is on record up to a second later.
second_takes_over() {
    listen=$ipc
    broker_start
    same "the second broker's address" "$broker" "$ipc"
    begun=$(now_ms)
    await "the ranks at the second broker" at_second
    took=$(($(now_ms) - begun))
    say "$1: both ranks were at the second broker $took ms after its start"
    broker=$both
}
at_second() { [ "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND heard_unix_ms >= $begun")" = 2 ]; }

saved_and_resumed() {
    ask_all notify 1 --job "$job" --grace 60 --text "the machine goes away" >/dev/null
    all_preempted
    committed_whole "$saved"
    options=(--steps $((saved + 40)) --step-ms 1)
    ranks_start 2
    all_finished $((saved + 40))
}

job=killed
started_with_both
broker_kill
second_takes_over "after SIGKILL"
saved_and_resumed
broker_stop

# Nobody is there: each address is named with its reason.
code=0
said=$("$muster" status --broker "$both" --timeout 1 2>&1) || code=$?
holds "its exit code" "$code" != 0
says "$said" "no broker answered within 1.0 s: $first \(Connection refused\), $ipc \(no such socket"
finish "a job with two brokers' addresses goes on at the second when the first is killed, and saves and resumes there"
