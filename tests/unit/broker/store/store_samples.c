/* store_samples - see store_samples.h. */
#include "tests/unit/broker/store/store_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static const struct wire_member members[] = {
    {.rank = 0, .incarnation = SAMPLE_INCARNATION, .flags = MEMBER_FLAG_WRITER},
    {.rank = 1, .incarnation = 12, .flags = 0},
};

const struct record samples[] = {
    {.kind = RECORD_BROKER,
     .u.broker = {.epoch = UINT64_C(18446744073709551615),
                  .database = UINT64_C(0xfedcba9876543210)}},
    {.kind = RECORD_JOB,
     .u.job = {.job = SAMPLE_JOB,
               .state = GENERATION_ENDING,
               .state_unix_ms = 101,
               .generation = SAMPLE_GENERATION,
               .seq = 103,
               .round = 104,
               .save_now_id = "op-1",
               .created_unix_ms = 105,
               .save_now_round = 106,
               .want = CAUSE_OPERATOR,
               .want_attempt = 2,
               .want_aborted_steps = true,
               .step_p95_ms = 107,
               .save_p95_ms = 109,
               .saves = "108 109",
               .freeze_unix_ms = 110,
               .plan = "in time",
               .lineage = "1f:0 2a:7"}},
    {.kind = RECORD_GENERATION,
     .u.generation = {.job = SAMPLE_JOB,
                      .generation = SAMPLE_GENERATION,
                      .state = GENERATION_RUNNING,
                      .world_size = 4096,
                      .layout = LAYOUT_SHARDED,
                      .checkpoint_dir = "/data/ünï",
                      .resume_checkpoint = 201,
                      .resume_step = 0,
                      .resume_ready = true,
                      .fallback = true,
                      .end_status = 35,
                      .end_text = "it's over; DROP TABLE job",
                      .error_rank = 202,
                      .error_code = -203,
                      .error_text = "line\none",
                      .opened_unix_ms = 204,
                      .started_unix_ms = 205,
                      .ended_unix_ms = 206}},
    {.kind = RECORD_NODE,
     .u.node = {.job = SAMPLE_JOB,
                .incarnation = SAMPLE_INCARNATION,
                .generation = SAMPLE_GENERATION,
                .role = ROLE_EVALUATOR,
                .rank = 301,
                .host = "host-a",
                .pid = 302,
                .state = NODE_RESTORED,
                .last_request = 303,
                .last_code = 12,
                .last_value = 304,
                .leave_why = LEAVE_PREEMPTED,
                .exit_code = -305,
                .joined_unix_ms = 306,
                .ended_unix_ms = 307}},
    {.kind = RECORD_PROGRESS,
     .u.progress = {.job = SAMPLE_JOB,
                    .incarnation = SAMPLE_INCARNATION,
                    .begun = 401,
                    .done = 400,
                    .phase = PHASE_TO_STEP,
                    .step_p95_ms = 402,
                    .applied_seq = 403,
                    .heard_unix_ms = 404,
                    .sources = "[{\"name\":\"ec2\"}]"}},
    {.kind = RECORD_NOTICE,
     .u.notice = {.job = SAMPLE_JOB,
                  .generation = SAMPLE_GENERATION,
                  .id = "sigterm-1",
                  .rank = 501,
                  .incarnation = SAMPLE_INCARNATION,
                  .kind = NOTICE_TIME_LIMIT,
                  .source = "signal",
                  .state = RECORD_NOTICE_ACTIVE,
                  .cancellable = true,
                  .left_ms = -1,
                  .deadline_boot_ms = 502,
                  .text = "soon",
                  .round = 503,
                  .received_unix_ms = 504,
                  .flags = NOTICE_FLAG_SAVE_NOW}},
    {.kind = RECORD_ROUND,
     .u.round = {.job = SAMPLE_JOB,
                 .round = SAMPLE_ROUND,
                 .generation = SAMPLE_GENERATION,
                 .attempt = 2,
                 .cause = CAUSE_POLICY,
                 .state = ROUND_FREEZING,
                 .step = 601,
                 .aborted_steps = true,
                 .culprit_rank = 602,
                 .reason_code = 34,
                 .reason = "why not",
                 .final = true,
                 .deadline_boot_ms = 603,
                 .opened_boot_ms = 604,
                 .opened_unix_ms = 605,
                 .decided_unix_ms = 606,
                 .captured_unix_ms = 607,
                 .ended_unix_ms = 608,
                 .margin_ms = -609,
                 .plan = "at once"}},
    {.kind = RECORD_PARTICIPANT,
     .u.participant = {.job = SAMPLE_JOB,
                       .round = SAMPLE_ROUND,
                       .rank = 1,
                       .incarnation = SAMPLE_INCARNATION,
                       .writer = true,
                       .begun = 701,
                       .done = 700,
                       .reported_ms = 702,
                       .at_step_ms = 703,
                       .captured_ms = 704,
                       .saved_ms = 705,
                       .save_ms = 706,
                       .failed = "disk"}},
    {.kind = RECORD_CHECKPOINT,
     .u.checkpoint = {.job = SAMPLE_JOB,
                      .round = SAMPLE_ROUND,
                      .generation = SAMPLE_GENERATION,
                      .step = 801,
                      .state = CHECKPOINT_COMMITTED,
                      .cause = CAUSE_TERMINATION,
                      .layout = LAYOUT_REPLICATED,
                      .world_size = 2,
                      .shards_required = 1,
                      .bytes = INT64_MAX,
                      .path = "00000801",
                      .epoch = 802,
                      .step_in_epoch = 803,
                      .data_position = 804,
                      .pinned = true,
                      .metrics = "{}",
                      .committed_unix_ms = 805,
                      .blocked_ms = 806,
                      .waited_ms = 807,
                      .total_ms = 808,
                      .trash = "bin"}},
    {.kind = RECORD_SHARD,
     .u.shard = {.job = SAMPLE_JOB,
                 .round = SAMPLE_ROUND,
                 .rank = 1,
                 .incarnation = SAMPLE_INCARNATION,
                 .files = 1,
                 .bytes = 901,
                 .save_ms = 902,
                 .blocked_ms = 903,
                 .saved_unix_ms = 904,
                 .waited_ms = 905}},
    {.kind = RECORD_FILE,
     .u.file = {.job = SAMPLE_JOB,
                .round = SAMPLE_ROUND,
                .rank = 1,
                .path = "shard-1.safetensors",
                .bytes = 901,
                .checksum = "xxh3-128:00112233445566778899aabbccddeeff"}},
    {.kind = RECORD_EVENT,
     .u.event = {.job = SAMPLE_JOB,
                 .seq = 103,
                 .generation = SAMPLE_GENERATION,
                 .unix_ms = 1001,
                 .deadline_boot_ms = 0,
                 .body = {.seq = 103,
                          .kind = EVENT_DECISION,
                          .generation = SAMPLE_GENERATION,
                          .round = SAMPLE_ROUND,
                          .cause = CAUSE_TERMINATION,
                          .step = 1002,
                          .rank = -1,
                          .incarnation = SAMPLE_INCARNATION,
                          .code = 1,
                          .checkpoint = 1003,
                          .flags = 5,
                          .left_ms = 1004,
                          .text = "text",
                          .path = "path",
                          .members = {.items = members, .count = 2}}}},
    {.kind = RECORD_POLICY,
     .u.policy = {.job = SAMPLE_JOB,
                  .generation = SAMPLE_GENERATION,
                  .keep = "latest 2; steps 1 2",
                  .save = "young-daly",
                  .trash = "old"}},
    {.kind = RECORD_PIN,
     .u.pin = {.job = SAMPLE_JOB, .checkpoint = 1101, .id = "reader-1", .until_unix_ms = 1102}},
    {.kind = RECORD_CUSTOM,
     .u.custom = {.job = SAMPLE_JOB, .round = SAMPLE_ROUND, .custom = "{\"who\": \"me\"}"}},
    {.kind = RECORD_LAUNCH,
     .u.launch = {.job = SAMPLE_JOB, .generation = SAMPLE_GENERATION, .began_step = 799}},
    {.kind = RECORD_HOST,
     .u.host = {.job = SAMPLE_JOB,
                .launch = 1201,
                .id = 1203,
                .place = 1202,
                .name = "node-a",
                .address = "192.0.2.7",
                .port = 1204,
                .first_rank = 1205,
                .ranks = 1206,
                .min_hosts = 1207,
                .max_hosts = 1208,
                .wait_ms = 1209,
                .node_rank = -1,
                .ended = 1210,
                .state = HOST_WAITING,
                .state_unix_ms = 1211}},
};
const size_t samples_count = sizeof samples / sizeof *samples;

