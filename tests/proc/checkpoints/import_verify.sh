#!/bin/bash
# `muster verify` names every damaged file; `muster import` rebuilds a lost database from the manifests alone, and the
# job goes on from its newest checkpoint.
. "$(dirname "$0")/../lib.sh"
trainer=$TESTS_DIR/proc/prog_keep
not_checked=1 # the processes that wrote what was found on disk are in no row
root=$dir/checkpoints-$job
custom='{"who": ["me", null], "n": 1.5}'

broker_start
ranks_start 1 '' '' '' 3 0 "$custom"
ranks_end 0
export MUSTER_TEST_PROGRESS_MS=0 # else nothing is told of what takes less than a second
ask verify --broker "$broker" >"$dir/verify.txt" 2>"$dir/progress.txt" || fail "$(cat "$dir/verify.txt")"
says "$(cat "$dir/progress.txt")" '^muster: verify: [0-9.]+ k?B of [0-9.]+ k?B'
says "$(cat "$dir/verify.txt")" '^3 checkpoints of job job, 3 files, .* read: 0 damaged'
says "$(tr -d '\n ' <"$root/2/manifest.json")" '"metrics":\{"loss":4.5\}' '"custom":\{"n":1.5,"who":\["me",null\]\}'

rows="SELECT round, generation, step, state, cause, layout, world_size, shards_required, bytes, path, epoch,
    step_in_epoch, data_position, replace(metrics, ' ', '') FROM checkpoint ORDER BY round"
files="SELECT * FROM shard_file ORDER BY round, rank, path"
before=$(query "$rows") && before_files=$(query "$files")
before_custom=$(query "SELECT round, custom FROM checkpoint_custom ORDER BY round")

broker_stop
rm -rf "${db%/*}"
broker_start
code=0
ask import "$dir" --broker "$broker" 2>"$dir/wrong.txt" || code=$?
same "exit code without checkpoints" "$code" 1
says "$(cat "$dir/wrong.txt")" 'holds no checkpoint'
"$muster" import "$root" --broker "$broker" --job other 2>"$dir/wrong.txt" || code=$?
same "exit code of an import as another job" "$code" 4
says "$(cat "$dir/wrong.txt")" 'is the checkpoint directory of job job, not of job other'
mkdir "$root/notes" # a user's own, and no checkpoint
ask import "$root" --broker "$broker" >"$dir/import.txt" 2>"$dir/progress.txt" || fail "$(cat "$dir/progress.txt")"
says "$(cat "$dir/progress.txt")" '^muster: import: 0 of 3$'
unset MUSTER_TEST_PROGRESS_MS
says "$(cat "$dir/import.txt")" '^3 checkpoints of job job from .* are in the broker.s records now, 0 were there already'
says "$("$muster" status job --broker "$broker")" '^job job: imported' 'what .muster import. found on disk'
says "$("$muster" why --job job --broker "$broker")" 'Round 3 was found on disk by .muster import.: its checkpoint at step 3 is whole'
same "rows" "$(query "$rows")" "$before"
same "files" "$(query "$files")" "$before_files"
same "custom metadata" "$(query "SELECT round, replace(custom, ' ', '') FROM checkpoint_custom ORDER BY round")" \
    "$(sed 's/|.*/|{"n":1.5,"who":["me",null]}/' <<<"$before_custom")"
"$muster" import "$root" --broker "$broker" >"$dir/import.txt"
says "$(cat "$dir/import.txt")" '^0 checkpoints .*, 3 were there already'
cp -r "$root/3" "$root/9"
without_checksum "$root/9/manifest.json"
sed -i 's/"job": "job"/"job": "zzz"/' "$root/9/manifest.json"
code=0
ask import "$root" --broker "$broker" >"$dir/import.txt" 2>&1 || code=$?
same "exit code with another job's checkpoint" "$code" 4
says "$(cat "$dir/import.txt")" '/9 is left out: it is of job zzz, and the directory is of job job' \
    '^0 checkpoints of job job .*, 3 were there already'
rm -rf "$root/9"
ask verify --broker "$broker" >/dev/null || fail "what was imported is not whole"
ranks_start 1 '' '' '' 1 0
ranks_end 0
says "$(cat "$(log 0)")" '^resumed 3'
same "committed" "$(committed)" '1 2 3 4'

# damage: every file is named, and no other
shard=$(echo "$root"/2/shard-*.safetensors)
damage_byte "$shard" -1
code=0
ask verify --broker "$broker" >"$dir/verify.txt" || code=$?
same "exit code of verify with an old one damaged" "$code" 1
says "$(cat "$dir/verify.txt")" '^The job resumes from checkpoint 4 \(step 4\), which is whole: it needs nothing'
same "advice for a job that needs none" "$(grep -c '^Put what is damaged' "$dir/verify.txt")" 0
ask verify 2 --broker "$broker" >"$dir/verify.txt" && fail "checkpoint 2 is damaged"
says "$(cat "$dir/verify.txt")" 'needs nothing of it if checkpoint 4 \(step 4\), from which it resumes, is whole: .muster verify 4 --job job. reads that'
truncate -s -1 "$root"/3/shard-*.safetensors
echo '{' >"$root/4/manifest.json"
code=0
ask verify --broker "$broker" >"$dir/verify.txt" || code=$?
same "exit code of verify" "$code" 1
same "damages" "$(grep -c '^damaged: ' "$dir/verify.txt")" 3
says "$(cat "$dir/verify.txt")" "^damaged: .*/2/shard-.*step 2" "^damaged: .*/3/shard-.*step 3" "^damaged: .*/4/manifest.json"
says "$(cat "$dir/verify.txt")" '^Put what is damaged .*--fallback. .*next older'
same "damages that say it twice" "$(grep -c '^damaged: .*is damaged' "$dir/verify.txt")" 0
same "as JSON" "$(ask verify --json --broker "$broker" | grep -c '"what"')" 3
ask verify 1 --db "$db" >"$dir/verify.txt" || fail "checkpoint 1 is whole: $(cat "$dir/verify.txt")"

