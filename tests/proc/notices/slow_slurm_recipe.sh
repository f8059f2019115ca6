#!/bin/bash
# The recipe of muster-slurm(7) by the installed packages, under a real Slurm: a key, the broker as its unit starts it, and
# job.sbatch with a program that was built with libmuster-dev, and with one in Python. Both reach their time limit, are
# queued again, and finish. A program that fails is a failed job to Slurm, too. The files that `muster init` writes run as
# well. `muster run --launcher -- srun` starts a program in Python again inside its allocation.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_slurm.sh"
slurm_nodes=5
chroot_layer=1

packages_take
cp "$SOURCE_DIR"/build/package/packages/python3-muster_*.deb "$dir/packages"
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
cat >"$dir/train.py" <<'END_TRAIN'
import sys, time, numpy, muster
w = numpy.zeros(4)
with muster.Node(state=muster.TrainingState(w=w), layout="sharded") as node:  # a rank's own state
    print(f"python: rank {node.rank} of {node.world_size} resumed at {node.resumed_step}", flush=True)
    while node.steps_done < int(sys.argv[1]):
        w += 1 + node.rank
        time.sleep(0.05)
        node.step()
print(f"python: finished, w {w[0]:.0f}")
END_TRAIN
slurm_submit python n4 -t 1 --signal=TERM@20 "$dir/job.sbatch" python3 "$dir/train.py" 1400 # 70 s at least
cat >"$dir/launcher.sbatch" <<END_LAUNCHER
#!/bin/bash
export MUSTER_KEY_FILE=/shared/muster.key MUSTER_CHECKPOINT_DIR=/shared/launcher
mkdir -p "\$MUSTER_CHECKPOINT_DIR"
muster run --launcher -- srun --kill-on-bad-exit=0 python3 "$dir/train.py" 400
END_LAUNCHER
slurm_submit launcher n5 "$dir/launcher.sbatch"
inside sh -c 'cd /shared && muster init first --hosts --job words' >"$dir/init.log"
slurm_submit first n3 /shared/first/job.sbatch

await "Slurm's word on what fails" job_is fails FAILED
await "the job of muster init" job_is first COMPLETED
same "ranks of the job of muster init" "$(grep -c '^demo: resumed at 0, weights' "$dir/first.log")" 2

asks() { # NAME VERB ARGS...
    local job=slurm-${id[$1]}
    shift
    inside env MUSTER_KEY_FILE=/shared/muster.key muster "$@" --broker tcp://127.0.0.1:7700 --job "$job"
}
of_python() { sed -n "s/^python: $2/\1/p" "$dir/$1.log" | sort -n | tr '\n' ' '; } # NAME, what with one group
trains_by_srun() { asks launcher status 2>/dev/null | grep -Eq '^ *step *[1-9][0-9]'; }
await "training by muster run" trains_by_srun
asks launcher notify 1 >"$dir/notify.log"
await "Slurm's word on muster run" job_is launcher COMPLETED
says "$(cat "$dir/launcher.log")" '2 launches, 1 preemption, 0 failures'
same "what its ranks computed" "$(of_python launcher 'finished, w \(.*\)')" '400 800 '
says "$(asks launcher why)" 'No step is lost'

waits_again() { job_is "$1" PENDING; }
patience=150
for name in trains python; do
    await "$name to be queued again" waits_again "$name"
    same "its exit code for muster" "$(asks "$name" status "slurm-${id[$name]}" --exit-code >/dev/null || echo $?)" 42
    inside scontrol update "JobId=${id[$name]}" TimeLimit=10
    await "the second life of $name" is_started_again "$name"
done
for name in trains python; do
    await "Slurm's word on $name" job_is "$name" COMPLETED
    same "restarts of $name" "$(restarts "$name")" 1
    story=$(asks "$name" why)
    says "$story" 'Generation 2 resumed at step [0-9]+, from checkpoint' 'No step is lost'
    asks "$name" status "slurm-${id[$name]}" --exit-code >/dev/null || fail "exit code $? of $name, which has finished"
done
same "ranks that finished with the model" "$(grep -c 'finished, model 3\.0000$' "$dir/trains.log")" 2
same "what the ranks of Python computed" "$(of_python python 'finished, w \(.*\)')" '1400 2800 '
finish "Slurm $(inside slurmd -V): the recipe by the packages: $(grep -o 'Generation 2 resumed.*' <<<"$story")"
