/* The broker's core: opening with one resume choice, restoring, falling back, ending and what
 * follows. PROTOCOL.md R3. */
#include "schema/wire/wire_bytes.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* New processes for all ranks. */
static void new_lives(struct core_fixture *f)
{
    for (int n = 0; n < CORE_NODES; n++) {
        struct core_node *node = &f->nodes[n];
        *node = (struct core_node){.role = node->role,
                                   .rank = node->rank,
                                   .incarnation = node->incarnation + 1000,
                                   .route = node->route};
    }
}

static void all_finish(struct core_fixture *f)
{
    for (int n = 0; n < (int)f->world_size; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    new_lives(f);
}

static void manifest_done(struct core_fixture *f, int node, uint64_t checkpoint, const char *path)
{
    struct wire_msg message = core_msg(f, node, WIRE_MANIFEST_DONE);

    message.u.manifest_done = (struct wire_manifest_done){.checkpoint = checkpoint, .path = path};
    core_say(f, node, message);
}

static void restore_failed(struct core_fixture *f, int node, uint64_t checkpoint)
{
    struct wire_msg message = core_msg(f, node, WIRE_RESTORE_FAILED);

    message.u.restore_failed =
        (struct wire_restore_failed){.checkpoint = checkpoint, .step = -1, .text = "torn file"};
    core_say(f, node, message);
}

/* Checkpoints 1 (step 10) and 2 (step 20), both in place; everybody left. */
static void two_checkpoints(struct core_fixture *f)
{
    core_commit_at(f, 10);
    manifest_done(f, 0, 1, "/ckpt/step-10");
    core_commit_at(f, 20);
    manifest_done(f, 0, 2, "/ckpt/step-20");
    all_finish(f);
}

/* --- joining ---------------------------------------------------------------------------------- */

/* R3.5 */
static void ranks_that_do_not_come_end_the_generation_by_name(void **state)
{
    struct core_fixture *f = *state;

    f->world_size = 3;
    core_hello(f, 0);
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_pass(f, JOIN_TIMEOUT_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "join failed MUSTER_E_JOIN");
    assert_string_equal(core_event(f, EVENT_JOIN_FAILED)->text,
                        "these ranks did not join and restore in time: 1 (has not restored), 2");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_JOIN);
}

/* Rank 0 of two comes and asks for a join timeout. */
static void hello_with_timeout(struct core_fixture *f, int64_t join_timeout_ms)
{
    struct wire_msg hello = core_msg(f, 0, WIRE_HELLO);

    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .nonce = 1,
                                        .world_size = 2,
                                        .host = "h",
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt",
                                        .join_timeout_ms = (uint64_t)join_timeout_ms};
    core_feed(f, 100, &hello);
    f->nodes[0].generation = core_job(f)->gen.generation;
}

static void a_hello_may_ask_for_another_join_timeout(void **state)
{
    struct core_fixture *f = *state;

    hello_with_timeout(f, 3000);
    core_pass(f, 2999);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "join failed MUSTER_E_JOIN");
}

static void a_join_timeout_that_was_asked_for_outlives_a_start_of_the_broker(void **state)
{
    struct core_fixture *f = *state;

    hello_with_timeout(f, 2 * JOIN_TIMEOUT_MS);
    core_restart(f, false);
    hello_with_timeout(f, 2 * JOIN_TIMEOUT_MS);
    f->nodes[1].silent = true;
    core_pass(f, 2 * JOIN_TIMEOUT_MS - 1000);
    assert_events(f, "");
    core_pass(f, 1000);
    assert_non_null(core_event(f, EVENT_JOIN_FAILED));
}

/* A rank came in time, and its HELLO lay unread; or RESTORED was answered that nothing can be
 * written. */
static void the_brokers_own_absence_is_no_time_to_join(void **state)
{
    struct core_fixture *f = *state;

    hello_with_timeout(f, 8000);
    core_pass(f, 1000);
    f->now += 60000;
    core_tick(f);
    assert_events(f, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_JOINING);
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_restored(f, 1, 0, 0);
    assert_events(f, "started");
}

