#!/bin/bash
# A manager's user counts steps from 0, as the checkpoints' directories do: whatever prints a step gives that number.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

job=counted options=(--every 4)
broker_start
ranks_start 2 --steps 9
ranks_end 0
on_disk 0 4 8
same latest "$("$muster" latest --job "$job" --broker "$broker")" "8 $dir/checkpoints-$job/8"

ranks_start 2 --steps 100000 --step-ms 40 --apart 1 # a rank that is killed in it, and a save that an operator asks for
await "step 20" grep -q '^saved 20$' "$(log 0)"
"$muster" save --job "$job" --broker "$broker" --wait >"$dir/save.txt" 2>&1 || { cat "$dir/save.txt"; fail "no save"; }
saved=$(grep -oE 'step [0-9]+' "$dir/save.txt" | head -1)
holds "the step of: $(cat "$dir/save.txt")" -d "$dir/checkpoints-$job/${saved#step }"
kill -9 "${pids[1]}"
lost() { "$muster" events --job "$job" --broker "$broker" | grep -q 'node lost'; }
await "rank 1 to be lost" lost
rank_ends 0 1 # it hears so, too
step=$(query "SELECT step FROM event WHERE job = '$job' AND kind = 'node lost'")
says "$("$muster" events --job "$job" --broker "$broker")" \
    "node lost +- +1 +$((step - 1))  rank 1 .* was lost at step $((step - 1)) or later"
says "$("$muster" why --job "$job" --broker "$broker")" "was lost at step $((step - 1)) or later"
says "$(cat "$dir/musterd.log")" "generation 2 opened, resumes at step 8 from" "was lost at step $((step - 1)) or later"
for directory in 12 16 20; do
    says "$(cat "$dir/musterd.log")" "committed: checkpoint [0-9]+ at step $directory\$"
done
finish "latest, save, events, why and the broker's log tell a manager's steps by the numbers of its directories"
