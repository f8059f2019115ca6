#!/bin/bash
# As manager_turn.sh, with saves that last longer than the way to a save step may: each is committed at the first attempt.
own_ms=66000
. "$(dirname "$0")/manager_turn.sh"