/* It lasts longer by it, and no longer than all of it from then on. */
static void behind_the_brokers_absence_the_join_timeout_is_as_ever(void **state)
{
    struct core_fixture *f = *state;

    hello_with_timeout(f, 8000);
    core_pass(f, 2000);
    for (int i = 0; i < 2; i++) { /* 6 s were left */
        f->now += 60000;
        core_tick(f);
        core_pass(f, 2000);
    }
    core_pass(f, 1999);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "join failed MUSTER_E_JOIN");
}

static void nor_is_it_after_a_start_of_the_broker(void **state)
{
    struct core_fixture *f = *state;

    hello_with_timeout(f, 2 * JOIN_TIMEOUT_MS);
    core_restart(f, false);
    f->now += JOIN_TIMEOUT_MS / 2;
    core_tick(f); /* this start knows of the option's timeout alone */
    hello_with_timeout(f, 2 * JOIN_TIMEOUT_MS);
    f->now += JOIN_TIMEOUT_MS / 2;
    core_tick(f);
    core_pass(f, 2 * JOIN_TIMEOUT_MS - 1000);
    assert_events(f, "");
    core_pass(f, 1000);
    assert_non_null(core_event(f, EVENT_JOIN_FAILED));
}

static void a_loop_whose_every_pass_is_slow_ends_the_joining(void **state)
{
    struct core_fixture *f = *state;
    int passes = 0;

    hello_with_timeout(f, 8000);
    for (core_tick(f); passes < 3600 && core_event(f, EVENT_JOIN_FAILED) == NULL; passes++) {
        f->now += LOOP_GAP_MS + 100;
        core_heartbeat(f, 0);
        core_tick(f);
    }
    assert_events(f, "join failed MUSTER_E_JOIN");
    assert_int_equal(passes, GAPS_FORGIVEN + 8000 / LOOP_GAP_MS);
}

/* R3.5 */
static void nobody_waits_for_a_rank_that_finished_while_the_others_joined(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0); /* the only one so far: the launch is not over with it */
    assert_events(f, "");
    core_hello(f, 1);
    assert_answers(f, "1:welcome g1; 1:SNAPSHOT");
    core_restored(f, 1, 0, 0);
    assert_events(f, "started");
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_events(f, "generation ended");
}

static void a_rank_that_finished_alone_does_so_also_for_the_next_start_of_the_broker(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_restart(f, false);
    core_hello(f, 1);
    assert_answers(f, "1:welcome g1; 1:SNAPSHOT");
    core_restored(f, 1, 0, 0);
    assert_events(f, "started");
}

/* R3.5 */
static void a_launch_of_which_only_a_finished_rank_came_is_given_up_in_the_end(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_pass(f, JOIN_TIMEOUT_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "join failed MUSTER_E_JOIN; generation ended");
    core_hello(f, 1);
    assert_events(f, "generation opened S0; resume S0");
}

/* R3.7 */
static void another_launch_need_not_fit_to_one_of_which_nobody_lives(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->world_size = 3;
    core_hello(f, 2);
    assert_events(f, "generation ended; generation opened S0; resume S0");
    assert_int_equal(core_job(f)->gen.world_size, 3);
}

static void a_rank_that_left_otherwise_before_the_others_came_ends_its_generation(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FAILED, 3);
    assert_events(f, "generation ended");
}

/* --- the choice ------------------------------------------------------------------------------- */

/* R3.1 */
static void a_generation_resumes_from_the_newest_checkpoint_and_says_where(void **state)
{
    struct core_fixture *f = *state;

    two_checkpoints(f);
    core_hello(f, 1);
    assert_events(f, "generation opened S20 c2; resume S20 c2");
    assert_string_equal(core_event(f, EVENT_RESUME)->path, "/ckpt/step-20");
    const struct wire_snapshot *s = &core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot;
    assert_int_equal(s->resume_checkpoint, 2);
    assert_int_equal(s->resume_step, 20);
    assert_true(s->resume_ready);
    assert_false(s->resume_repair);
    assert_string_equal(s->resume_path, "/ckpt/step-20");
}

