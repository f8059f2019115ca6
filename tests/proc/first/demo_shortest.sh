#!/bin/bash
# The demo at its shortest: with fewer steps it says so, and with so many it proves the same as at its full length.
set -euo pipefail
demo=$SOURCE_DIR/client/examples/demo.sh
code=0
said=$(bash "$demo" "$BUILD_DIR" --steps 63 2>&1) || code=$?
[ "$code" = 2 ] || { echo "FAILED: 63 steps gave exit code $code instead of 2"; exit 1; }
grep -q 'give 64 or more' <<<"$said" || { echo "FAILED: 63 steps were refused with: $said"; exit 1; }
exec bash "$demo" "$BUILD_DIR" --steps 64