# what a manifest says is what was saved: restore goes by it
cp "$root/1/manifest.json" "$dir/whole.json"
for edit in 's/"epoch": -*[0-9]*/"epoch": 7/' 's/"data_position": -*[0-9]*/"data_position": 96/' \
    's/xxh3-128:[0-9a-f]*/xxh3-128:00000000000000000000000000000000/' 's/"bytes": /"bytes": 1/'; do
    sed "$edit" "$dir/whole.json" >"$root/1/manifest.json"
    code=0
    ask verify 1 --broker "$broker" >"$dir/verify.txt" || code=$?
    same "exit code of verify with $edit" "$code" 1
    says "$(cat "$dir/verify.txt")" "^damaged: .*/1/manifest.json .*is not (the one that|what) was saved"
done
cp "$dir/whole.json" "$root/1/manifest.json"
ask verify 1 --broker "$broker" >"$dir/verify.txt" || fail "checkpoint 1 is whole again: $(cat "$dir/verify.txt")"

# what is not there is not counted as read; a lost directory is one damage, and one lost file is one
mv "$root/1" "$dir/away"
code=0
ask verify 1 --broker "$broker" >"$dir/verify.txt" || code=$?
same "exit code of verify with a directory that is not there" "$code" 1
says "$(cat "$dir/verify.txt")" "^damaged: $root/1 \\(checkpoint 1, step 1\\): its directory is not there" \
    '^1 checkpoint of job job, 0 files, 0 B read: 1 damaged' '^Put .* back from a copy: there is no older checkpoint'
not grep -q -e --fallback "$dir/verify.txt" || fail "an older checkpoint is advised, and there is none: $(cat "$dir/verify.txt")"
mv "$dir/away" "$root/1"
mv "$root"/1/shard-*.safetensors "$dir/away"
code=0
ask verify 1 --broker "$broker" >"$dir/verify.txt" || code=$?
same "exit code of verify with a file that is not there" "$code" 1
says "$(cat "$dir/verify.txt")" "^damaged: $root/1/shard-" '^1 checkpoint of job job, 0 files, 0 B read: 1 damaged'
mv "$dir/away" "$root/1/$(sed -n 's/.*"\(shard-[^"]*safetensors\)".*/\1/p' "$root/1/manifest.json")"
ask verify 1 --broker "$broker" >"$dir/verify.txt" || fail "checkpoint 1 is there again: $(cat "$dir/verify.txt")"
says "$(cat "$dir/verify.txt")" '^1 checkpoint of job job, 1 file, .* read: 0 damaged'
same "advice about nothing" "$(wc -l <"$dir/verify.txt")" 1

# one that was committed and never got its name gets it by the next launch
broker_stop
rm -rf "${db%/*}" "$root"/[234]
unnamed=$root/.muster/$(sed -n 's/.*"generation": \([0-9]*\),.*/\1/p' "$dir/whole.json")-$(sed -n 's/.*"round": \([0-9]*\),.*/\1/p' "$dir/whole.json")
mv "$root/1" "$unnamed"
broker_start
"$muster" import "$root" --broker "$broker" >"$dir/import.txt"
says "$(cat "$dir/import.txt")" '^1 checkpoint of job job'
ranks_start 1 '' '' '' 1 0
ranks_end 0
says "$(cat "$(log 0)")" '^resumed 1'
[ -f "$root/1/manifest.json" ] || fail "checkpoint 1 has no name: $(ls -R "$root")"
[ ! -e "$unnamed" ] || fail "checkpoint 1 is in $unnamed still"

job=busy trainer=$TESTS_DIR/proc/prog_trainer world=1
rank_start 0 --steps 100000 --step-ms 5 --save-every 5 --until-file "$dir/enough"
await "a checkpoint" test -e "$dir/checkpoints-$job/5/manifest.json"
code=0
ask import "$dir/checkpoints-$job" --broker "$broker" >"$dir/import.txt" 2>&1 || code=$?
same "exit code while the job runs" "$code" 4
says "$(cat "$dir/import.txt")" 'is running; end it, then import'
touch "$dir/enough"
rank_ends 0 0


# all that is damaged of one checkpoint of several shards: two of them and its manifest
job=many options=(--sharded 1 --save-every 1)
ranks_start 3 --steps 2
ranks_end 0
for rank in 0 2; do
    truncate -s -1 "$dir/checkpoints-$job"/1/shard-0000$rank-*
done
sed -i 's/"step": *1,/"step":3,/' "$dir/checkpoints-$job/1/manifest.json"
code=0
ask verify --broker "$broker" >"$dir/verify.txt" || code=$?
same "exit code of verify with three damages in one checkpoint" "$code" 1
says "$(cat "$dir/verify.txt")" "^damaged: .*/1/shard-00000" "^damaged: .*/1/shard-00002" "^damaged: .*/1/manifest.json"
same "damages in one checkpoint" "$(grep -c '^damaged: ' "$dir/verify.txt")" 3
finish "a lost database is rebuilt from the manifests: rows and files as before, with metrics and custom metadata; the job resumes" \
    "a checkpoint without its name is imported, resumed from and named" \
    "verify names a flipped bit, a cut file, a broken and a changed manifest, a lost file and a lost directory, each by its path, and nothing else; it counts what it read"
