#!/bin/bash
# Two brokers were told to listen at one address. The standby cannot take over, says why and gives the lease back, so the
# active one, which only slept, goes on.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen=$ipc
sharer_start a
sharer_is_active a
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
kill -STOP "${broker_pids[a]}"
sharer_ends b 1
says "$(cat "$dir/b.log")" 'MUSTER_E_BUSY: another process listens at .*; stop it, or listen elsewhere'
kill -CONT "${broker_pids[a]}"
sharer_is_active a 2
job=after saved=0
ranks_start 1 --steps 5 --step-ms 1
all_finished 5
sharer_stop a
finish "a standby with the address of the active broker ends, and the active one goes on"
