#!/bin/bash
# A failure's text of 5000 bytes reaches every rank as the first 4 KiB, cut between two characters.
. "$(dirname "$0")/../lib.sh"

broker_start
ranks_start 3 --steps 100000 --mode 1 --barrier 1 --fail-rank 1 --fail-step 20 --fail-text 5000
ranks_end 1
for rank in 0 2; do
    text=$(error_of "$rank" | sed 's/.* text=//')
    bytes=$(printf %s "$text" | wc -c)
    holds "bytes of the text at rank $rank" "$bytes" -gt 4000
    holds "bytes of the text at rank $rank" "$bytes" -le 4095
    printf %s "$text" | iconv -f UTF-8 -t UTF-8 >/dev/null || fail "rank $rank: the text was cut inside a character"
    says "$(printf %s "$text" | sed 's/€//g')" '^rank 1 failed at step (19|20): x$'
    says "$(error_of "$rank")" 'peer=1 code=7 ' 'step=19|step=20'
done
finish "a long error text reaches all ranks, 4 KiB of it, as valid UTF-8"
