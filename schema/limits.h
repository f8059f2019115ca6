/* limits - every bound of muster, with its arithmetic. Times are milliseconds unless named.
 * A bound that two sides must agree on lives here and nowhere else. */
#ifndef SCHEMA_LIMITS_H
#define SCHEMA_LIMITS_H

/* --- sizes -------------------------------------------------------------------------------- */
#define WIRE_VERSION 1
/* The number that HELLO and WELCOME say. 2: REPORT has no number, and events may name who takes no
 * part. */
#define WIRE_SPEAKS 2
/* One frame that a broker takes. Longer things travel in parts. */
#define WIRE_FRAME_MAX 65536
/* One frame that a broker sends. Events are the longest: 16384 members x (1 + 3 + 9 + 1) = 229,376
 * bytes, and their texts. */
#define WIRE_EVENT_MAX 262144
#define WIRE_SEAL 64          /* CURVE puts 33 bytes around a frame */
#define WIRE_DEPTH_MAX 4      /* message > list > entry, and one to spare */
#define WIRE_ITEMS_MAX 131072 /* msgpack items in a frame: 16384 members x 4 + head, rounded up */

/* Bytes, without the end; [A-Za-z0-9._-], not beginning with '.' or '-' */
#define JOB_NAME_MAX 63
#define HOST_MAX 255
#define HOSTS_MAX 4096 /* of one launch: `muster run --nodes` */
#define ENDPOINT_MAX 255
#define BROKERS_MAX 8 /* addresses of brokers that take over from each other */
#define BROKERS_TEXT_MAX (BROKERS_MAX * (ENDPOINT_MAX + 1) - 1) /* ... with a comma between two */
#define PATH_BYTES_MAX 1023                                     /* a checkpoint directory or path */
#define TEXT_MAX 4095 /* error texts, reasons: cut cleanly at a character */
#define NOTICE_ID_MAX 127
#define NAME_MAX_BYTES 63 /* kinds, sources, query names */
#define SIGNER_MAX 64     /* a public key in hexadecimal digits */
#define CHECKSUM_MAX 95   /* "blake2b-256:" + 64 digits, room for others */

#define WORLD_SIZE_MAX 16384 /* members in one decision, see WIRE_EVENT_MAX */
#define FILES_FRAME_MAX 96   /* 96 x (255 path + 95 checksum + 24) = 35,904 < 64 KiB */
#define FILE_PATH_MAX 255
#define FILES_SHARD_MAX 4096 /* files of one rank's shard */
/* Files of all shards: each has 512 bytes of MANIFEST_BYTES_MAX, 255 of them for its path */
#define CHECKPOINT_FILES_MAX 131072
#define SOURCES_BYTES_MAX 2047 /* what a node's notice sources stand at, as JSON: 14 x 140 */
#define NOTICES_NODE_MAX 8     /* uncancelled notices of one node */
#define NOTICES_JOB_MAX 32768  /* of one generation in the broker: two for each of 16384 ranks */
/* Starts of the broker in a job's row: a node that heard only older ones has to leave */
#define LINEAGE_MAX 32
#define NOTICES_TOOLS_MAX 256 /* active ones that tools told, so that nodes are always heard */
/* A notice's text inside HELLO: 8 x 1 KiB stays far below a frame */
#define NOTICES_HELLO_BYTES 512
#define MANIFEST_CHUNK_MAX 49152
#define MANIFEST_BYTES_MAX (64 << 20)
#define METRICS_BYTES_MAX 8191 /* metrics of a checkpoint, as JSON */
/* A checkpoint's custom metadata, as JSON; with the metrics 24 KiB of a frame */
#define CUSTOM_BYTES_MAX 16383
#define METRIC_NAME_MAX 63
#define POLICIES_MAX 16      /* rules in one list */
#define POLICY_STEPS_MAX 512 /* given steps in one list */
/* A rule's number: sums of two stay in 64 bits */
#define POLICY_NUMBER_MAX ((INT64_C(1) << 62) - 1)
/* A list as text: 512 x (19 + 1) and 16 rules; two fit into a frame */
#define POLICY_TEXT_MAX 16383
#define PINS_JOB_MAX 4096       /* leases on checkpoints of one job */
#define DELETES_IN_FLIGHT_MAX 8 /* deletions that a node is told of at once */
#define ROWS_BYTES_MAX 57344    /* one page of query rows */
/* Events in one answer to EVENTS_GET, or in one unicast repeat pass */
#define EVENTS_PAGE_MAX 256
/* Unanswered requests a node keeps: 48 of policies and notices, 43 FILES of a shard behind and of
 * one at the end */