/* R3.2, R5.12 */
static void a_missing_manifest_is_written_by_rank_0_before_anybody_restores(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    all_finish(f);
    core_hello(f, 1);
    assert_events(f, "generation opened S10 c1");
    assert_false(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_ready);
    assert_false(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    core_restart(f, false); /* the order to repair is given again */
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    core_hello(f, 1);
    manifest_done(f, 0, 1, "/ckpt/step-10");
    assert_core(f, "+checkpoint 1 committed; +job; +event 9; !9 manifest r1 S10 c1; "
                   "+generation joining; +job; +event 10; !10 resume S10 c1; "
                   "+node 0 joined #1; 0:ack #1 MUSTER_OK");
    manifest_done(f, 0, 1, "/other");
    assert_events(f, ""); /* after that nobody renames */
    assert_string_equal(registry_newest(core_job(f))->path, "/ckpt/step-10");
}

/* R3.3 */
static void another_step_than_told_ends_the_generation(void **state)
{
    struct core_fixture *f = *state;

    two_checkpoints(f);
    core_hello(f, 0);
    core_hello(f, 1);
    core_restored(f, 0, 2, 20);
    core_restored(f, 1, 1, 10);
    assert_events(f, "restore failed c1 rank 1 MUSTER_E_RESTORE");
    assert_answers(f, "1:ack #1 MUSTER_E_RESTORE");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_RESTORE);
}

/* R3.3 */
static void a_failed_restore_is_an_error_for_all(void **state)
{
    struct core_fixture *f = *state;

    two_checkpoints(f);
    core_hello(f, 0);
    restore_failed(f, 0, 2);
    assert_events(f, "restore failed c2 rank 0 MUSTER_E_RESTORE");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_RESTORE);
    assert_int_equal(core_job(f)->gen.error_rank, 0);
}

/* R3.4 */
static void with_fallback_all_go_back_to_the_next_older_one(void **state)
{
    struct core_fixture *f = *state;

    f->fallback = true;
    two_checkpoints(f);
    core_hello(f, 0);
    core_hello(f, 1);
    core_restored(f, 0, 2, 20);
    restore_failed(f, 1, 2);
    assert_core(f, "+generation joining; +node 0 joined #1; "
                   "+job; +event 15; !15 restore failed c2 rank 1 MUSTER_E_RESTORE retry; "
                   "+generation joining; +job; +event 16; !16 resume S10 c1; "
                   "+node 1 joined #1; 1:ack #1 MUSTER_OK");
    restore_failed(f, 0, 2); /* of the choice that was given up */
    assert_events(f, "");
    core_restored(f, 0, 2, 20);
    assert_events(f, "");
    core_restored(f, 0, 1, 10);
    core_restart(f, false); /* only the launch that runs on it gives the newer ones up */
    assert_int_equal(registry_newest(core_job(f))->row.round, 2);
    assert_int_equal(core_job(f)->gen.resume_step, 10);
    core_hello(f, 0);
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.newest_checkpoint, 1);
    core_restored(f, 1, 1, 10);
    assert_core(f, "+node 1 restored #1; +launch 2 >10; +generation running; +job; +event 17; "
                   "!17 started; +node 1 restored #2; 1:ack #2 MUSTER_OK");
    assert_int_equal(registry_newest(core_job(f))->row.round, 1);
    core_restart(f, false); /* what was superseded is never taken again */
    assert_int_equal(registry_newest(core_job(f))->row.round, 1);
    assert_int_equal(core_job(f)->gen.resume_step, 10);
}

/* A tensor of another type: no older checkpoint is damaged less (R3.4). */
static void what_does_not_fit_the_program_gives_up_nothing(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message;

    f->fallback = true;
    two_checkpoints(f);
    core_hello(f, 0);
    core_hello(f, 1);
    message = core_msg(f, 0, WIRE_RESTORE_FAILED);
    message.u.restore_failed = (struct wire_restore_failed){
        .checkpoint = 2, .step = 20, .text = "w is F64", .final = true};
    core_say(f, 0, message);
    assert_events(f, "restore failed S20 c2 rank 0 MUSTER_E_RESTORE");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_string_equal(core_job(f)->gen.end_text, "rank 0 could not restore: w is F64");
    assert_int_equal(registry_newest(core_job(f))->row.round, 2);
}

