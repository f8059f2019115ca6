#!/bin/bash
# The recipe of muster-slurm(7) by the installed packages, under a real Slurm: a key, the broker as its unit starts it, and
# job.sbatch with a program that was built with libmuster-dev. Its time ends, it is queued again, and it finishes. What
# fails is a failure to Slurm, too. So it goes with what `muster init` writes there.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_slurm.sh"
slurm_nodes=3
chroot_layer=1

packages_take
slurm_start
inside sh -c 'dpkg -i "$1"/*.deb' - "$dir/packages" >"$dir/dpkg.log" 2>&1 || fail "the packages cannot be installed"

# --- the broker
inside sh -c 'mkdir /shared && cd /shared && muster key add muster --job "slurm-*" --db /var/lib/muster/muster.db' >"$dir/key.log"
read -ra starts <<<"$(inside sed -n 's/^ExecStart=//p' /lib/systemd/system/musterd.service)"
inside "${starts[@]}" </dev/null >"$dir/musterd.log" 2>&1 &
started+=("$!")
await "the broker" grep -q 'is ready' "$dir/musterd.log"

# --- jobs
cp "$SOURCE_DIR/tools/recipes/slurm/job.sbatch" "$dir"
slurm_submit() { # NAME NODE OPTIONS... SCRIPT ARGS...
    local name=$1
    node[$name]=$2
    shift 2
    id[$name]=$(inside env MUSTER_BROKER=tcp://127.0.0.1:7700 sbatch --parsable -w "${node[$name]}" -n 2 -o "$dir/$name.log" "$@")
}
# the program takes a minute at least, so the limit comes first
slurm_submit trains n1 -t 1 --signal=TERM@20 "$dir/job.sbatch" "$dir/minimal"
slurm_submit fails n2 "$dir/job.sbatch" false
inside sh -c 'cd /shared && muster init first --hosts --job words' >"$dir/init.log"
slurm_submit first n3 /shared/first/job.sbatch

await "Slurm's word on what fails" job_is fails FAILED
await "the job of muster init" job_is first COMPLETED
same "ranks of the job of muster init" "$(grep -c '^demo: resumed at 0, weights' "$dir/first.log")" 2

asks() { inside env MUSTER_KEY_FILE=/shared/muster.key muster "$@" --broker tcp://127.0.0.1:7700 --job "slurm-${id[trains]}"; }
waits_again() { job_is trains PENDING; }
patience=150
await "the job to be queued again" waits_again
same "its exit code for muster" "$(asks status "slurm-${id[trains]}" --exit-code >/dev/null || echo $?)" 42
inside scontrol update "JobId=${id[trains]}" TimeLimit=10
await "the second life" is_started_again trains
await "Slurm's word on what trains" job_is trains COMPLETED
same "restarts" "$(restarts trains)" 1
same "ranks that finished with the model" "$(grep -c 'finished, model 3\.0000$' "$dir/trains.log")" 2
story=$(asks why)
says "$story" 'Generation 2 resumed at step [0-9]+, from checkpoint' 'No step is lost'
asks status "slurm-${id[trains]}" --exit-code >/dev/null || fail "exit code $? of a job that has finished"
finish "Slurm $(inside slurmd -V): the recipe by the packages: $(grep -o 'Generation 2 resumed.*' <<<"$story")"