const struct record *sample_of(enum record_kind kind)
{
    for (size_t i = 0; i < samples_count; i++) {
        if (samples[i].kind == kind)
            return &samples[i];
    }
    fail_msg("no sample of kind %d", (int)kind);
    return NULL;
}

struct actions batch_of(const struct record *rows, size_t count, bool lazy, struct action *items)
{
    for (size_t i = 0; i < count; i++)
        items[i] = (struct action){.kind = ACTION_PERSIST, .lazy = lazy, .record = rows[i]};
    return (struct actions){.items = items, .count = count, .capacity = count};
}

#define NUMBER(row, field) assert_true(a->u.row.field == b->u.row.field)
#define TEXT(row, field) assert_string_equal(a->u.row.field, b->u.row.field)

static void assert_job_same(const struct record *a, const struct record *b)
{
    TEXT(job, job);
    NUMBER(job, state);
    NUMBER(job, state_unix_ms);
    NUMBER(job, generation);
    NUMBER(job, seq);
    NUMBER(job, round);
    TEXT(job, save_now_id);
    NUMBER(job, created_unix_ms);
    NUMBER(job, save_now_round);
    NUMBER(job, want);
    NUMBER(job, want_attempt);
    NUMBER(job, want_aborted_steps);
    NUMBER(job, step_p95_ms);
    NUMBER(job, save_p95_ms);
    TEXT(job, saves);
    NUMBER(job, freeze_unix_ms);
    TEXT(job, plan);
    TEXT(job, lineage);
}

