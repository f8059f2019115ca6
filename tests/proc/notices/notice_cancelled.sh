#!/bin/bash
# An operator takes back what a file says: it stays taken back while the file says the same, and counts again with its
# next text, or when it was gone and is there again.
. "$(dirname "$0")/../lib.sh"

notices() { query "SELECT group_concat(state, ' ') FROM (SELECT state FROM notice WHERE job = '$job' ORDER BY received_unix_ms)"; }
notices_are() { [ "$(notices)" = "$1" ]; }
measured() { [ "$(query "SELECT MIN(step_p95_ms) > 0 FROM progress WHERE job = '$job'")" = 1 ]; }
take_back() {
    "$muster" notify --cancel "$(query "SELECT id FROM notice WHERE job = '$job' AND state = 'active'")" --broker "$broker" \
        --job "$job" >>"$dir/answers.log"
}

broker_start
export MUSTER_NOTICE_SOURCES="file:$dir/notice" MUSTER_RUNTIME_DIR="$dir/runtime"
ranks_start 1 --steps 1000000 --step-ms 5 --say-every 100 --grace-ms 3600000
await "training" rank_said 0 'at step 100$'
"$muster" save --wait --broker "$broker" --job "$job" >>"$dir/answers.log" # a save is measured: it can be planned
await "a measured step" measured
echo "+3000 terminate first reason" >"$dir/notice"
await "the notice" notices_are active
take_back
since=$(now_ms)
await "two looks of the source" passed_ms "$since" 2500 # it looks each second, and at each change
same "notices" "$(notices)" cancelled
echo "+3000 terminate another reason" >"$dir/notice"
await "the other notice" notices_are 'cancelled active'
take_back
since=$(now_ms)
await "two looks of the source" passed_ms "$since" 2500
same "notices" "$(notices)" 'cancelled cancelled'
rm "$dir/notice"
echo "+3000 terminate another reason" >"$dir/notice.new"
since=$(now_ms)
await "a look without the file" passed_ms "$since" 1500
mv "$dir/notice.new" "$dir/notice"
await "the notice that its source says anew" notices_are 'cancelled cancelled active'
take_back
not rank_is_gone 0 || fail "the rank left although all was taken back"
"$muster" notify 0 --broker "$broker" --job "$job" >>"$dir/answers.log"
await "the end" rank_is_gone 0
last=$(query "SELECT id FROM notice WHERE job = '$job' AND state = 'served'")
code=0
"$muster" notify --cancel "$last" --broker "$broker" --job "$job" 2>"$dir/late.log" || code=$?
same "the exit code of a withdrawal that comes too late" "$code" 4
grep -q "too late to withdraw notice '$last': round 2 was opened for it, so its save is made" "$dir/late.log" ||
    fail "who withdrew too late was told: $(cat "$dir/late.log")"
finish "what an operator took back of a file's notice stays so until the file says something else, or is not there and then is again"
