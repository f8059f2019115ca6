#!/bin/bash
# The broker is killed at every point that a round by policy comes by.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash.sh"

kills_min=200 # may grow, never fall

crash_everywhere policy $kills_min