#define PENDING_MAX 192
#define ROUNDS_ACTIVE_MAX 4                 /* one open, three writing behind */
#define EPOCH_AHEAD_MAX (UINT64_C(1) << 32) /* no copy of a database is older: it counts starts */
#define ROUND_ATTEMPTS_MAX 3                /* rounds a cause gets */
#define JOURNAL_EVENTS_MAX 100000
/* A job keeps its newest rounds and launches: ROUND_ROWS_KEPT / ranks of each, within these limits.
 * Those whose checkpoint is on the disk stay in any case. */
#define ROUND_ROWS_KEPT 1000000
#define ROUNDS_KEPT_MIN 100
#define ROUNDS_KEPT_MAX 10000
#define DAY_MS (24LL * 3600 * 1000)
#define JOURNAL_AGE_MS (30 * DAY_MS) /* of the wall clock */

/* --- tasks --- */
#define TASK_QUEUE_ID_MAX ((UINT64_C(1) << 22) - 1) /* a row's key is queue * 2^40 + number ... */
#define TASK_NUMBER_MAX ((UINT64_C(1) << 40) - 1)   /* ... which stays below 2^62 */
#define TASK_ARGS_MAX 49152                         /* arguments of one task travel in one frame */
#define TASK_TEXT_MAX 1023                          /* of a handler's error */
#define TASK_RESULT_MAX (16 << 20)
#define TASK_PART_MAX 49152    /* of a longer result; */
#define TASK_INLINE_MAX 32768  /* up to this it travels with the task's end */
#define TASK_USES_MAX 16       /* per-worker values of one task, 4 bytes each */
#define TASKS_FRAME_MAX 1024   /* entries in a frame: 1024 x (1 + 12 items) < WIRE_ITEMS_MAX */
#define TASK_FRAME_BYTES 60000 /* at most so many bytes of entries, so that head and rest fit */
#define TASK_ENTRY_BYTES 96    /* an entry without its texts and bytes: 8 numbers of 9, lengths */
#define TASK_QUEUED_DEFAULT 262144 /* then schedule blocks (as their queue) */
/* Arguments of one queue in the broker's memory */
#define TASK_QUEUE_BYTES_MAX ((size_t)256 << 20)
/* ... and of all queues of one key's jobs, less what others have: half of a unit's MemoryMax */
#define TASK_KEY_BYTES_MAX ((size_t)1 << 30)
#define TASK_ATTEMPTS_DEFAULT 3 /* workers that a task may take with it */
#define TASK_TRIES_MAX 255      /* attempts of a task, also those that do not count: a byte */
#define TASK_CREDIT_MAX 512     /* tasks that a worker takes at once; its HELLO names them all */
#define TASK_RESOURCES_MAX 256  /* per-worker values of one queue */
#define TASK_QUEUES_MAX 256     /* over all jobs */
#define TASK_WORKERS_MAX 4096   /* over all jobs */
#define TASK_RECENT 8192        /* ends that a repeated WORK_DONE is known by, of one queue */

#define EXIT_CODE_NO_RESTART 93 /* of a process: `muster run` does not start it again */

