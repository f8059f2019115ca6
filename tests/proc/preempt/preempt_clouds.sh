#!/bin/bash
# Metadata services in a whole job: nodes says what each stands at, one process a host asks, and an announced end
# stops all ranks with the service's own words.
. "$(dirname "$0")/../lib.sh"

mkfifo "$dir/orders"
"$TESTS_DIR/proc/prog_metadata" "$dir/url" <"$dir/orders" >"$dir/metadata.log" 2>&1 &
started+=($!)
exec 7>"$dir/orders"
answers() { printf '%s\n' "$*" >&7; } # PATH STATUS BODY
gce=/computeMetadata/v1/instance
answers $gce/preempted 200 FALSE
answers $gce/maintenance-event 200 NONE
answers $gce/machine-type 200 projects/1/machineTypes/n1-standard-8
answers /metadata/instance/compute/name 200 vmss_3
answers /metadata/scheduledevents 200 '{"DocumentIncarnation":1,"Events":[]}'
answers /latest/meta-data/instance-id 200 i-0123456789abcdef0 # another cloud's, for tencent
await "the service's address" test -s "$dir/url"
url=$(cat "$dir/url")

broker_start
options=(--steps 100000 --barrier 1 --say-every 20)
export MUSTER_NOTICE_SOURCES=gce,azure,tencent,alibaba MUSTER_RUNTIME_DIR=$dir/run
export GCE_METADATA_HOST=${url#http://} MUSTER_AZURE_ENDPOINT=$url MUSTER_TENCENT_ENDPOINT=$url
export MUSTER_ALIBABA_ENDPOINT=http://127.0.0.1:9
ranks_start 2
await "step 20" rank_said 1 'at step 20$'

nodes() { "$muster" nodes --json --broker "$broker" --job "$job"; }
sources_say() { # SQL over n (nodes) and s (their sources)
    local json

    json=$(nodes) || return 1
    query "SELECT $1 FROM json_each('${json//\'/\'\'}', '\$.nodes') n, json_each(n.value, '\$.sources') s $2"
}
states() { sources_say "group_concat((s.value ->> 'name') || '=' || (s.value ->> 'state'), ' ')" \
    "WHERE n.value ->> 'rank' = $1 AND s.value ->> 'name' NOT IN ('signal', 'callback')"; }
is() { [ "$(states "$1")" = "$2" ]; }
of() { sources_say "s.value ->> '$2'" "WHERE n.value ->> 'rank' = 0 AND s.value ->> 'name' = '$1'"; } # SOURCE FIELD
text_has() { grep -q "$2" <<<"$(of "$1" text)"; }

for rank in 0 1; do
    await "rank $rank's sources" is $rank 'gce=healthy azure=healthy tencent=absent alibaba=absent'
done
holds "azure's last success" "$(of azure ok_unix_ms)" -gt $(($(now_ms) - 60000))
holds "tencent never answered" "$(of tencent ok_unix_ms)" -eq -1
await "tencent's reason" text_has tencent another
holds "tencent's next try" "$(of tencent retry_ms)" -gt 300000
says "$(nodes)" gce azure

# what it says about another machine is none of ours, and a busy service is said and asked again
answers /metadata/scheduledevents 200 '{"DocumentIncarnation":2,"Events":[{"EventId":"1","EventType":"Reboot","EventStatus":"Started","ResourceType":"VirtualMachine","Resources":["vmss_4"],"NotBefore":""}]}'
answers $gce/preempted 503 maintenance
await "gce's state" is 1 'gce=degraded azure=healthy tencent=absent alibaba=absent'
await "gce's reason" text_has gce 503
holds "gce's next try" "$(of gce retry_ms)" -le 1200
says "$("$muster" nodes --broker "$broker" --job "$job")" 'gce degraded \(well [0-9]+ s ago\)' 'tencent absent,'
answers $gce/preempted 200 FALSE
await "gce again" is 1 'gce=healthy azure=healthy tencent=absent alibaba=absent'

answers $gce/preempted 200 TRUE
all_preempted
committed_whole "$saved"
same_why
says "$story" 'Compute Engine preempts' gce preempt "step $saved"
exec 7>&-
finish "clouds: states in nodes, an announced preemption ends the job with its own words"