/* A launch that cannot restore, for a reason of that many pieces. Returns the text of its end. */
static const char *end_by(struct core_fixture *f, const char *piece, int count)
{
    static char why[2000];
    struct wire_msg message;

    why[0] = '\0';
    for (int i = 0; i < count; i++)
        strcat(why, piece);
    two_checkpoints(f);
    core_hello(f, 0);
    core_hello(f, 1);
    message = core_msg(f, 0, WIRE_RESTORE_FAILED);
    message.u.restore_failed =
        (struct wire_restore_failed){.checkpoint = 2, .step = 20, .text = why, .final = true};
    core_say(f, 0, message);
    assert_string_equal(core_job(f)->gen.error_text, why);
    return core_job(f)->gen.end_text;
}

static const char end_rest[] = " ... (`muster events` has it whole)";

static void the_text_of_an_end_is_cut_behind_a_word_and_says_so(void **state)
{
    const char *text = end_by(*state, "a whole word ", 60), *rest = strstr(text, end_rest);

    assert_non_null(rest);
    assert_in_range(strlen(text), 512 - sizeof "a whole word", 511);
    assert_string_equal(rest, end_rest);
    assert_true(strncmp(rest - 4, "word", 4) == 0 || strncmp(rest - 5, "whole", 5) == 0 ||
                strncmp(rest - 2, " a", 2) == 0);
}

static void the_text_of_an_end_of_one_long_word_is_cut_between_two_characters(void **state)
{
    const char *text = end_by(*state, "\xe2\x82\xac", 400), *rest = strstr(text, end_rest);

    assert_non_null(rest);
    assert_true(wire_utf8_ok(text, strlen(text)));
}

static void the_text_of_an_end_that_fits_is_whole(void **state)
{
    static const char begins[] = "rank 0 could not restore: ";
    int fits = 511 - (int)strlen(begins);
    const char *text = end_by(*state, "x", fits);

    assert_int_equal(strlen(text), 511);
    assert_null(strstr(text, "..."));
}

/* It may take the older of two checkpoints, which has no manifest. */
static void launch_with_an_older_one(struct core_fixture *f)
{
    f->fallback = true;
    core_commit_at(f, 10); /* no manifest */
    core_commit_at(f, 20);
    manifest_done(f, 0, 2, "/ckpt/step-20");
    all_finish(f);
    core_hello(f, 0);
    core_hello(f, 1);
}

static void a_fallback_to_one_without_manifest_is_repaired_first_also_after_a_restart(void **state)
{
    struct core_fixture *f = *state;

    launch_with_an_older_one(f);
    restore_failed(f, 1, 2);
    assert_events(f, "restore failed c2 rank 1 MUSTER_E_RESTORE retry");
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    assert_int_equal(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, 1);
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_restart(f, false);
    assert_int_equal(core_job(f)->gen.resume_checkpoint, 1);
    assert_false(core_job(f)->gen.resume_ready);
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
}

/* A database restored from an older copy: what it commits without a manifest was deleted since. */
static void what_cannot_be_repaired_is_a_failed_restore_and_falls_back_like_one(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    manifest_done(f, 0, 1, "/ckpt/step-10");
    core_commit_at(f, 20); /* no manifest */
    all_finish(f);
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    restore_failed(f, 0, 2);
    assert_events(f, "restore failed c2 rank 0 MUSTER_E_RESTORE");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_RESTORE);
    all_finish(f);
    f->fallback = true;
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    restore_failed(f, 0, 2);
    assert_events(f, "restore failed c2 rank 0 MUSTER_E_RESTORE retry; resume S10 c1");
}

