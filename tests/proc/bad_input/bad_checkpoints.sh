#!/bin/bash
# Checkpoints that are not what they were, and states that are not what was saved: each is refused by its name, a reader's
# memory stays as it was, `muster verify` names the same file, and the older checkpoint is restored as before.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

reader() { MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" "$@" 2>&1; }

broker_start
options=(--every 1)
ranks_start 1 --steps 2
ranks_end 0
place=$dir/checkpoints-$job/1
shard=$(echo "$place"/shard-*.safetensors)
name=${shard##*/}
cp -a "$place" "$dir/whole"

# refuses WORDS... - of what is on disk now; and puts back what was there.
refuses() {
    local answer code=0

    answer=$(reader restore 1) && fail "\"$1\": it was restored"
    says "$answer" "$@"
    ask verify --broker "$broker" >"$dir/verify.txt" && fail "\"$1\": verify finds nothing"
    same "damages of \"$1\"" "$(grep -c '^damaged: ' "$dir/verify.txt")" 1
    says "$(cat "$dir/verify.txt")" "^damaged: $place/"
    same "the older one, beside \"$1\"" "$(reader restore 0)" 'restored 0 right'
    rm -rf "$place"
    cp -a "$dir/whole" "$place"
}
poke() { printf "$2" | dd of="$shard" bs=1 seek="$1" conv=notrunc status=none; } # OFFSET BYTES

# --- states that are not what was saved
for each in 'missing|"absent" is not in the file' 'type|"value" is I64 \[\] in the file and F64 \[\] in this program' \
    'shape|"value" is I64 \[\] in the file and I64 \[2\] in this program'; do
    answer=$(reader unlike "${each%%|*}" 1) && fail "a state that is unlike was restored: $each"
    says "$answer" MUSTER_E_RESTORE "tensor ${each#*|}" 'nothing was restored' '^memory untouched$'
done

# --- shards
size=$(stat -c %s "$shard")
truncate -s -1 "$shard" && refuses "$name has $((size - 1)) bytes, $size were saved: it was cut"
printf x >>"$shard" && refuses "$name has $((size + 1)) bytes, $size were saved: it was added to"
: >"$shard" && refuses "$name has 0 bytes"
poke $((size - 90)) '\377' && refuses "$name is damaged.*checksum"
poke 0 '\377\377\377\377\377\377\377\177' && refuses "$name is damaged"
poke 20 'Z' && refuses "$name is damaged in its header"
rm "$shard" && refuses "$name is missing"
rm "$shard" && ln -s "$dir/whole/$name" "$shard" && refuses "$name is a symbolic link"
rm "$shard" && mkdir "$shard" && refuses "$name is not a regular file"

# --- manifests
manifest=$place/manifest.json
rm "$manifest" && refuses 'unfinished, or its manifest.json was lost'
: >"$manifest" && refuses 'manifest.json'
printf '{"muster_manifest": 1' >"$manifest" && refuses 'manifest.json'
sed -i 's/"muster_manifest": *1/"muster_manifest":9/' "$manifest" && refuses MUSTER_E_VERSION manifest.json
sed -i 's/"job": *"job"/"job":"another"/' "$manifest" && refuses 'not what was saved.*checksum'
without_checksum "$manifest" && sed -i 's/"job": *"job"/"job":"another"/' "$manifest" && refuses MUSTER_E_JOB 'of job "another", this is job "job"'
without_checksum "$manifest" && sed -i 's/"step": *2/"step":3/; s/"total_run_calls": *2/"total_run_calls":3/' "$manifest" && refuses 'has step 3, step 2 was to be restored'
sed -i "s|$name|../0/$name|" "$manifest" && refuses manifest.json 'leaves the directory'
sed -i 's/xxh3-128:[0-9a-f]\{32\}/md5:0/' "$manifest" && refuses manifest.json 'checksum'
same "what is whole" "$(reader restore 1)" 'restored 1 right'
finish "a state that lacks a tensor or has another type or shape is refused by the tensor's name, its memory untouched" \
    "shards cut, added to, emptied, flipped, replaced, gone; manifests broken, newer, of another job, step or place: refused by name"
