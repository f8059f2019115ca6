# lib_put_back.sh - sourced behind lib.sh: checkpoints that the broker's records do not have, for they are an older copy, or
# were not kept; what a launch says then, and whether what it says helps.
not_checked=1 # the processes that wrote what was found on disk are in no row
listen=$ipc   # the same broker's again

# records_keep, records_put_back - a copy of the database, and back to it. No broker is there.
records_keep() {
    cp "$db" "$dir/copy.db"
    [ ! -f "$db-wal" ] || cp "$db-wal" "$dir/copy.db-wal"
}
records_put_back() {
    rm -f "$db-wal" "$db-shm"
    cp "$dir/copy.db" "$db"
    [ ! -f "$dir/copy.db-wal" ] || cp "$dir/copy.db-wal" "$db-wal"
}

# on_disk STEP - its directory has a manifest.
on_disk() { [ -f "${checkpoints:-$dir/checkpoints-$job}/$1/manifest.json" ]; }

# kept_at_20 - a launch of one rank, which saves at step 20, and a copy of the database of that time. The broker is there again.
kept_at_20() {
    ranks_start 1 --steps 30 --save-every 20
    saved=0
    all_finished 30
    broker_stop
    records_keep
    broker_start
}

# files - all that is in the checkpoint directory.
files() { (cd "$checkpoints" && find . -type f | sort | xargs -d '\n' cksum); }

# refused RESUME NEWEST - the newest launch, of one rank, ended, and said beside which one it would resume.
refused() {
    ranks_end 1
    says "$(error_of 0)" MUSTER_E_RESTORE \
        "resume at step $1, and knows of no checkpoint of job $job at step $2"
}

# imports COUNT NEWEST - the newest launch, of one rank, ended: it gave the broker so many of which its database is a copy.
imports() {
    local plural=s

    [ "$1" != 1 ] || plural=
    ranks_end 42
    says "$(error_of 0)" MUSTER_PREEMPTED "knows of no checkpoint of job $job at step $2" \
        "restored from an older copy. Rank 0 imports what is there, and the next launch resumes from the newest"
    says "$(cat "$(log 0)")" " $1 checkpoint$plural of job $job .* imported"
}

# import_as_told COUNT [REFUSAL] - what the refusal (of the newest launch) says to run takes so many.
import_as_told() {
    local refusal=${2:-$(error_of 0)} command plural=s

    [ "$1" != 1 ] || plural=
    command=$(grep -o "muster import '[^']*'" <<<"$refusal") || fail "no command in $refusal"
    eval "\"\$muster\" ${command#muster } --broker '$broker'" >"$dir/import.txt" 2>&1 || fail "import: $(cat "$dir/import.txt")"
    says "$(cat "$dir/import.txt")" "^$1 checkpoint$plural of job $job "
}

# rules_hold NAME... - of lib_invariants.sh.
rules_hold() {
    local name

    for name; do
        same "what breaks $name" "$("$sql" "$db" "${invariant[$name]}")" ''
    done
}

saves() { "$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "a save came to nothing"; }
has_ended() { [ "$(query "SELECT count(*) FROM generation WHERE job = '$job' AND state <> 'ended'")" = 0 ]; }
is_decided() { [ "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'decided'")" = 1 ]; }

# second_save_is_decided - step 20 is saved, and the save of step 40 is on its way.
second_save_is_decided() {
    options=(--save-every 20 --save-fn 1)
    ranks_start 1 --steps 30
    saved=0
    all_finished 30
    ranks_start 1 --steps 50 --save-late-rank 0 --save-late-ms 2000
    await "a round to be decided" is_decided
}

# two_saves_are_found - what a running launch of one rank saved since the copy, in rounds 2 and 3, the newest at step $newest:
# it ends, the next one imports them, and the one after it resumes from the newest.
two_saves_are_found() {
    ranks_end 42
    says "$(error_of 0)" MUSTER_PREEMPTED "does not know how this launch went on"
    await "the launch to be over" has_ended
    same "the numbers of what it forgot" "$(query "SELECT generation, round FROM job WHERE job = '$job'")" '2|3'
    same "committed" "$(committed)" 20
    ranks_start 1 --steps $((newest + 10))
    imports 2 "$newest"
    saved=$newest
    ranks_start 1 --steps $((newest + 10))
    all_finished $((newest + 10))
}