/* A broker that starts has not heard it: nobody's connection would get the order. */
static void the_order_to_repair_waits_for_a_rank_0_that_is_not_back(void **state)
{
    struct core_fixture *f = *state;

    launch_with_an_older_one(f);
    core_restart(f, false);
    core_hello(f, 1);
    restore_failed(f, 1, 2);
    assert_events(f, "restore failed c2 rank 1 MUSTER_E_RESTORE retry");
    assert_null(core_sent(f, 0, WIRE_SNAPSHOT));
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
}

static void when_nothing_older_is_left_the_fallback_is_an_error_too(void **state)
{
    struct core_fixture *f = *state;

    f->fallback = true;
    core_commit_at(f, 10);
    manifest_done(f, 0, 1, "/ckpt/step-10");
    all_finish(f);
    core_hello(f, 0);
    restore_failed(f, 0, 1);
    assert_events(f, "restore failed c1 rank 0 MUSTER_E_RESTORE");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_non_null(strstr(core_job(f)->gen.end_text, "torn file; no older checkpoint is left"));
}

/* R3.4 */
static void a_fallback_that_finds_none_whole_changes_nothing(void **state)
{
    struct core_fixture *f = *state;

    f->fallback = true;
    two_checkpoints(f);
    core_hello(f, 0);
    core_hello(f, 1);
    restore_failed(f, 0, 2);
    restore_failed(f, 1, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    core_leave(f, 0, LEAVE_ERROR, 1);
    core_leave(f, 1, LEAVE_ERROR, 1);
    new_lives(f);
    core_hello(f, 0);
    core_hello(f, 1);
    assert_int_equal(core_job(f)->gen.resume_checkpoint, 2);
    core_restored(f, 0, 2, 20); /* the database was restored meanwhile */
    core_restored(f, 1, 2, 20);
    assert_events(f, "started");
    assert_int_equal(core_job(f)->checkpoints_count, 2);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* R3.12 */
static void an_ending_generation_keeps_the_next_one_out_until_all_left_or_ten_seconds(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 60000);
    core_report(f, 0, 1, 5, 5);
    core_report(f, 1, 1, 5, 5);
    core_save(f, 0, 1, 5);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    f->nodes[2] = f->nodes[0];
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = f->nodes[2].request = 0;
    core_hello(f, 2);
    assert_core(f, "2:refused MUSTER_E_ENDING retry");
    assert_non_null(strstr(core_sent(f, 102, WIRE_REFUSED)->u.refused.text, "2 of its processes"));
    manifest_done(f, 0, 1, "/ckpt/step-5"); /* its own are served */
    assert_events(f, "manifest r1 S5 c1");
    core_hello(f, 1);
    assert_answers(f, "1:welcome g1");
    core_leave(f, 0, LEAVE_PREEMPTED, 0);
    assert_events(f, ""); /* nobody gets an error for that */
    core_pass(f, ENDING_MS - 1);
    core_hello(f, 2);
    assert_answers(f, "2:refused MUSTER_E_ENDING retry");
    core_pass(f, 1);
    core_hello(f, 2);
    assert_core(f, "+node 1 fenced #1; +generation ended; +job; +generation joining; +job; "
                   "+event 9; !9 generation opened S5 c1; +generation joining; +job; +event 10; "
                   "!10 resume S5 c1; +node 0 joined #0; 2:welcome g2; 2:SNAPSHOT");
    core_heartbeat(f, 1);
    assert_answers(f, "1:ack #0 MUSTER_E_HELLO");
    core_hello(f, 1);
    assert_answers(f, "1:refused MUSTER_E_STALE");
    struct wire_msg late = core_msg(f, 1, WIRE_MANIFEST_DONE);
    core_say(f, 1, late);
    assert_core(f, "1:ack #2 MUSTER_E_HELLO");
}

/* They hear of the end when the loop is back, and have their time from then. */
static void an_end_that_a_gap_kept_from_its_nodes_is_given_its_time(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 0, 6, "bad");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    f->nodes[2] = f->nodes[0];
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = f->nodes[2].request = 0;
    f->now += ENDING_MS + 1000;
    core_hello(f, 2); /* before the tick of its pass */
    assert_answers(f, "2:refused MUSTER_E_ENDING retry");
    core_tick(f);
    core_pass(f, ENDING_MS - 1);
    core_hello(f, 2);
    assert_answers(f, "2:refused MUSTER_E_ENDING retry");
    core_pass(f, 1);
    core_hello(f, 2);
    assert_events(f, "generation opened S0; resume S0");
}