static void assert_generation_same(const struct record *a, const struct record *b)
{
    TEXT(generation, job);
    NUMBER(generation, generation);
    NUMBER(generation, state);
    NUMBER(generation, world_size);
    NUMBER(generation, layout);
    TEXT(generation, checkpoint_dir);
    NUMBER(generation, resume_checkpoint);
    NUMBER(generation, resume_step);
    NUMBER(generation, resume_ready);
    NUMBER(generation, fallback);
    NUMBER(generation, end_status);
    TEXT(generation, end_text);
    NUMBER(generation, error_rank);
    NUMBER(generation, error_code);
    TEXT(generation, error_text);
    NUMBER(generation, opened_unix_ms);
    NUMBER(generation, started_unix_ms);
    NUMBER(generation, ended_unix_ms);
}

static void assert_node_same(const struct record *a, const struct record *b)
{
    TEXT(node, job);
    NUMBER(node, incarnation);
    NUMBER(node, generation);
    NUMBER(node, role);
    NUMBER(node, rank);
    TEXT(node, host);
    NUMBER(node, pid);
    NUMBER(node, state);
    NUMBER(node, last_request);
    NUMBER(node, last_code);
    NUMBER(node, last_value);
    NUMBER(node, leave_why);
    NUMBER(node, exit_code);
    NUMBER(node, joined_unix_ms);
    NUMBER(node, ended_unix_ms);
}

