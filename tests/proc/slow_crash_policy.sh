#!/bin/bash
# The broker is killed at every point that a round by policy comes by.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_crash.sh"

crash_everywhere policy
