#!/bin/bash
# The log that brokers share, from both ends at once: who was overtaken adds nothing, and nothing is written twice.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
"$TESTS_DIR/proc/prog_fenced" "$shared" >"$dir/fenced.log" 2>&1 || { cat "$dir/fenced.log"; fail "prog_fenced"; }
not_checked=1
finish "$(grep -c '^\[       OK' "$dir/fenced.log") promises of the shared log"
