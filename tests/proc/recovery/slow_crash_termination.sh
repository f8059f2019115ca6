#!/bin/bash
# The broker is killed at every point that a round by termination comes by.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash.sh"

kills_min=240 # may grow, never fall

crash_everywhere termination $kills_min