static void assert_progress_same(const struct record *a, const struct record *b)
{
    TEXT(progress, job);
    NUMBER(progress, incarnation);
    NUMBER(progress, begun);
    NUMBER(progress, done);
    NUMBER(progress, phase);
    NUMBER(progress, step_p95_ms);
    NUMBER(progress, applied_seq);
    NUMBER(progress, heard_unix_ms);
    TEXT(progress, sources);
}

static void assert_notice_same(const struct record *a, const struct record *b)
{
    TEXT(notice, job);
    NUMBER(notice, generation);
    TEXT(notice, id);
    NUMBER(notice, rank);
    NUMBER(notice, incarnation);
    NUMBER(notice, kind);
    TEXT(notice, source);
    NUMBER(notice, state);
    NUMBER(notice, cancellable);
    NUMBER(notice, left_ms);
    NUMBER(notice, deadline_boot_ms);
    NUMBER(notice, other_boot);
    TEXT(notice, text);
    NUMBER(notice, round);
    NUMBER(notice, received_unix_ms);
    NUMBER(notice, flags);
}

static void assert_round_same(const struct record *a, const struct record *b)
{
    TEXT(round, job);
    NUMBER(round, round);
    NUMBER(round, generation);
    NUMBER(round, attempt);
    NUMBER(round, cause);
    NUMBER(round, state);
    NUMBER(round, step);
    NUMBER(round, aborted_steps);
    NUMBER(round, culprit_rank);
    NUMBER(round, reason_code);
    TEXT(round, reason);
    NUMBER(round, final);
    NUMBER(round, deadline_boot_ms);
    NUMBER(round, other_boot);
    NUMBER(round, opened_boot_ms);
    NUMBER(round, opened_unix_ms);
    NUMBER(round, decided_unix_ms);
    NUMBER(round, captured_unix_ms);
    NUMBER(round, ended_unix_ms);
    NUMBER(round, margin_ms);
    TEXT(round, plan);
}

static void assert_participant_same(const struct record *a, const struct record *b)
{
    TEXT(participant, job);
    NUMBER(participant, round);
    NUMBER(participant, rank);
    NUMBER(participant, incarnation);
    NUMBER(participant, writer);
    NUMBER(participant, begun);
    NUMBER(participant, done);
    NUMBER(participant, reported_ms);
    NUMBER(participant, at_step_ms);
    NUMBER(participant, captured_ms);
    NUMBER(participant, saved_ms);
    NUMBER(participant, save_ms);
    TEXT(participant, failed);
}

static void assert_checkpoint_same(const struct record *a, const struct record *b)
{
    TEXT(checkpoint, job);
    NUMBER(checkpoint, round);
    NUMBER(checkpoint, generation);
    NUMBER(checkpoint, step);
    NUMBER(checkpoint, state);
    NUMBER(checkpoint, cause);
    NUMBER(checkpoint, layout);
    NUMBER(checkpoint, world_size);
    NUMBER(checkpoint, shards_required);
    NUMBER(checkpoint, bytes);
    TEXT(checkpoint, path);
    NUMBER(checkpoint, epoch);
    NUMBER(checkpoint, step_in_epoch);
    NUMBER(checkpoint, data_position);
    NUMBER(checkpoint, pinned);
    TEXT(checkpoint, metrics);
    NUMBER(checkpoint, committed_unix_ms);
    NUMBER(checkpoint, blocked_ms);
    NUMBER(checkpoint, waited_ms);
    NUMBER(checkpoint, total_ms);
    TEXT(checkpoint, trash);
}

static void assert_shard_same(const struct record *a, const struct record *b)
{
    TEXT(shard, job);
    NUMBER(shard, round);
    NUMBER(shard, rank);
    NUMBER(shard, incarnation);
    NUMBER(shard, files);
    NUMBER(shard, bytes);
    NUMBER(shard, save_ms);
    NUMBER(shard, blocked_ms);
    NUMBER(shard, saved_unix_ms);
    NUMBER(shard, waited_ms);
}

