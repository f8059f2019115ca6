#!/bin/bash
# Keep policies on disk, through a broker: what no policy wants is deleted by the chief's hand, and after the job is
# opened again they go on where they were. Steps here are counts of steps done.
. "$(dirname "$0")/../lib.sh"
trainer=$TESTS_DIR/proc/prog_keep

# saves KEEP STEPS FINAL [TRASH] - one launch of one rank, which saves after each of its STEPS steps.
saves() {
    ranks_start 1 "$1" '' "${4:-}" "$2" "$3"
    ranks_end 0
}

# kept STEPS - these and no others are committed, are directories with a manifest, and nothing is on its way out.
kept() {
    local root=$dir/checkpoints-$job

    same "committed checkpoints of job $job" "$(committed)" "$1"
    same "directories of job $job" "$(cd "$root" && ls -d [0-9]* 2>/dev/null | sort -n | xargs)" "$1"
    same "manifests of job $job" "$(cd "$root" && ls -d [0-9]*/manifest.json 2>/dev/null | wc -l)" "$(wc -w <<<"$1")"
    same "leftovers of job $job" "$(find "$root/.muster" -mindepth 1 ! -name JOB ! -name NUMBER | wc -l)" 0
    same "deletions that wait" "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND state = 'deleting'")" 0
}

broker_start

job=latest # keep 2 over 5 saves
saves 'latest 2' 5 0
kept '4 5'
saves 'latest 2' 2 0
kept '6 7'

job=every # and those that 4 divides
saves 'latest 2; every 4 from 1' 11 0
kept '1 5 9 10 11'
saves 'latest 2; every 4 from 1' 3 0
kept '1 5 9 13 14'

job=none # keep 0: the newest goes once a newer one commits, or at the close
saves 'latest 0' 3 0
kept '3'
saves 'latest 0; every 3 from 1' 5 1
kept '4 7'
same "what is resumed" "$(ask latest --broker "$broker" | cut -d' ' -f1)" 7

job=near # every 3 counted from the last kept
saves 'near 3' 6 0
kept '1 4 6'
saves 'near 3' 4 1
kept '1 4 7 10'

job=given
saves 'steps 2 4 6' 7 1
kept '2 4 6'

job=best # the loss of step n is 7n mod 10, and a half
saves 'best 2 least loss' 5 1
kept '2 3'

job=trash
saves 'latest 1' 3 0 old
kept '3'
same "what was moved away" "$(cd "$dir/checkpoints-trash/old" && ls | xargs)" '1.1-1 2.1-2'
[ -f "$dir/checkpoints-trash/old/2.1-2/manifest.json" ] || fail "the folder has no whole checkpoint"

job=pinned
saves '' 2 0
ask pin 1 --broker "$broker" >"$dir/pin.txt"
says "$(cat "$dir/pin.txt")" 'Checkpoint 1 of job pinned is not deleted until it is let go'
same "pinned" "$(ask checkpoints --json --broker "$broker" | grep -c '"pinned": true')" 1
saves 'latest 1' 2 0
kept '1 4'
code=0
ask unpin 9 --broker "$broker" 2>"$dir/pin.txt" || code=$?
same "the exit code of unpin of what is not there" "$code" 1
says "$(cat "$dir/pin.txt")" 'job pinned has no checkpoint 9'
says "$(ask unpin 4 --broker "$broker")" 'Checkpoint 4 of job pinned was held by nobody, nor by operator'
says "$(ask unpin 1 --id me --broker "$broker")" 'Checkpoint 1 of job pinned is held by operator \(until it is let go\), and not by me'
ask pin 1 --id ci --lease 600 --broker "$broker" --json >"$dir/pin.txt"
until_ms=$(query "SELECT until_unix_ms FROM pin WHERE job = '$job' AND id = 'ci'")
says "$(tr -d ' \n' <"$dir/pin.txt")" "\"pinned\":1,\"id\":\"ci\",\"until_unix_ms\":$until_ms\}"
says "$(ask unpin 1 --broker "$broker")" 'Checkpoint 1 of job pinned is held no more by operator, and still by ci \(until .*[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\)\.'
says "$(ask unpin 1 --broker "$broker")" 'Checkpoint 1 of job pinned is held by ci \(until .*\), and not by operator'
says "$(ask checkpoints --json --broker "$broker" | tr -d ' \n')" '"pins":\[\{"id":"ci","until_unix_ms":[0-9]{13}\}\]'
says "$(ask unpin 1 --id ci --broker "$broker")" 'Checkpoint 1 of job pinned is held no more by ci\.'
saves 'latest 1' 1 0
kept '5'

job=leased # a pin that falls by itself
saves '' 2 0
code=0
ask pin 1 --lease 0 --broker "$broker" 2>"$dir/pin.txt" || code=$?
same "the exit code of a lease of 0 seconds" "$code" 2
says "$(cat "$dir/pin.txt")" 'give more than 0 seconds'
says "$(ask pin 1 --lease 1 --id reader --broker "$broker")" '.muster unpin 1 --job leased --id reader. lets it go'
unpinned() { [ "$(query "SELECT count(*) FROM pin WHERE job = '$job'")" = 0 ]; }
await "the end of a lease" unpinned
saves 'latest 1' 1 0
kept '3'

job=timed # the broker decides when: as soon as the save before is done
ranks_start 1 '' 'continuous-ms 0' '' 400000 0
decided_by_time() { [ "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND cause = 'period'")" -ge 2 ]; }
await "saves by time" decided_by_time
kill -KILL "${pids[0]}"
rank_ends 0 137

finish "keep 2 of 5: the last two; keep 2 and every 4; keep 0 at the close; every 3 from the last kept; given steps; best 2 by metric" \
    "each of them in the list, on disk without leftovers, and after the job was opened again" \
    "a folder that takes what is deleted; a pinned checkpoint stays until it is let go or its lease is over" \
    "a save policy of time opens rounds by itself"
