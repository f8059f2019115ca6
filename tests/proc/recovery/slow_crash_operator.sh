#!/bin/bash
# The broker is killed at every point that a round by operator comes by.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash.sh"

kills_min=220 # may grow, never fall

crash_everywhere operator $kills_min
