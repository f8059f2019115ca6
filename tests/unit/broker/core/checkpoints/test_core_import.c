/* The broker's core: manifests that were found on disk become rows again. */
#include "schema/manifest/manifest.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

static const char *folder = "";   /* of the next directories that are found */
static int64_t resumed_step = -1; /* that the next manifests tell */

static char *manifest_of(uint64_t generation, uint64_t round, int64_t step, size_t *ret_size)
{
    static const struct wire_file files[2] = {
        {"shard-00000-0000000000000032.safetensors", 30, SUM},
        {"shard-00001-0000000000000033.safetensors", 40, SUM}};
    const struct manifest_shard shards[2] = {{0, 50, &files[0], 1}, {1, 51, &files[1], 1}};
    const struct manifest manifest = {.job = "train",
                                      .generation = generation,
                                      .round = round,
                                      .step = step,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 2,
                                      .epoch = 3,
                                      .step_in_epoch = 4,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = 1700000000000 + step,
                                      .cause = "termination",
                                      .metrics = "{\"loss\": 0.5}",
                                      .custom = "{\"who\": \"me\"}",
                                      .resumed_known = resumed_step >= 0,
                                      .resumed_step = resumed_step,
                                      .shards = shards,
                                      .shard_count = 2};
    struct muster_error err;
    char *text = NULL;

    if (manifest_render(&manifest, &text, ret_size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return text;
}

static const struct wire_ack *say_part(struct core_fixture *f, const char *path, const char *text,
                                       size_t offset, size_t size, size_t total)
{
    struct wire_msg message = {.type = WIRE_IMPORT, .up = {.job = "train", .role = ROLE_TOOL}};

    message.u.import.path = path;
    message.u.import.offset = offset;
    message.u.import.total = total;
    message.u.import.bytes.data = (const uint8_t *)text + offset;
    message.u.import.bytes.size = size;
    core_tool(f, message, 1);
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return &f->out.items[i].message.u.ack;
    fail_msg("not answered");
    return NULL;
}

/* In parts of 200 bytes. Returns the last answer's code; its value goes to *ret_value. */
static unsigned import(struct core_fixture *f, uint64_t generation, uint64_t round, int64_t step,
                       uint64_t *ret_value)
{
    size_t total;
    char *text = manifest_of(generation, round, step, &total);
    char path[64];
    const struct wire_ack *ack = NULL;

    snprintf(path, sizeof path, "/ckpt/%s%lld", folder, (long long)step);
    for (size_t at = 0; at < total; at += 200)
        ack = say_part(f, path, text, at, total - at < 200 ? total - at : 200, total);
    free(text);
    *ret_value = ack->value;
    return (unsigned)ack->code;
}

static bool is_told(struct core_fixture *f, int64_t step)
{
    uint64_t value;

    assert_int_equal(import(f, 2, (uint64_t)step, step, &value), MUSTER_OK);
    return core_event(f, EVENT_ORDER) != NULL;
}

/* An import is many orders: one for each checkpoint of a directory. */
static void an_import_is_told_once_and_a_later_one_again(void **state)
{
    struct core_fixture *f = *state;

    f->by = "key ann at 10.0.0.7";
    assert_true(is_told(f, 10));
    assert_false(is_told(f, 11));
    core_pass(f, START_GRACE_MS);
    assert_true(is_told(f, 12));
    f->by = NULL;
}

/* R11.4 */
static void a_lost_database_is_rebuilt(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    assert_int_equal(import(f, 2, 5, 12, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    assert_core(f, "+job; +job; +generation ended; +launch 2 >11; +round 5 committed; "
                   "+checkpoint 5 committed; +custom {\"who\":\"me\"}; +shard 5.0; "
                   "+file shard-00000-0000000000000032.safetensors; +shard 5.1; "
                   "+file shard-00001-0000000000000033.safetensors; @500:ack #1 MUSTER_OK=1");
    const struct record_checkpoint *row = core_checkpoint(f, 5);
    assert_int_equal(row->step, 12);
    assert_int_equal(row->bytes, 70);
    assert_int_equal(row->epoch, 3);
    assert_string_equal(row->path, "/ckpt/12");
    assert_string_equal(row->metrics, "{\"loss\":0.5}");
    assert_int_equal(import(f, 1, 2, 7, &value), MUSTER_OK); /* older, whatever the order */
    assert_int_equal(import(f, 2, 5, 12, &value), MUSTER_OK);
    assert_int_equal(value, 0); /* it is there */

    core_restart(f, false);
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    const struct generation *gen = &core_job(f)->gen;
    assert_int_equal(gen->generation, 3);
    assert_int_equal(gen->resume_step, 12);
    assert_int_equal(gen->resume_checkpoint, 5);
    assert_true(gen->resume_ready);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 5, 12);
    core_save_now(f, "a");
    assert_int_equal(core_job(f)->round, 6); /* numbers go on behind those that were found */
}

static void parts_come_in_order_and_may_be_repeated(void **state)
{
    struct core_fixture *f = *state;
    size_t total;
    char *text = manifest_of(1, 2, 7, &total);

    assert_int_equal(say_part(f, "/c/7", text, 100, 100, total)->code, MUSTER_E_BUSY);
    assert_int_equal(say_part(f, "/c/7", text, 0, 100, total)->code, MUSTER_OK);
    assert_int_equal(say_part(f, "/c/7", text, 200, 100, total)->code, MUSTER_E_BUSY);
    assert_int_equal(say_part(f, "/c/8", text, 100, 100, total)->code, MUSTER_E_BUSY);
    assert_int_equal(say_part(f, "/c/7", text, 100, total - 100, total)->value, 1);
    assert_int_equal(say_part(f, "/c/7", text, 100, total - 100, total)->value, 1); /* a repeat */
    assert_int_equal(say_part(f, "c/7", text, 0, total, total)->code, MUSTER_E_ARGUMENT);
    text[total / 2] = '\0';
    assert_int_equal(say_part(f, "/c/7", text, 0, total, total)->code, MUSTER_E_CORRUPT);
    free(text);
}

/* R11.1 */
static void a_running_job_and_numbers_of_its_own_refuse(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    assert_int_equal(import(f, 1, 2, 7, &value), MUSTER_E_BUSY);
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_save(f, 0, 1, 4);
    core_save(f, 1, 1, 4);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(import(f, 1, 1, 7, &value), MUSTER_E_EXISTS); /* its round 1 was at step 4 */
    assert_int_equal(core_checkpoint(f, 1)->step, 4);
    assert_int_equal(import(f, 1, 1, 4, &value), MUSTER_OK); /* that is the one that is here */
    assert_int_equal(value, 0);
}

static const struct record_round *round_row(const struct core_fixture *f, uint64_t round)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_ROUND && f->rows[i].u.round.round == round)
            return &f->rows[i].u.round;
    fail_msg("there is no such round");
    return NULL;
}

static void decide_one(struct core_fixture *f)
{
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_save(f, 0, 1, 4);
    assert_int_equal(round_row(f, 1)->state, ROUND_DECIDED);
}

static void commit_one(struct core_fixture *f)
{
    decide_one(f);
    core_save(f, 1, 1, 4);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
}

/* It was refused for ever: a copy of the database, made while it was decided, had it aborted. A
 * manifest is written behind a commit alone (R11.2). */
static void one_that_was_aborted_here_and_is_whole_on_disk_is_taken(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    decide_one(f);
    core_copy(f);
    core_restart_from_older_copy(f);
    assert_int_equal(round_row(f, 1)->state, ROUND_ABORTED);
    for (int n = 0; n < 2; n++) {
        core_hello(f, n);
        core_leave(f, n, LEAVE_FINISHED, 0);
    }
    assert_int_equal(import(f, 1, 1, 5, &value), MUSTER_E_EXISTS); /* another one */
    assert_int_equal(import(f, 2, 1, 4, &value), MUSTER_E_EXISTS);
    assert_int_equal(import(f, 1, 1, 4, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    for (int start = 0; start < 2; start++) {
        assert_int_equal(round_row(f, 1)->state, ROUND_COMMITTED);
        assert_string_equal(round_row(f, 1)->reason, FOUND_ON_DISK);
        assert_int_equal(core_checkpoint(f, 1)->state, CHECKPOINT_COMMITTED);
        assert_int_equal(core_count_rows(f, RECORD_FILE),
                         2); /* none of the one that was not finished */
        assert_int_equal(import(f, 1, 1, 4, &value), MUSTER_OK);
        assert_int_equal(value, 0); /* it is there */
        assert_int_equal(import(f, 1, 1, 5, &value), MUSTER_E_EXISTS);
        core_restart(f, false);
    }
}

/* A launch was refused for what is to be imported, and a notice came before its first step; or
 * nobody reported. */
static void numbers_of_rounds_that_left_nothing_are_free(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    core_save_now(f, "a");
    core_pass(f, FREEZE_MS);
    assert_int_equal(round_row(f, 1)->state, ROUND_ABORTED);
    for (int n = 0; n < 2; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    f->nodes[0] =
        (struct core_node){.role = ROLE_CHIEF, .incarnation = 77, .route = f->nodes[0].route};
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_pass(f, 60000 - MARGIN_MS);
    assert_int_equal(round_row(f, 2)->state, ROUND_ABORTED); /* its second attempt */
    assert_int_equal(round_row(f, 3)->state, ROUND_UNCHANGED);
    core_leave(f, 0, LEAVE_PREEMPTED, 0);
    for (uint64_t round = 1; round <= 3; round++) {
        assert_int_equal(import(f, 7, round, 40 * (int64_t)round, &value), MUSTER_OK);
        assert_int_equal(value, 1);
        assert_string_equal(round_row(f, round)->reason, FOUND_ON_DISK);
        core_restart(f, false);
        assert_int_equal(core_checkpoint(f, round)->state, CHECKPOINT_COMMITTED);
    }
}

/* Numbers that nobody has are free: those that were jumped over, by nodes that knew more or by an
 * import before (R11.1). */
static void a_number_that_was_jumped_over_is_free(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    commit_one(f);
    assert_int_equal(import(f, 1, 9, 90, &value), MUSTER_OK);
    for (uint64_t round = 5; round <= 8; round++) {
        assert_int_equal(import(f, 1, round, (int64_t)round * 10, &value), MUSTER_OK);
        assert_int_equal(value, 1);
        assert_int_equal(import(f, 1, round, 99, &value), MUSTER_E_EXISTS); /* no longer */
        core_restart(f, false);
    }
    assert_int_equal(import(f, 1, 1, 7, &value), MUSTER_E_EXISTS);
}

/* What is older than all that is in memory may be a round that ended: it is not
 * overwritten (R11.1). */
static void a_number_of_which_nothing_is_known_any_more_is_not(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    commit_one(f);
    for (uint64_t round = 10; round < 10 + CORE_OUTCOMES_MAX; round++)
        assert_int_equal(import(f, 1, round, (int64_t)round, &value), MUSTER_OK);
    while (core_job(f)->checkpoints_count > 0) /* as one of 16,384 checkpoints later */
        registry_drop(core_job(f), core_job(f)->checkpoints[0].row.round);
    assert_int_equal(import(f, 1, 1, 7, &value), MUSTER_E_EXISTS);
    assert_int_equal(import(f, 1, 5, 5, &value), MUSTER_E_EXISTS);
    assert_int_equal(import(f, 1, 10 + CORE_OUTCOMES_MAX, 99, &value), MUSTER_OK);
}

/* It was committed, and its writer died before the rename: nobody ever gave it its name (R11.4). */
static void one_without_its_name_gets_it_by_the_next_launch(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    assert_int_equal(import(f, 2, 4, 9, &value), MUSTER_OK);
    folder = ".muster/2-"; /* and its step, which is the round as well */
    assert_int_equal(import(f, 2, 12, 12, &value), MUSTER_OK);
    folder = "";
    assert_int_equal(value, 1);
    assert_string_equal(core_checkpoint(f, 12)->path, "");
    assert_string_equal(core_job(f)->gen.checkpoint_dir, "/ckpt");
    core_restart(f, false);
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    assert_int_equal(core_job(f)->gen.resume_checkpoint, 12);
    assert_false(core_job(f)->gen.resume_ready); /* the lowest rank repairs it first */
}

/* It was taken for one that is still being written: the next launch did not find it. */
static void a_directory_below_one_of_that_name_is_a_place_like_any_other(void **state)
{
    static const struct {
        const char *folder, *path, *root;
    } table[] = {
        {"x/.muster/ck/", "/ckpt/x/.muster/ck/9", "/ckpt/x/.muster/ck"},
        {"x/.muster/", "/ckpt/x/.muster/9", "/ckpt/x/.muster"},
        {"x/.muster/1-", "/ckpt/x/.muster/1-9", "/ckpt/x/.muster"},   /* of another launch */
        {"x/.muster/3-1", "/ckpt/x/.muster/3-19", "/ckpt/x/.muster"}, /* of another round */
        {"x/.muster/y.muster/3-", "/ckpt/x/.muster/y.muster/3-9", "/ckpt/x/.muster/y.muster"},
        {"x/.muster/.muster/3-", "", "/ckpt/x/.muster"},
    };
    struct core_fixture *f = *state;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint64_t value = 0;

        folder = table[i].folder;
        assert_int_equal(import(f, 3, 9, 9, &value), MUSTER_OK);
        folder = "";
        assert_int_equal(value, 1);
        assert_string_equal(core_checkpoint(f, 9)->path, table[i].path);
        assert_string_equal(core_job(f)->gen.checkpoint_dir, table[i].root);
        core_fixture_close(f);
        core_fixture_open(f, 2, LAYOUT_SHARDED);
    }
}

/* Its last part was answered with "it is there" when it was said again. */
static void one_that_was_refused_is_refused_again(void **state)
{
    struct core_fixture *f = *state; /* running */
    size_t total;
    char *text = manifest_of(1, 2, 7, &total);

    for (int damaged = 0; damaged < 2; damaged++) {
        say_part(f, "/c/7", text, 0, 100, total);
        for (int again = 0; again < 2; again++) {
            const struct wire_ack *ack = say_part(f, "/c/7", text, 100, total - 100, total);

            assert_int_equal(ack->code, damaged ? MUSTER_E_CORRUPT : MUSTER_E_BUSY);
            assert_int_equal(ack->value, damaged ? 0 : 1); /* the job runs */
            assert_true(damaged || strstr(ack->text, "running") != NULL);
        }
        text[total / 2] = '\0';
    }
    free(text);
    assert_null(registry_find(core_job(f), 2));
}

/* Its row is that launch's: where it began and how is not that of the launch before it. */
static void a_launch_that_is_found_has_nothing_of_the_one_before(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    for (int n = 0; n < 2; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    assert_true(core_job(f)->gen.opened_unix_ms > 0);
    resumed_step = 5;
    assert_int_equal(import(f, 4, 6, 9, &value), MUSTER_OK);
    resumed_step = -1;
    assert_int_equal(core_job(f)->gen.generation, 4);
    assert_int_equal(core_job(f)->gen.opened_unix_ms, 0);
    assert_int_equal(core_job(f)->gen.started_unix_ms, 0);
    assert_int_equal(core_job(f)->gen.resume_step, 5);
}

/* A database was restored or lost while the job ran, and `muster import` came before its processes
 * did: they leave, and nothing of it changes. */
static void a_launch_that_was_found_is_over_for_who_lives_in_it(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    assert_int_equal(import(f, 5, 7, 40, &value), MUSTER_OK);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].generation = 5;
        f->nodes[n].begun = 60;
        f->nodes[n].done = 59;
        f->nodes[n].phase = PHASE_STEPPING;
        core_hello(f, n);
        assert_answers(f, n == 0 ? "0:refused MUSTER_PREEMPTED" : "1:refused MUSTER_PREEMPTED");
    }
    assert_int_equal(core_job(f)->gen.generation, 5);
    assert_string_equal(core_job(f)->gen.end_text, FOUND_ON_DISK);
    assert_int_equal(import(f, 5, 8, 50, &value), MUSTER_OK);
}

/* One that is over stays so, and so does what its processes say who come late. */
static void a_launch_before_the_one_that_was_found_does_not(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    assert_int_equal(import(f, 5, 7, 40, &value), MUSTER_OK);
    f->nodes[0].generation = 4;
    core_hello(f, 0);
    assert_non_null(core_sent(f, f->nodes[0].route, WIRE_REFUSED));
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
}

/* Of launch 1 the steps 1 to 5 in rounds 1 to 5; launch 2 went back to step `from` and saved step
 * `step`. */
static void import_two_launches(struct core_fixture *f, int64_t from, int64_t step, bool told)
{
    uint64_t value = 0;

    resumed_step = told ? 0 : -1;
    for (uint64_t round = 1; round <= 5; round++)
        assert_int_equal(import(f, 1, round, (int64_t)round, &value), MUSTER_OK);
    resumed_step = told ? from : -1;
    assert_int_equal(import(f, 2, 6, step, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    resumed_step = -1;
}

static void assert_counted(struct core_fixture *f, const char *rounds)
{
    char text[64] = "";

    for (uint64_t round = 1; round <= 6; round++)
        if (core_counts(f, core_checkpoint(f, round)))
            snprintf(text + strlen(text), sizeof text - strlen(text), " %d", (int)round);
    assert_string_equal(text, rounds);
}

/* They came back as committed: the next launch resumed from a step that a launch before it had
 * given up (R11.3). */
static void what_a_later_launch_gave_up_stays_given_up(void **state)
{
    struct core_fixture *f = *state;

    import_two_launches(f, 2, 4,
                        false); /* step 4 was saved again: nobody could have resumed from it */
    assert_counted(f, " 1 2 3 6");
    core_restart(f, false);
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    assert_int_equal(core_job(f)->gen.resume_checkpoint, 6);
}

static void where_a_launch_began_is_in_its_manifests(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    import_two_launches(f, 2, 9, true);
    assert_counted(f, " 1 2 6");
    resumed_step = 2;
    assert_int_equal(import(f, 2, 6, 9, &value), MUSTER_OK); /* again */
    assert_int_equal(value, 0);
    resumed_step = -1;
    assert_counted(f, " 1 2 6");
}

static void an_older_one_that_comes_late_is_given_up_too(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 1;

    assert_int_equal(import(f, 2, 6, 4, &value), MUSTER_OK);
    assert_int_equal(import(f, 1, 5, 5, &value), MUSTER_OK);
    assert_int_equal(value, 0);
    assert_false(core_counts(f, core_checkpoint(f, 5)));
    assert_int_equal(registry_newest(core_job(f))->row.round, 6);
}

/* Its row was overwritten with the little that a manifest knows of it (R11.3). */
static void the_row_of_a_launch_that_is_here_stays(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(import(f, 1, 7, 9, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    for (size_t i = 0; i < f->out.count; i++)
        assert_false(f->out.items[i].kind == ACTION_PERSIST &&
                     f->out.items[i].record.kind == RECORD_GENERATION);
    assert_string_not_equal(core_job(f)->gen.end_text, FOUND_ON_DISK);
}

/* Rank 0 of a launch that has nothing to resume from found newer ones, and the launch ends for
 * that. */
static void ends_for_an_import(struct core_fixture *f)
{
    struct wire_msg message = core_msg(f, 0, WIRE_RESTORE_FAILED);

    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    message.u.restore_failed =
        (struct wire_restore_failed){.text = "40 is there", .final = true, .imports = true};
    core_say(f, 0, message);
}

/* R11.6 */
static void a_launch_that_ends_for_an_import_leaves_with_the_restart_code(void **state)
{
    struct core_fixture *f = *state;

    ends_for_an_import(f);
    assert_int_equal(core_event(f, EVENT_RESTORE_FAILED)->flags, EVENT_FLAG_IMPORTS);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
    assert_string_equal(core_job(f)->gen.end_text, "40 is there");
}

/* R11.6, R11.4: its number is below what it imports. Nobody comes in between, no number is used
 * twice, and a start of the broker changes nothing of that. */
static void rank_0_of_a_launch_that_ends_imports_and_the_next_one_goes_on(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    ends_for_an_import(f);
    core_leave(f, 1, LEAVE_PREEMPTED, 42);
    assert_int_equal(import(f, 3, 7, 40, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    assert_int_equal(core_job(f)->gen.generation, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    core_restart(f, false);
    core_hello(f, 0);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    f->nodes[0] = (struct core_node){.role = f->nodes[0].role, .incarnation = 900, .route = 900};
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.generation, 4);
    assert_int_equal(core_job(f)->gen.resume_checkpoint, 7);
    assert_int_equal(core_job(f)->gen.resume_step, 40);
}

static void a_launch_that_ends_after_it_took_steps_takes_no_import(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    core_error(f, 0, 5, "diverged");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(import(f, 3, 7, 40, &value), MUSTER_E_BUSY);
}

/* R11.6: its copies are told by it. */
static void a_database_keeps_the_number_of_its_first_start(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first;

    core_hello(f, 0);
    first = core_sent(f, f->nodes[0].route, WIRE_WELCOME)->u.welcome.database;
    assert_int_not_equal(first, 0);
    core_restart(f, false);
    core_hello(f, 0);
    assert_int_equal(core_sent(f, f->nodes[0].route, WIRE_WELCOME)->u.welcome.database, first);
    assert_int_not_equal(core_start_id(f->core), first);
}

int main(void)
{
#define TEST(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)
    const struct CMUnitTest tests[] = {
        TEST(an_import_is_told_once_and_a_later_one_again, core_open_two_sharded),
        TEST(a_database_keeps_the_number_of_its_first_start, core_open_two_sharded),
        TEST(a_launch_that_ends_after_it_took_steps_takes_no_import, core_run_two_sharded),
        TEST(a_launch_that_ends_for_an_import_leaves_with_the_restart_code, core_open_two_sharded),
        TEST(rank_0_of_a_launch_that_ends_imports_and_the_next_one_goes_on, core_open_two_sharded),
        TEST(a_lost_database_is_rebuilt, core_open_two_sharded),
        TEST(parts_come_in_order_and_may_be_repeated, core_open_two_sharded),
        TEST(a_running_job_and_numbers_of_its_own_refuse, core_run_two_sharded),
        TEST(what_a_later_launch_gave_up_stays_given_up, core_open_two_sharded),
        TEST(where_a_launch_began_is_in_its_manifests, core_open_two_sharded),
        TEST(an_older_one_that_comes_late_is_given_up_too, core_open_two_sharded),
        TEST(the_row_of_a_launch_that_is_here_stays, core_run_two_sharded),
        TEST(one_without_its_name_gets_it_by_the_next_launch, core_open_two_sharded),
        TEST(a_directory_below_one_of_that_name_is_a_place_like_any_other, core_open_two_sharded),
        TEST(one_that_was_refused_is_refused_again, core_run_two_sharded),
        TEST(one_that_was_aborted_here_and_is_whole_on_disk_is_taken, core_run_two_sharded),
        TEST(numbers_of_rounds_that_left_nothing_are_free, core_run_two_sharded),
        TEST(a_number_that_was_jumped_over_is_free, core_run_two_sharded),
        TEST(a_number_of_which_nothing_is_known_any_more_is_not, core_run_two_sharded),
        TEST(a_launch_that_is_found_has_nothing_of_the_one_before, core_run_two_sharded),
        TEST(a_launch_that_was_found_is_over_for_who_lives_in_it, core_open_two_sharded),
        TEST(a_launch_before_the_one_that_was_found_does_not, core_open_two_sharded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
