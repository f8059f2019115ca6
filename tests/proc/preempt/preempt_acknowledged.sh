#!/bin/bash
# Azure is told to go ahead where that was asked for: once, and only after the checkpoint is committed.
. "$(dirname "$0")/../lib.sh"

mkfifo "$dir/orders"
"$TESTS_DIR/proc/prog_metadata" "$dir/url" <"$dir/orders" >"$dir/metadata.log" 2>&1 &
metadata=$!
started+=($metadata)
exec 7>"$dir/orders"
printf '%s\n' '/metadata/instance/compute/name 200 vmss_3' \
    '/metadata/scheduledevents 200 {"DocumentIncarnation":1,"Events":[]}' >&7
await "the service's address" test -s "$dir/url"

broker_start
options=(--steps 100000 --barrier 1 --say-every 20)
export MUSTER_NOTICE_SOURCES=azure MUSTER_RUNTIME_DIR=$dir/run MUSTER_AZURE_ACKNOWLEDGE=1
MUSTER_AZURE_ENDPOINT=$(cat "$dir/url")
export MUSTER_AZURE_ENDPOINT
ranks_start 2
await "step 20" rank_said 1 'at step 20$'
printf '/metadata/scheduledevents 200 %s\n' '{"DocumentIncarnation":2,"Events":[{"EventId":"1","EventType":"Preempt","EventStatus":"Scheduled","ResourceType":"VirtualMachine","Resources":["vmss_3"],"NotBefore":"'"$(date -u -d '+20 seconds' '+%a, %d %b %Y %H:%M:%S GMT')"'"}]}' >&7
all_preempted
committed_whole "$saved"
same_why
says "$story" azure preempt "step $saved"
echo posts >&7
await "the service's count" grep -q POSTs "$dir/metadata.log"
same "acknowledgements" "$(sed 's/,.*//' "$dir/metadata.log")" '1 POSTs'
acknowledged=$(sed 's/.* //' "$dir/metadata.log")
holds "ms from the commit to the acknowledgement" \
    $((acknowledged - $(query "SELECT ended_unix_ms FROM round WHERE state = 'committed'"))) -ge 0
finish "acknowledged: Azure is told to go ahead once, by the process that asks for the host"
