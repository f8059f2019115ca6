#!/bin/bash
# TAKE_OVERS times (60) the active one of two brokers is killed, told to end, or stopped for up to 10 s, or its database
# is stopped, restarted or cut off, or the database's clock jumps by an hour, each at a moment of chance beside a job that
# saves every 5 steps and is preempted now and then. Each 50th broker is stopped for 60 s. No round is decided twice, and
# each job resumes where the record says. Says how long each cause took.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

take_overs=${TAKE_OVERS:-60}
causes=(kill kill end stop connections server database-stops clock-forth clock-back)
postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
declare -A took
active=a standby=b epoch=0

# active_now - which of both has the lease; the row names its process.
owner() { asked "SELECT owner FROM muster_lease WHERE ends > clock_timestamp()"; }
has_active() { [ -n "$(owner)" ]; }
lease_epoch() { asked "SELECT epoch FROM muster_lease"; }
is_taken() { [ "$(lease_epoch)" -gt "$epoch" ] && [ -n "$(owner)" ]; }
is_ready() { [ "$(times_said "$1" 'is ready')" -gt "$2" ]; }
swap() { local was=$active; active=$standby standby=$was; }
await_take_over() { # CAUSE SINCE READY - by the standby
    await "the standby's take-over ($1)" is_ready "$standby" "$3"
    took[$1]+="$(($(now_ms) - $2)) "
    swap
    db=$dir/$active/muster.db
}
some_ms() { sleep "0.$(printf '%03d' $((RANDOM % 700)))"; } # a moment of chance

one_take_over() { # CAUSE
    local ready since dies=

    ready=$(times_said "$standby" 'is ready')
    some_ms
    since=$(now_ms)
    case $1 in
    kill)
        kill -KILL "${broker_pids[$active]}"
        await_take_over kill "$since" "$ready"
        sharer_start "$standby"
        ;;
    end)
        kill -TERM "${broker_pids[$active]}"
        await_take_over end "$since" "$ready"
        sharer_ends "$standby" 0
        sharer_start "$standby"
        ;;
    stop)
        kill -STOP "${broker_pids[$active]}"
        await_take_over stop "$since" "$ready"
        some_ms
        kill -CONT "${broker_pids[$standby]}"
        ;;
    long-stop)
        kill -STOP "${broker_pids[$active]}"
        await_take_over long-stop "$since" "$ready"
        sleep 60
        kill -CONT "${broker_pids[$standby]}"
        ;;
    clock-forth | clock-back) # a lease that another clock gave, and that nobody renews any more, or somebody does
        ((RANDOM % 2)) || dies=yes
        [ -z "$dies" ] || kill -KILL "${broker_pids[$active]}"
        asked "UPDATE muster_lease SET ends = ends $([ "$1" = clock-back ] && echo + || echo -) interval '1 hour'"
        [ -z "$dies" ] || {
            await_take_over "$1" "$since" "$ready"
            sharer_start "$standby"
        }
        ;;
    connections) # the active one goes on
        asked "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'musterd'" >/dev/null
        ;;
    server)
        postgres restart -m immediate
        ;;
    database-stops) # for less than a lease
        pkill -STOP -P "$(head -n 1 "$postgres_dir/data/postmaster.pid")" || true
        some_ms
        pkill -CONT -P "$(head -n 1 "$postgres_dir/data/postmaster.pid")" || true
        ;;
    esac
    # Whoever it is by now: one of them is active, and the other one a standby.
    await "an active broker" has_active
    case $(owner) in *"process ${broker_pids[$standby]} on"*) swap && db=$dir/$active/muster.db ;; esac
}

RANDOM=${SEED:-$$}
say "SEED=$RANDOM"
sharer_start a
sharer_is_active a
sharer_start b
sharer_says b standby
options=(--steps 100000 --barrier 1 --save-every 5)
job=long
ranks_start 2 --step-ms 20 --signal-rank 1 --signal-step 1500
for ((i = 0; i < take_overs; i++)); do
    cause=${causes[RANDOM % ${#causes[@]}]}
    ((i % 50 != 25)) || cause=long-stop
    one_take_over "$cause"
    if rank_is_gone 0; then
        all_preempted
        committed_whole "$saved"
        ranks_start 2 --step-ms 20 --signal-rank 1 --signal-step $((saved + 1500))
    fi
done
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
same "rounds that were decided twice" "$(query "SELECT count(*) FROM (SELECT job, round FROM event
    WHERE kind = 'decision' GROUP BY job, round HAVING count(*) > 1)")" 0
for cause in "${!took[@]}"; do
    say "take-over after $cause, ms: $(xargs -n 1 <<<"${took[$cause]}" | sort -n | awk '{ v[NR] = $1 }
        END { printf "%d times, median %d, p99 %d, most %d", NR, v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)], v[NR] }')"
done
say "longest time of a rank between two steps of 20 ms, ms, in each launch: $(grep -h '^trainer: rank=0' "$dir"/long-*-rank0.log |
    sed 's/.* held=\([0-9]*\).*/\1/' | sort -n | xargs)"
sharer_stop "$standby"
sharer_stop "$active"
finish "$take_overs faults of brokers that share a database, and each job went on where the record says"
