#!/bin/bash
# Each message that a client can say, with a key of each role, about its own job and about another, over real connections:
# the broker refuses what tests/support/authority_cells.c says, no less and no more, and every message reaches that table.
. "$(dirname "$0")/../lib.sh"

cd "$dir"
for role in node operator viewer; do
    "$muster" key add "$role" --role "$role" --job "cells-$role" --db "$db" >/dev/null || fail "no key $role"
done
"$muster" key add all --job '*' --role operator --db "$db" >/dev/null
broker_start

total=0
for role in node operator viewer; do
    said=$("$TESTS_DIR/proc/prog_cells" "$broker" "$role.key" another) || fail "the row of a $role: $said"
    total=$((total + ${said% cells}))
done
same "messages that could not be read" "$(broker_counted refused_malformed)" 0
holds "cells" "$total" -ge 200
finish "$total cells: each message by each role, about its own job and another, is taken or refused over a real connection"