static void assert_file_same(const struct record *a, const struct record *b)
{
    TEXT(file, job);
    NUMBER(file, round);
    NUMBER(file, rank);
    TEXT(file, path);
    NUMBER(file, bytes);
    TEXT(file, checksum);
}

static void assert_policy_same(const struct record *a, const struct record *b)
{
    TEXT(policy, job);
    NUMBER(policy, generation);
    TEXT(policy, keep);
    TEXT(policy, save);
    TEXT(policy, trash);
}

static void assert_host_same(const struct record *a, const struct record *b)
{
    TEXT(host, job);
    NUMBER(host, launch);
    NUMBER(host, id);
    NUMBER(host, place);
    TEXT(host, name);
    TEXT(host, address);
    NUMBER(host, port);
    NUMBER(host, first_rank);
    NUMBER(host, ranks);
    NUMBER(host, min_hosts);
    NUMBER(host, max_hosts);
    NUMBER(host, wait_ms);
    NUMBER(host, node_rank);
    NUMBER(host, ended);
    NUMBER(host, state);
    NUMBER(host, state_unix_ms);
}

void assert_record_same(const struct record *a, const struct record *b)
{
    assert_int_equal(a->kind, b->kind);
    switch (a->kind) {
    case RECORD_BROKER:
        NUMBER(broker, epoch);
        NUMBER(broker, database);
        return;
    case RECORD_JOB:
        assert_job_same(a, b);
        return;
    case RECORD_GENERATION:
        assert_generation_same(a, b);
        return;
    case RECORD_NODE:
        assert_node_same(a, b);
        return;
    case RECORD_PROGRESS:
        assert_progress_same(a, b);
        return;
    case RECORD_NOTICE:
        assert_notice_same(a, b);
        return;
    case RECORD_ROUND:
        assert_round_same(a, b);
        return;
    case RECORD_PARTICIPANT:
        assert_participant_same(a, b);
        return;
    case RECORD_CHECKPOINT:
        assert_checkpoint_same(a, b);
        return;
    case RECORD_SHARD:
        assert_shard_same(a, b);
        return;
    case RECORD_FILE:
        assert_file_same(a, b);
        return;
    case RECORD_POLICY:
        assert_policy_same(a, b);
        return;
    case RECORD_LAUNCH:
        TEXT(launch, job);
        NUMBER(launch, generation);
        NUMBER(launch, began_step);
        return;
    case RECORD_HOST:
        assert_host_same(a, b);
        return;
    case RECORD_PIN:
        TEXT(pin, job);
        NUMBER(pin, checkpoint);
        TEXT(pin, id);
        NUMBER(pin, until_unix_ms);
        return;
    default:
        fail_msg("rows of kind %d are not compared here", (int)a->kind);
    }
}

void assert_event_same(const struct wire_event *a, const struct wire_event *b)
{
    assert_true(a->seq == b->seq && a->kind == b->kind && a->generation == b->generation);
    assert_true(a->round == b->round && a->cause == b->cause && a->step == b->step);
    assert_true(a->rank == b->rank && a->incarnation == b->incarnation && a->code == b->code);
    assert_true(a->checkpoint == b->checkpoint && a->flags == b->flags);
    assert_true(a->left_ms == b->left_ms);
    assert_string_equal(a->text, b->text);
    assert_string_equal(a->path, b->path);
    assert_int_equal(a->members.count, b->members.count);
    for (size_t i = 0; i < a->members.count; i++) {
        assert_true(a->members.items[i].rank == b->members.items[i].rank);
        assert_true(a->members.items[i].incarnation == b->members.items[i].incarnation);
        assert_true(a->members.items[i].flags == b->members.items[i].flags);
    }
}
