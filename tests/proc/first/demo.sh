#!/bin/bash
# The demo, shortened: a real training run is preempted at a random rank, and its final weights have the bits of
# an uninterrupted run's. The demo proves that itself and exits non-zero when a proof fails.
set -euo pipefail
exec bash "$SOURCE_DIR/client/examples/demo.sh" "$BUILD_DIR" --layout sharded --steps 96
