#!/bin/bash
# The first ten minutes: muster demo proves itself, muster init writes what a broker and a job need, the broker takes
# that, the job trains, and muster doctor names what is missing, each with what mends it.
. "$(dirname "$0")/../lib.sh"
export PATH="$(dirname "$muster"):$(dirname "$musterd"):$PATH" HOME=$dir/home XDG_RUNTIME_DIR=$dir/run
unset XDG_STATE_HOME SLURM_JOB_ID
mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
cd "$dir"
not_checked=1

# --- the demo, whatever the environment wants of other jobs
long=MUSTER_$(printf 'X%.0s' {1..80})
env TMPDIR=/tmp MUSTER_NOTICE_SOURCES=none MUSTER_RANK=5 "$long=1" "$muster" demo >"$dir/demo.log" 2>&1 ||
    fail "muster demo: $(cat "$dir/demo.log")"
says "$(cat "$dir/demo.log")" 'saved at step' 'No step is lost' 'bit for bit' 'Nothing was' 'muster init'
[ -z "$(find /tmp -maxdepth 1 -name 'muster-demo-*' -newer "$dir/home" -user "$(id -u)" -print -quit)" ] || fail "the demo left its directory"

# --- without a broker: doctor says so
code=0
"$muster" doctor --broker "$ipc" --timeout 1 >"$dir/doctor.log" 2>&1 || code=$?
same "exit code of a doctor that finds something" $code 1
says "$(cat "$dir/doctor.log")" '^MEND  broker .*; see .man musterd.$' '^ok    identity'

# --- init
places=(--broker "$ipc" --db "$dir/state/muster.db") # for root the default ones are the host's
"$muster" init first --job words "${places[@]}" >"$dir/init.log" || fail "muster init: $(cat "$dir/init.log")"
says "$(cat "$dir/init.log")" 'first/musterd.conf' 'first/musterd.service' 'first/job.sh' 'Next' "^  musterd --config '$dir/first/musterd.conf'$" "^  '$dir/first/job.sh'$"
if "$muster" init first "${places[@]}" >"$dir/again.log" 2>&1; then fail "a file was overwritten"; fi
says "$(cat "$dir/again.log")" 'first/musterd.conf.*nothing of yours is overwritten'
"$musterd" --config first/musterd.conf --check-config >"$dir/checked" || fail "the configuration is refused"
says "$(cat "$dir/checked")" "^listen = $ipc" "^db = $dir/state/muster.db" '^log_level = info'
"$musterd" --config "$dir/checked" --check-config | cmp - "$dir/checked" || fail "what was printed is another configuration"
echo 'listne = x' >>first/musterd.conf
code=0
"$musterd" --config first/musterd.conf --check-config 2>"$dir/wrong.log" || code=$?
same "exit code for a wrong configuration" $code 2
says "$(cat "$dir/wrong.log")" 'musterd.conf line [0-9]+: .*listen'
sed -i '$d' first/musterd.conf
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no "$dir/first/musterd.service" 2>"$dir/unit.log" || fail "the unit: $(cat "$dir/unit.log")"
fi

# --- the broker and the job as init says
export MUSTER_BROKER=$ipc
"$musterd" --config first/musterd.conf </dev/null >"$dir/musterd.log" 2>&1 &
broker_pid=$!
started+=("$broker_pid")
await "the broker" grep -q 'is ready' "$dir/musterd.log"
first/job.sh >"$dir/job.log" 2>&1 </dev/null &
started+=($!)
job_pid=$!
running() { "$muster" status words | grep -q '^job words: running'; }
wrong() { ("${@:2}") >"$dir/wrong.log" 2>&1 && fail "not refused: ${*:2}"; says "$(cat "$dir/wrong.log")" "$1"; }
await "the job to run" running
wrong 'job words has no rank 99: its ranks are 0 to [0-9]+$' "$muster" notify 99 --job words
[ "$(stat -f -c %T "$dir")" = tmpfs ] || export MUSTER_CHECKPOINT_DIR=$dir/first/checkpoints # of memory it says something else
MUSTER_JOB=words "$muster" doctor >"$dir/doctor.log" 2>&1 || fail "doctor: $(cat "$dir/doctor.log")"
says "$(cat "$dir/doctor.log")" '^ok    broker .*1 job running' '^ok    clock' '^ok    directory' '^ok    notices'
"$muster" doctor --json | python3 -c 'import json, sys
findings = json.load(sys.stdin)["findings"]
assert all(f["ok"] for f in findings) and {"broker", "clock", "directory"} <= {f["what"] for f in findings}'
code=0
MUSTER_CHECKPOINT_DIR=/proc/nowhere "$muster" doctor >"$dir/doctor.log" || code=$?
same "exit code for a directory that cannot be written" $code 1
says "$(cat "$dir/doctor.log")" '^MEND  directory .*/proc cannot hold a checkpoint'
code=0
MUSTER_RANK=5 MUSTER_WORLD_SIZE=2 "$muster" doctor >"$dir/doctor.log" || code=$?
says "$(cat "$dir/doctor.log")" '^MEND  identity'
code=0
MUSTER_NOTICE_SOURCES=auto,ecc2 "$muster" doctor >"$dir/doctor.log" || code=$?
same "exit code for a source that there is not" $code 1
says "$(cat "$dir/doctor.log")" '^MEND  notices +"ecc2" is no notice source'
# --- what is wrong is named as the user gave it; a rank, above, while the job runs
wrong 'job words has no committed checkpoint 99 to pin: .muster checkpoints --job words. lists them$' "$muster" pin 99 --job words
wrong '^muster: MUSTER_TIMEOUT is a number .*"soon"$' env MUSTER_TIMEOUT=soon "$muster" status
wrong '^muster: MUSTER_BROKER is "nowhere", which is not a broker' env MUSTER_BROKER=nowhere "$muster" status
wait "$job_pid" || fail "the example job: $(cat "$dir/job.log")"
says "$(cat "$dir/job.log")" 'demo: resumed at 0, weights'

# --- for other hosts, too: a key
unset MUSTER_BROKER
"$muster" init hosts --hosts --job words --db "$dir/hosts.db" >"$dir/init.log" || fail "muster init --hosts: $(cat "$dir/init.log")"
[ "$(stat -c %a hosts/words.key)" = 600 ] || fail "the key can be read by others"
"$musterd" --config hosts/musterd.conf --check-config | grep -qx 'listen = tcp://0.0.0.0:7700' || fail "not for other hosts"
grep -q "MUSTER_KEY_FILE='$dir/hosts/words.key'" hosts/job.sh || fail "the job does not name its key"
code=0
"$muster" init again --hosts --job words --db "$dir/hosts.db" >"$dir/again.log" 2>&1 || code=$?
same "exit code for a key that there is" $code 4
says "$(cat "$dir/again.log")" 'there is a key words already: choose another name'
[ -z "$(ls again)" ] || fail "half of the files were written"
finish "the first ten minutes go as the pages say"
