#!/bin/bash
# Signed manifests: a broker with --sign signs what is saved, and whoever has a key file with its signer restores, verifies
# and imports that and nothing else, whatever somebody did who can write the checkpoint directory.
. "$(dirname "$0")/../lib.sh"
cd "$dir"
checkpoints=$dir/checkpoints

# refused CODE TEXT COMMAND... - it ends so and says so.
refused() {
    local wanted=$1 text=$2 code=0 said

    shift 2
    said=$("$@" 2>&1) || code=$?
    same "exit code of $*: $said" "$code" "$wanted"
    says "$said" "$text"
}

# --- a broker that is to sign needs a key for that
refused 1 'sign is missing.*muster key add NAME --job JOB --sign' "$musterd" --db "$db" --listen "$listen" --sign
"$muster" key add own --job '*' --sign --db "$db" >/dev/null
"$muster" key add boss --job '*' --role operator --sign --db "$db" >/dev/null
"$muster" key add plain --job '*' --role operator --db "$db" >/dev/null
same "mode of the key that signs" "$(stat -c %a "$db.sign")" 600
signer=$(sed -n 's/^signer = //p' own.key)
same "digits of the signer" "${#signer}" 64
same "the signer in both files" "$(sed -n 's/^signer = //p' boss.key)" "$signer"
says "$("$muster" key show own.key)" "signer +$signer"
not grep -q signer plain.key || fail "a key file names a signer that nobody asked for"
chmod 644 "$db.sign"
refused 1 "other users can read .*sign" "$musterd" --db "$db" --listen "$listen" --sign
chmod 600 "$db.sign"

# --- a job with its key saves and goes on; its files have checksums that nobody can forge
broker_options=(--sign)
broker_start
export MUSTER_KEY_FILE=$dir/own.key
options=(--step-ms 5 --say-every 10 --sharded 1)
ranks_start 2 --steps 100000
await "steps" rank_said 0 'step 20'
"$muster" save --wait --job "$job" --broker "$broker" --key boss.key >/dev/null || fail "no save"
"$muster" notify 1 --job "$job" --broker "$broker" --key boss.key >/dev/null
all_preempted
committed_whole "$saved"
same "checksums of another kind" "$(query "SELECT count(*) FROM shard_file WHERE checksum NOT LIKE 'blake2b-256:%'")" 0
says "$("$muster" verify --job "$job" --broker "$broker" --key boss.key)" '2 checkpoints.* 0 damaged' \
    '2 manifests are signed; the key is that of your key file'
says "$("$muster" verify --job "$job" --broker "$broker" --key plain.key)" '2 manifests are signed.*not checked'
ranks_start 2 --steps $((saved + 20))
all_finished $((saved + 20))

# --- who trusts another key, or a broker that does not sign, is told at the start
kept=$saved job=else checkpoints=$dir/elsewhere # nobody waits for ranks that are refused
sed "s/^signer = ..../signer = 0000/" own.key >foreign.key
chmod 600 foreign.key
MUSTER_KEY_FILE=$dir/foreign.key ranks_start 1 --steps 10
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_SIGNATURE' 'signs manifests with another key'
broker_stop
broker_options=()
broker_start
job=nobody checkpoints=$dir/nowhere
ranks_start 1 --steps 10
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_SIGNATURE' 'start the broker with .musterd --sign'
broker_stop
broker_options=(--sign)
broker_start
saved=$kept job=job checkpoints=$dir/checkpoints

# --- what somebody puts in its place is not restored, and verify names it
newest=$(ls -d "$checkpoints"/*"$saved")
cp "$newest/manifest.json" "$dir/signed.json"
sed -i '/^ "signature": /d' "$newest/manifest.json"
without_checksum "$newest/manifest.json"
refused 1 'manifest.json.*has no signature' "$muster" verify --job "$job" --broker "$broker" --key boss.key
says "$("$muster" verify --job "$job" --broker "$broker" --key plain.key)" '0 damaged' # nobody asked
ranks_start 2 --steps $((saved + 30))
ranks_end 1
says "$(error_of 0)$(error_of 1)" 'MUSTER_E_SIGNATURE' 'has no signature' 'a key file without its line "signer"'
cp "$dir/signed.json" "$newest/manifest.json"
damage_byte "$newest/manifest.json" -120 # of the signature
refused 1 'is damaged|do not agree' "$muster" verify --job "$job" --broker "$broker" --key boss.key
sed 's/"ed25519:\(.*\)..",$/"ed25519:\1",/' "$dir/signed.json" >"$newest/manifest.json"
refused 1 'do not agree|cut or damaged' "$muster" verify --job "$job" --broker "$broker" --key boss.key
cp "$dir/signed.json" "$newest/manifest.json"
shard=$(find "$newest" -name '*.safetensors' | head -n 1)
damage_byte "$shard" -1000
refused 1 'its checksum is blake2b-256' "$muster" verify --job "$job" --broker "$broker" --key boss.key
damage_byte "$shard" -1000

# --- an empty database takes what this broker signed, and nothing else
broker_stop
mv "$db" "$dir/lost.db"
rm -f "$db"-* "$db.mark"
broker_start
older=$(find "$checkpoints" -mindepth 1 -maxdepth 1 -type d ! -path "$newest" ! -name '.*' | head -n 1)
cp "$older/manifest.json" "$dir/older.json"
sed -i '/^ "signature": /d' "$older/manifest.json"
without_checksum "$older/manifest.json"
refused 4 "left out: .*has no signature" "$muster" import "$checkpoints" --broker "$broker" --key boss.key
same "checkpoints on record" "$(committed)" "$saved"
refused 4 'takes none that it did not sign.*without --sign' "$muster" import "$checkpoints" --broker "$broker" --key plain.key
cp "$dir/older.json" "$older/manifest.json"
"$muster" import "$checkpoints" --broker "$broker" --key boss.key >/dev/null || fail "a signed manifest is not imported"
same "checkpoints on record" "$(committed | wc -w)" 2
ranks_start 2 --steps $((saved + 30))
all_finished $((saved + 30))

not_checked=1 # the record began in the middle
finish "a broker with --sign signs what is saved, and who asks for its signature restores, verifies and imports nothing else"
