#!/bin/bash
# PUB/SUB loses every frame: what nodes must act on reaches them by unicast.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_lossy.sh"

preempt_with_losses 1
finish "every frame on PUB dropped, both layouts: all save at one step, resume there, and lose nothing"
