#!/bin/bash
# top.sh - `muster top` and --watch on real terminals of 80x24 and 200x60: every line fits, keys work, a resize is
# followed, and the terminal is given back. Tables fit, too. Colours are on a terminal only, and NO_COLOR turns them off.
. "$(dirname "$0")/lib_top.sh"
for kind in small some hostile; do "$rows" $kind "$dir/$kind.db"; done

# --- a job of four
begin 80 24 top --db small.db
await 'RANK +HOST'
fits 80 24
for text in '^words +running' 'no round is open|round [0-9]+ \(' '4 ranks: ' '^      0 [tjskqlx.]{4}$' '^ +3 ' JOURNAL 'sorted by rank'; do
    shows "$text" || fail "no \"$text\""
done
keys s s s s # keys that come at once are all taken
await 'sorted by lag'
keys '?'
await 'any key goes on'
keys x
await 'sorted by lag'
keys q
ends

# --- 256 ranks, and a window that changes
begin 200 60 top --db some.db
await '^256 ranks: '
fits 200 60
shows '^      0 [tjskqlx.]{192}$' || fail "the grid is not as wide as the screen"
terminal resize-window -t top -x 80 -y 24
await '^    216 [tjskqlx.]{40}$'
fits 80 24
keys q
ends

# --- names with HTML or escapes command nothing
begin 80 24 top --db hostile.db
await 'script'
fits 80 24
keys q
ends

# --- --watch
begin 80 24 nodes --db some.db --watch
await '[0-9]+ more lines'
keys Down Down
await '^ *1 +|^ *0 +'
keys q
ends
begin 200 60 status words --db small.db --watch
await '^job words: running'
keys q
ends
begin 200 60 nodes --db small.db --watch
await 'HEARD +ROUND +SOURCES'
terminal resize-window -t top -x 80 -y 24
await 'HEARD +SOURCES' # a column less
keys q
ends
for words in 'status --json --watch' 'status words --exit-code --watch'; do
    begin 80 24 "$words --db small.db"
    await 'for programs: leave one'
    await 'ended with 2'
done
code=0
"$MUSTER" top --db "$dir/small.db" </dev/null >"$dir/out" 2>&1 || code=$?
[ $code = 2 ] && grep -q 'this is none' "$dir/out" || { echo "FAILED: top without a terminal: $code"; cat "$dir/out"; exit 1; }

# --- tables for a narrow terminal: no line is wrapped
for words in status nodes rounds checkpoints events 'round 3'; do
    begin 80 24 "$words --db small.db"
    await 'ended with 0'
    terminal capture-pane -p -J -t top | sed 's/ *$//' >"$dir/table"
    [ "$(grep -nx 'ended with 0' "$dir/table" | cut -d: -f1)" -gt 2 ] || fail "$words prints no table"
    awk 'length($0) > 80 { exit 1 }' "$dir/table" || fail "$words is wider than 80 columns"
done

# --- colours
begin 80 24 status --db small.db
await 'ended with 0'
terminal capture-pane -p -e -t top | grep -q $'\033\[32mrunning' || fail "the state has no colour"
begin 80 24 'status --db small.db | cat'
await 'ended with 0'
! terminal capture-pane -p -e -t top | grep -q $'\033\[32m' || fail "a pipe got colours"
variables=(-e NO_COLOR=1)
begin 80 24 status --db small.db
await 'ended with 0'
! terminal capture-pane -p -e -t top | grep -q $'\033\[32m' || fail "NO_COLOR is not obeyed"
echo "top, --watch, tables and colours do as they say"
