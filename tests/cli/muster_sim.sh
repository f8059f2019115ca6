# muster-sim, the program that runs seeds of the simulator: its arguments, what it prints, its exit code.
set -u
sim=${TESTS_DIR:?where the test programs are}/sim/prog_muster_sim
dir=$(mktemp -d "${TMPDIR:-/tmp}/muster-sim-cli.XXXXXX")
trap 'rm -rf "$dir"' EXIT

fail()
{
    echo "FAIL: $*"
    tail -n 20 "$dir/out" "$dir/err"
    exit 1
}

# run CODE ARGUMENT...
run()
{
    local wanted=$1 code=0
    shift
    "$sim" "$@" >"$dir/out" 2>"$dir/err" || code=$?
    [ $code = "$wanted" ] || fail "muster-sim $*: exit $code, not $wanted"
}

expect()
{
    grep -Eq -- "$1" "$dir/out" || fail "$2: no line like '$1'"
}

# What it does not understand it does not run.
for wrong in "" "--focused" "--frobnicate" "--seed" "--seed 12x" "--seed -1" "--seeds 5" "--seeds 5..3" "--seeds 1..2 --nodes x" \
    "--seeds 1..2 --nodes 65" "--seeds 1..2 --layout round" "--seeds 1..2 --async 2" "--seeds 1..2 --mutant 999" \
    "--seeds 1..2 --minutes soon"; do
    run 2 $wrong
    sed -n 2p "$dir/err" | grep -q '^usage: muster-sim ' || fail "no usage for '$wrong'"
    [ ! -s "$dir/out" ] || fail "something ran for '$wrong'"
done

wrong() { # LINE ARGUMENT... - the first line says which word is wrong, and what it may be
    local line=$1
    shift
    run 2 "$@"
    [ "$(head -n 1 "$dir/err")" = "muster-sim: $line" ] || fail "muster-sim $*: not '$line' but '$(head -n 1 "$dir/err")'"
}
wrong 'there is no argument "--bogus"' --seeds 1..2 --bogus
wrong '--seed is "x"; give a number from 0 to 18446744073709551614' --seed x
wrong '--seeds is "5..1"; give A..B, two such numbers with A not above B' --seeds 5..1
wrong '--nodes is "99"; give a number from 1 to 64' --seeds 1..2 --nodes 99
wrong '--layout needs sharded or replicated' --seeds 1..2 --layout
wrong 'say which seeds: --seed N or --seeds A..B' --focused
run 0 --help
expect '^usage: muster-sim ' "help"

# Many seeds: no story, and what they met.
run 0 --seeds 21..24 --nodes 3 --minutes 5
expect '^seeds 4, simulated [1-9][0-9]* s, events [1-9][0-9]*, nodes [1-9]' "seeds"
expect '; rounds [0-9]+, commits [0-9]+ \(' "rounds"
expect '^aborts:' "aborts"
expect '^reasons: .* [1-9]' "reasons of aborts"
expect '^faults: node crash [0-9]+, .*frame lost, up [1-9]' "faults by kind"
expect ' s, 0 of 4 seeds failed$' "the result"
! grep -q 'BROKER starts' "$dir/out" || fail "a story of many seeds"

# One seed: its story, the same to the letter each time; without --minutes nothing is left out.
run 0 --seed 22 --nodes 3
expect '^ +0\.000 BROKER 0 starts, start 1$' "the story"
grep -v 'seeds failed$' "$dir/out" >"$dir/first"
run 0 --seed 22 --nodes 3
grep -v 'seeds failed$' "$dir/out" | cmp - "$dir/first" || fail "seed 22 has two stories"
run 0 --seeds 21..24 --minutes 0
expect ' s, 0 of 0 seeds failed$' "no time"

# A broken build (a mutant): the seed is named, and how to replay it; that breaks the same.
run 1 --seeds 31..40 --mutant 2 --nodes 4 --layout sharded
expect '^seed [0-9]+, at [0-9]+ ms: I3 broken: ' "what was broken"
broken=$(grep '^seed [0-9]*, at' "$dir/out")
replay=$(sed -n 's,^replay it: ./tools/dev sim ,,p' "$dir/out")
[ "$replay" = "--seed $(tr -dc 0-9 <<<"${broken%%,*}") --nodes 4 --layout sharded --mutant 2" ] || fail "replay it with '$replay'"
run 1 $replay
grep -qxF -- "$broken" "$dir/out" || fail "the replay is another: $broken"

# With --keep-going all are run and each that fails is named.
run 1 --seeds 31..33 --mutant 2 --nodes 4 --keep-going
expect ' s, ([123]) of 3 seeds failed$' "all were run"
[ "$(grep -c '^seed [0-9]*, at' "$dir/out")" = "$(sed -n 's/.* s, \([0-9]*\) of 3 seeds failed$/\1/p' "$dir/out")" ] ||
    fail "not each that failed is named"
