#!/bin/bash
# Lists, `why`, `import`, `verify` and a broker's start take time in proportion to their rows: ten times as many take at most
# thirty times as long, whatever else runs here.
. "$(dirname "$0")/../lib.sh"

[ -z "${INSTRUMENT_FLAGS:-}" ] || { say "skipped: built with sanitizers (run it with the preset release)" && exit 77; }

code=0
"$BUILD_DIR/tests/bench/bench_rows" limits >"$dir/limits" || code=$?
say "$(cat "$dir/limits")"
same "exit code of the benchmark" "$code" 0
finish "$(sed -n 's/^ *10000 rows: //p' "$dir/limits")"