/* --- times, see Bounds in PROTOCOL.md ------------------------------------------------------- */
/* The pace: heartbeats, progress rows, what is repeated until it is answered (its doubling ends
 * here), and how long a process that leaves waits for the broker's word. */
#define HEARTBEAT_MS 1000
/* Without progress for this long, a step, a save or a task is named as stuck, or given up. Where
 * steps or saves take longer, it is three or ten times what they take. A try that failed again and
 * again is repeated once in this time. */
#define STUCK_MS 60000
/* After a start of the broker, no process is lost by silence alone for this long. A manager's close
 * waits this long for a broker that is away. */
#define START_GRACE_MS 30000
/* How long the active broker keeps its nodes without the database. The next broker waits for those
 * nodes for START_GRACE_MS from the end of the lease. */
#define SHARED_DOUBT_MS (START_GRACE_MS - LOST_MS)
#define FREEZE_MS 2000          /* broker: for all reports; node: for what follows an aborted one */
#define THAW_MS (2 * FREEZE_MS) /* node: closing without a decision */
/* An ending launch waits for its nodes, a LEAVE for a disk that is full, a broker that started for
 * its workers with what they hold */
#define ENDING_MS 10000
#define TAKEOVER_MS 2000 /* silence that frees a held rank, or a worker's index */
#define LOST_MS 5000     /* silence after which a node is lost */
/* The wait for messages in flight: the last ones of a dead process, before it is judged; or one
 * that tells what was applied, before a heartbeat does. */
#define FLIGHT_MS 20
#define GONE_PING_MS 100     /* after FLIGHT_MS: an answer proves that it lives */
#define START_FREEZE_MS 6000 /* after a broker start: how long to wait for the generation */
#define LOOP_GAP_MS 1000 /* the broker's clock stands still in a longer gap between two passes */
/* ... so often, until there was no gap for as many times LOOP_GAP_MS. Of each further gap
 * LOOP_GAP_MS counts: where every pass is slow, a bound ends within GAPS_FORGIVEN + bound /
 * LOOP_GAP_MS passes. */
#define GAPS_FORGIVEN 10
#define WAY_UNMEASURED_MS 1800000 /* no step was measured yet and no deadline is known */
#define MARGIN_MS 1000            /* before the deadline */
#define PLAN_SAVES_MAX 32         /* a freeze is planned with the p95 of so many newest saves ... */
#define PLAN_SPARE_MS 500         /* ... and this to spare */
#define PLAN_FREEZE_MS 1000       /* a freeze of nodes that are there, at the very latest */
/* The broker starts again (1500 ms), all nodes reconnect, and each says a heartbeat */
#define PLAN_RESTART_MS 4500
#define PLAN_RESTART_SHARE 8 /* ... if that is not more than 1 / this of what could be trained */
#define PLAN_SAVE_MS 24000   /* a save is planned with it as long as none was measured */
/* A freeze and the margin fill it: a shorter time left is taken for unknown */
#define LEAST_LEAD_MS (FREEZE_MS + MARGIN_MS)
#define GRACE_DEFAULT_MS 30000   /* a notice that does not say, on an unknown platform */
#define MANIFEST_WAIT_MS 2000    /* how long the others wait for the manifest before leaving */
#define JOIN_TIMEOUT_MS 600000   /* from the first WELCOME until all have restored */
#define CONNECT_TIMEOUT_MS 10000 /* open: no broker answered */
#define RESEND_MIN_MS 200        /* requests: doubling ... */
#define REPEAT_MIN_MS 50         /* unicast repeat: max(this, 3 x fan-out), doubling ... */
/* A connection over which nothing was acknowledged for so long is given up, and a new one is tried
 * each RECONNECT_MS. TCP itself would try the old one for 15 min, each 2 min at last. */
#define TCP_MAXRT_MS (4 * LOST_MS)
#define RECONNECT_MS 250 /* up to a fifth less: a broker that is back is reached within 0.5 s */

#endif
