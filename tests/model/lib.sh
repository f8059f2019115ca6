#!/bin/bash
# lib - searches tests/model/round.pml, or what $model names, with Debian's spin, one configuration after the other, and prints a line for each.
#
#   must_hold NAME -D...            every state is searched and no assertion fails
#   must_end NAME -D...             no cycle: what the model's head says about progress stands on that
#   must_fail NAME WHAT -D...       the assertion WHAT fails: a control, or a place that must be reached
#   within SECONDS MB               all searches together took no more processor time, none more memory
#   verdict [STATES]                exit status of the script; fewer states in all than these are a failure
#
# A search that was cut off (depth, memory, time, a full queue) is a failure: it would have shown nothing. A search takes
# one processor and at most MODEL_MEMORY_MB (1600). The trail of a failure is told in words, and its command is printed.
model=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)/round.pml
memory_mb=${MODEL_MEMORY_MB:-1600}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/muster-model.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failures=0 searches=0 states_all=0 peak_mb=0

command -v spin >/dev/null || { echo "no spin: apt-get install spin"; exit 77; }
compiler=${CC:-cc}
optimise=-O1 # compiling is most of a small search; a large one sets -O2
# everything is global state, so a reduction by independence finds nothing; queues and processes are stored apart
search_flags=(-w -DNOREDUCE -DCOLLAPSE -DSEPQS -DJOINPROCS -DVECTORSZ=1024 "-DMEMLIM=$memory_mb")

printf '%-58s %10s %6s %6s %7s  %s\n' search states depth MB seconds result

generate() { # -D...: pan.c of this configuration
    cd "$scratch" || exit 1
    rm -f pan pan.* ./*.trail
    # spin warns of each `timeout` in a d_step; as its first condition it means the same as outside
    if ! spin -a "$@" "$model" >spin.out 2>&1 || grep -v "'timeout' in d_step sequence" spin.out; then
        cat spin.out
        return 1
    fi
}

search() { # NAME PAN-FLAGS...: sets result, states
    local name=$1 started=$EPOCHREALTIME depth mb
    shift
    searches=$((searches + 1))
    ./pan -m5000 -n -E "$@" >pan.out 2>&1
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out | head -1)
    states=$(printf '%.0f' "${states:-0}")
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' pan.out | head -1)
    mb=$(sed -n 's/^ *\([0-9.]*\)\s*total actual memory usage.*/\1/p' pan.out | head -1)
    states_all=$((states_all + states))
    peak_mb=$(printf '%.0f\n' "$peak_mb" "${mb:-0}" | sort -n | tail -n 1)
    if grep -qE '^pan:[0-9]+: (assertion violated|non-progress cycle)' pan.out; then
        result=$(sed -n 's/.*assertion violated (*\([A-Z0-9]*\).*/\1 fails/p; s/^pan:.*non-progress cycle.*/a cycle/p' pan.out | head -1)
    elif grep -qE 'errors: 0$' pan.out && ! grep -qiE 'too small|not completed|reached -DMEMLIM|out of memory' pan.out; then
        result=holds
    else
        result="cut off: $(grep -iE '^pan|error:' pan.out | head -1)"
    fi
    printf '%-58s %10d %6s %6.0f %7.1f  %s\n' "$name" "$states" "${depth:--}" "${mb:-0}" \
        "$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')" "$result"
}

expect() { # RESULT -D...
    local wanted=$1
    shift
    [ "$result" != "$wanted" ] || return 0
    failures=$((failures + 1))
    echo "  expected: $wanted. Again: spin -a $* $model && cc -O2 -DSAFETY -DNOREDUCE -DCOLLAPSE pan.c -o pan && ./pan -E"
    if ls ./*.trail >/dev/null 2>&1; then
        spin -t -T -k ./*.trail "$@" "$model" | grep -E '^ *(broker|rank)|assert' | sed 's/^ */  /'
    fi
}

must_hold() { # NAME -D...
    local name=$1
    shift
    generate "$@" && "$compiler" "${search_flags[@]}" "$optimise" -DSAFETY -o pan pan.c || { failures=$((failures + 1)); return; }
    search "$name"
    expect holds "$@"
}

must_end() { # NAME -D...
    local name=$1
    shift
    generate "$@" && "$compiler" "${search_flags[@]}" "$optimise" -DNP -DNOFAIR -o pan pan.c || { failures=$((failures + 1)); return; }
    search "$name, no cycles" -l
    expect holds "$@"
}

must_fail() { # NAME WHAT -D...
    local name=$1 what=$2
    shift 2
    generate "$@" && "$compiler" "${search_flags[@]}" -O0 -DSAFETY -o pan pan.c || { failures=$((failures + 1)); return; }
    search "$name"
    expect "$what fails" "$@"
}

# Processor time, compiling included: who else keeps the machine busy is not counted.
within() { # SECONDS MB
    local spent

    times >"$scratch/times" # a pipe would ask a shell that has no children
    spent=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$scratch/times")
    printf '%d s of processor time of %d, at most %d MB of %d\n' "$spent" "$1" "$peak_mb" "$2"
    [ "$spent" -gt 0 ] && [ "$spent" -le "$1" ] && [ "$peak_mb" -gt 0 ] && [ "$peak_mb" -le "$2" ] || failures=$((failures + 1))
}

# The same model has the same states in every run, so their number may only grow: a slip that cuts it down shows.
verdict() {
    if [ "$states_all" -lt "${1:-0}" ]; then
        failures=$((failures + 1))
        printf 'fewer than the %d states that are recorded here: a part of the model is not come by any more\n' "$1"
    fi
    printf '%d searches, %d states, %d not as expected\n' "$searches" "$states_all" "$failures"
    [ "$failures" -eq 0 ]
    exit
}