static void the_next_generation_opens_as_soon_as_the_last_one_left(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 1, 5, "bad");
    core_leave(f, 1, LEAVE_FAILED, 1);
    core_leave(f, 0, LEAVE_FAILED, 1);
    assert_events(f, "generation ended");
    new_lives(f);
    core_hello(f, 1);
    assert_answers(f, "1:welcome g2; 1:SNAPSHOT");
    assert_int_equal(core_job(f)->gen.error_rank, -1);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_OK);
}

/* R3.11 */
static void a_rank_that_comes_again_after_steps_ends_the_generation(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 1, LEAVE_FINISHED, 0);
    f->nodes[2] = f->nodes[1];
    f->nodes[2].incarnation = 72;
    f->nodes[2].generation = f->nodes[2].request = 0;
    core_hello(f, 2);
    assert_events(f, "rank restarted rank 1 MUSTER_E_PEER");
    assert_answers(f, "1:refused MUSTER_E_ENDING retry");
    core_leave(f, 0, LEAVE_FAILED, 1);
    core_hello(f, 2);
    assert_answers(f, "1:welcome g2; 1:SNAPSHOT");
}

static void a_rank_that_comes_again_waits_for_the_save_that_is_under_way(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 5, 5);
    core_report(f, 1, 1, 5, 5);
    core_at_step(f, 1, 1, 5, true);
    core_leave(f, 1, LEAVE_FINISHED, 0); /* captured: nobody needs it any more */
    f->nodes[2] = f->nodes[1];
    f->nodes[2].incarnation = 72;
    f->nodes[2].generation = f->nodes[2].request = 0;
    core_hello(f, 2);
    assert_core(f, "1:refused MUSTER_E_ENDING retry");
    core_save(f, 0, 1, 5);
    assert_events(f, "commit r1 operator S5 c1 rank 0");
    core_hello(f, 2);
    assert_events(f, "rank restarted rank 1 MUSTER_E_PEER");
}

/* R3.9 */
static void the_first_hello_of_who_left_opens_and_joins_nothing_when_it_comes_late(void **state)
{
    struct core_fixture *f = *state;
    struct core_node late = f->nodes[1];

    late.generation = late.request = 0;
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    new_lives(f);
    core_hello(f, 0);
    assert_events(f, "generation opened S0; resume S0");
    uint64_t opened = core_job(f)->gen.generation;
    struct core_node comes = f->nodes[1];
    f->nodes[1] = late;
    core_hello(f, 1);
    assert_answers(f, "1:refused MUSTER_E_STALE");
    assert_null(peer_find(f->core, late.incarnation));
    f->nodes[1] = comes; /* its rank is free for who really comes */
    core_hello(f, 1);
    assert_int_equal(core_job(f)->gen.generation, opened);
    assert_ptr_equal(core_job(f)->trainers[1], peer_find(f->core, comes.incarnation));
}

/* R3.12 */
static void a_write_behind_ends_aborted_with_its_generation_and_promises_nothing(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 5, 5);
    core_report(f, 1, 1, 5, 5);
    core_at_step(f, 1, 1, 5, true);
    core_at_step(f, 0, 1, 5, true); /* a snapshot; the write goes on behind */
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.state, ROUND_WRITING);
    core_error(f, 1, 6, "bad");
    core_pass(f, ENDING_MS);
    new_lives(f);
    core_hello(f, 0); /* the write behind is given its bound */
    assert_answers(f, "0:refused MUSTER_E_ENDING retry");
    core_pass(f, STUCK_MS);
    core_hello(f, 0);
    assert_events(f, "generation opened S0; resume S0");
    assert_int_equal(round_outcome(core_job(f), 1).state, ROUND_ABORTED);
}

