#!/bin/bash
# The tests of the store once more, on the other floor: the records are in PostgreSQL, and each opening makes its file again.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
not_checked=1 passed=0
for test in store store_forget store_given store_read; do
    asked "DO 'BEGIN FOR i IN 1..99 LOOP EXECUTE ''CREATE SCHEMA ${test}_'' || i; END LOOP; END'"
    MUSTER_TEST_SHARED="$shared&options=-csearch_path%3D${test}_" "$TESTS_DIR/unit/test_$test" >"$dir/$test.log" 2>&1 ||
        { cat "$dir/$test.log"; fail "test_$test"; }
    passed=$((passed + $(grep -c '^\[       OK' "$dir/$test.log")))
done
finish "$passed tests of the store, with the records in PostgreSQL"
