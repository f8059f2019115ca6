#!/bin/sh
# patches.sh - each patch of tests/mutants applies to the file that it names: else a mutant that nobody makes is never seen.
set -eu
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
for patch in tests/mutants/*.patch; do
    file=$(sed -n 's/^+++ b\///p' "$patch")
    if ! patch -s --fuzz=0 -r - -o "$out" "$file" "$patch" >/dev/null 2>&1; then
        echo "$patch does not apply to $file: make it again from the file as it is"
        failed=1
    fi
done
exit $failed