static void all_gone_aborts_what_is_open_and_promises_nothing(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 60000);
    core_report(f, 0, 1, 5, 5);
    core_report(f, 1, 1, 5, 5);
    f->nodes[0].silent = f->nodes[1].silent = true;
    core_pass(f, 2 * LOST_MS);
    assert_non_null(core_event(f, EVENT_GENERATION_ENDED));
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    for (size_t i = 0; i < f->out.count; i++) /* the last abort is final */
        if (f->out.items[i].kind == ACTION_PERSIST && f->out.items[i].record.kind == RECORD_ROUND &&
            f->out.items[i].record.u.round.round == core_job(f)->round)
            assert_true(f->out.items[i].record.u.round.state != ROUND_ABORTED ||
                        f->out.items[i].record.u.round.final);
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        assert_false(core_job(f)->rounds[i].used);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(ranks_that_do_not_come_end_the_generation_by_name, core_open_two),
        T(a_hello_may_ask_for_another_join_timeout, core_open_two),
        T(a_join_timeout_that_was_asked_for_outlives_a_start_of_the_broker, core_open_two),
        T(the_brokers_own_absence_is_no_time_to_join, core_open_two),
        T(behind_the_brokers_absence_the_join_timeout_is_as_ever, core_open_two),
        T(nor_is_it_after_a_start_of_the_broker, core_open_two),
        T(a_loop_whose_every_pass_is_slow_ends_the_joining, core_open_two),
        T(nobody_waits_for_a_rank_that_finished_while_the_others_joined, core_open_two),
        T(a_rank_that_finished_alone_does_so_also_for_the_next_start_of_the_broker, core_open_two),
        T(a_launch_of_which_only_a_finished_rank_came_is_given_up_in_the_end, core_open_two),
        T(another_launch_need_not_fit_to_one_of_which_nobody_lives, core_open_two),
        T(a_rank_that_left_otherwise_before_the_others_came_ends_its_generation, core_open_two),
        T(a_generation_resumes_from_the_newest_checkpoint_and_says_where, core_run_two),
        T(a_missing_manifest_is_written_by_rank_0_before_anybody_restores, core_run_two),
        T(another_step_than_told_ends_the_generation, core_run_two),
        T(a_failed_restore_is_an_error_for_all, core_run_two),
        T(with_fallback_all_go_back_to_the_next_older_one, core_run_two),
        T(what_does_not_fit_the_program_gives_up_nothing, core_run_two),
        T(the_text_of_an_end_is_cut_behind_a_word_and_says_so, core_run_two),
        T(the_text_of_an_end_of_one_long_word_is_cut_between_two_characters, core_run_two),
        T(the_text_of_an_end_that_fits_is_whole, core_run_two),
        T(a_fallback_to_one_without_manifest_is_repaired_first_also_after_a_restart, core_run_two),
        T(what_cannot_be_repaired_is_a_failed_restore_and_falls_back_like_one, core_run_two),
        T(the_order_to_repair_waits_for_a_rank_0_that_is_not_back, core_run_two),
        T(when_nothing_older_is_left_the_fallback_is_an_error_too, core_run_two),
        T(a_fallback_that_finds_none_whole_changes_nothing, core_run_two),
        T(an_ending_generation_keeps_the_next_one_out_until_all_left_or_ten_seconds, core_run_two),
        T(an_end_that_a_gap_kept_from_its_nodes_is_given_its_time, core_run_two),
        T(the_next_generation_opens_as_soon_as_the_last_one_left, core_run_two),
        T(a_rank_that_comes_again_after_steps_ends_the_generation, core_run_two),
        T(a_rank_that_comes_again_waits_for_the_save_that_is_under_way, core_run_two),
        T(the_first_hello_of_who_left_opens_and_joins_nothing_when_it_comes_late, core_run_two),
        T(a_write_behind_ends_aborted_with_its_generation_and_promises_nothing, core_run_two),
        T(all_gone_aborts_what_is_open_and_promises_nothing, core_run_two),
    };

    return cmocka_run_group_tests_name("core_generation", tests, NULL, NULL);
}
