# `muster run`: without a broker, the manifests in MUSTER_CHECKPOINT_DIR say whether restarts bring progress.
. "${BASH_SOURCE%/*}/lib_run.sh"
export MUSTER_BROKER="ipc://$dir/nobody" MUSTER_CHECKPOINT_DIR="$dir/checkpoints"
mkdir "$MUSTER_CHECKPOINT_DIR"

manifest() { # STEP JOB - a checkpoint as the library writes it
    mkdir -p "$MUSTER_CHECKPOINT_DIR/$1"
    sed "s/@STEP@/$1/g; s/@JOB@/$2/g" >"$MUSTER_CHECKPOINT_DIR/$1/manifest.json" <<'JSON'
{"muster_manifest": 1, "job": "@JOB@", "generation": 1, "round": 1, "step": @STEP@, "layout": "replicated", "world_size": 1,
 "epoch": -1, "step_in_epoch": -1, "data_position": -1, "total_run_calls": @STEP@, "created_unix_ms": 1, "cause": "termination",
 "shards": [{"rank": 0, "incarnation": "0000000000000001", "files": [{"path": "s.safetensors", "bytes": 1, "checksum": "xxh3-128:00000000000000000000000000000000"}]}]}
JSON
}

# Each launch leaves a newer checkpoint: four preemptions in a row are progress.
export -f manifest
run --backoff-ms 60000 --job words -- bash -c '[ $MUSTER_RESTART_COUNT = 4 ] && exit 0; manifest $((MUSTER_RESTART_COUNT * 10 + 10)) words; exit 42'
expect_code 0 "four preemptions with progress"

# None does, those of another job do not count, nor does what is no manifest.
rm -rf "$MUSTER_CHECKPOINT_DIR"/*
run --backoff-ms 1 --job words -- bash -c 'manifest $((MUSTER_RESTART_COUNT * 10 + 10)) others; mkdir -p "$MUSTER_CHECKPOINT_DIR/9$MUSTER_RESTART_COUNT"
    echo "{" >"$MUSTER_CHECKPOINT_DIR/9$MUSTER_RESTART_COUNT/manifest.json"; exit 42'
expect_code 42 "no progress"
expect err "3 restarts in a row brought no newer checkpoint"
[ "$(grep -c "restarting" "$dir/err")" = 3 ] || fail "it did not stop after three restarts"
expect err "each launch was told to end: this host or this job is being taken away"
grep -q "launch 3 begins in 0.0" "$dir/err" || fail "no word about the wait before a restart after a preemption without progress"
