#!/bin/bash
# As the handler's local mode: one process and nobody to agree with. It saves and exits by itself, and goes on.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

for form in run check; do # no broker was started
    conform "local-$form" 1 0 --offline --form $form
    ends_whole 1 2 1
done
conform local-twice 1 0 --offline --notices 2 --notice callback
ends_whole 1 3 2
finish "local mode: preempted once and twice, the whole sum, one checkpoint a preemption"
