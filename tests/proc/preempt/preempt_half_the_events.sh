#!/bin/bash
# PUB/SUB loses every second frame: nodes see gaps, fill them, and act in order.
# Rules: R1.5.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_lossy.sh"

preempt_with_losses 2
finish "every second frame on PUB dropped, both layouts: all save at one step, resume there, and lose nothing"
