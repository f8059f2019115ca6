/* The broker's core: keep policies with their deletions, pins, and the rounds that save policies open. The
 * examples of policies run here through commits, deletions by the chief's hand and restarts of the broker. */
#include "broker/core/keep.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define HOUR ((int64_t)3600000)

static int one_running(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 1, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

static int three_running(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 3, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

static int close_core(void **state)
{
    core_fixture_close(*state);
    return 0;
}

/* --- what nodes say ------------------------------------------------------------------------------ */

static void policies(struct core_fixture *f, const char *keep, const char *save)
{
    struct wire_msg message = core_msg(f, 0, WIRE_POLICIES);

    message.u.policies = (struct wire_policies){.keep = keep, .save = save, .trash = ""};
    core_say(f, 0, message);
}

static void manifest_done(struct core_fixture *f, uint64_t checkpoint, int64_t step)
{
    struct wire_msg message = core_msg(f, 0, WIRE_MANIFEST_DONE);
    char path[64];

    snprintf(path, sizeof path, "/ckpt/%lld", (long long)step);
    message.u.manifest_done = (struct wire_manifest_done){.checkpoint = checkpoint, .path = path};
    core_say(f, 0, message);
}

static void deleted(struct core_fixture *f, int node, uint64_t checkpoint, unsigned code)
{
    struct wire_msg message = core_msg(f, node, WIRE_DELETED);

    message.u.deleted =
        (struct wire_deleted){.checkpoint = checkpoint, .code = code, .text = "why not"};
    core_say(f, node, message);
}

static void sweep(struct core_fixture *f, bool final)
{
    struct wire_msg message = core_msg(f, 0, WIRE_SWEEP);

    message.u.sweep.final = final;
    core_say(f, 0, message);
}

static unsigned ack_code(const struct core_fixture *f, int node)
{
    const struct wire_msg *ack = core_sent(f, 100 + (uint64_t)node, WIRE_ACK);

    assert_non_null(ack);
    return (unsigned)ack->u.ack.code;
}

static uint64_t ack_value(const struct core_fixture *f, int node)
{
    assert_int_equal(ack_code(f, node), MUSTER_OK);
    return core_sent(f, 100 + (uint64_t)node, WIRE_ACK)->u.ack.value;
}

/* A committed checkpoint of `step`, its manifest in place. Returns its number. */
static uint64_t saved(struct core_fixture *f, int64_t step)
{
    core_commit_at(f, step);
    uint64_t checkpoint = core_job(f)->round;
    manifest_done(f, checkpoint, step);
    return checkpoint;
}

/* The chief's hand: whatever it is told to delete, it deletes. */
static void obey(struct core_fixture *f)
{
    uint64_t told[DELETES_IN_FLIGHT_MAX];
    size_t count;

    do {
        count = 0;
        core_tick(f);
        for (size_t i = 0; i < f->out.count; i++)
            if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_DELETE)
                told[count++] = f->out.items[i].message.u.delete.checkpoint;
        for (size_t i = 0; i < count; i++)
            deleted(f, 0, told[i], MUSTER_OK);
    } while (count > 0);
}

/* Whom the last messages tell to delete what. */
static void assert_deletes(struct core_fixture *f, const char *expected)
{
    char found[256] = "";

    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_DELETE)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%llu:%llu",
                     found[0] != '\0' ? " " : "", (unsigned long long)f->out.items[i].route - 100,
                     (unsigned long long)f->out.items[i].message.u.delete.checkpoint);
    assert_string_equal(found, expected);
}

/* The steps of committed checkpoints, as the core has them and as the rows do. */
static void assert_kept(struct core_fixture *f, const char *what, const char *expected)
{
    const struct job *job = core_job(f);
    char found[256] = "";
    size_t rows = 0;

    for (size_t i = 0; i < job->checkpoints_count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i > 0 ? " " : "",
                 (long long)job->checkpoints[i].row.step);
    if (strcmp(found, expected) != 0)
        fail_msg("%s: %s is kept, not %s", what, found, expected);
    for (size_t i = 0; i < f->rows_count; i++)
        rows += f->rows[i].kind == RECORD_CHECKPOINT &&
                f->rows[i].u.checkpoint.state == CHECKPOINT_COMMITTED;
    assert_int_equal(rows, job->checkpoints_count);
}

static void restart(struct core_fixture *f)
{
    core_restart(f, false);
    for (int n = 0; n < (int)f->world_size; n++)
        core_hello(f, n);
    core_clear(f);
}

/* The launch ends, and the next one resumes and tells its policies again. */
static void launch_again(struct core_fixture *f, const char *keep)
{
    const struct checkpoint *newest;

    for (int n = 0; n < (int)f->world_size; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n] = (struct core_node){.role = n == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                         .rank = (uint64_t)n,
                                         .incarnation = f->nodes[n].incarnation + 100,
                                         .route = 100 + (uint64_t)n};
        core_hello(f, n);
    }
    newest = registry_newest(core_job(f));
    for (int n = 0; n < (int)f->world_size; n++)
        core_restored(f, n, newest ? newest->row.round : 0, newest ? newest->row.step : 0);
    policies(f, keep, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* --- the examples -------------------------------------------------------------------------------- */

struct keep_case {
    const char *what;
    const char *keep;
    int64_t steps[12]; /* saved one after another an hour apart; done = step + 1 of a user's step */
    size_t count;
    const char *kept;       /* with the newest */
    const char *kept_close; /* after the job said that it is done */
};

/* As a user counts steps from 0: `from 1`, given steps one more. */
static const struct keep_case cases[] = {
    {"keep 2 over 5 saves", "latest 2", {1, 2, 3, 4, 5}, 5, "4 5", "4 5"},
    {"keep 2, every 4, interval 2, 12 steps",
     "latest 2; every 4 from 1",
     {1, 3, 5, 7, 9, 11},
     6,
     "1 5 9 11",
     "1 5 9 11"},
    {"keep 0, every 3, every 5 h over 9 hourly saves",
     "latest 0; every 3 from 1; every-ms 18000000",
     {1, 2, 3, 4, 5, 6, 7, 8, 9},
     9,
     "1 4 6 7 9",
     "1 4 6 7"},
    {"every 3 from the last kept",
     "near 3",
     {1, 2, 3, 5, 6, 9, 10, 14, 15, 26},
     10,
     "1 5 9 14 26",
     "1 5 9 14 26"},
    {"interval 2 over 6, all kept", "", {1, 3, 5}, 3, "1 3 5", "1 3 5"},
    {"keep 0", "latest 0", {1, 2, 3}, 3, "3", ""},
    {"given steps", "steps 2 4", {1, 2, 3, 4, 5, 6}, 6, "2 4 6", "2 4"},
    {"last 2 h", "last-ms 7200000", {1, 2, 3, 4, 5}, 5, "3 4 5", "3 4 5"},
};

enum between { NOTHING, RESTARTS, LAUNCHES };

static void run_case(struct core_fixture *f, const struct keep_case *c, enum between between)
{
    policies(f, c->keep, "");
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    for (size_t i = 0; i < c->count; i++) {
        saved(f, c->steps[i]);
        if (between == RESTARTS)
            restart(f);
        obey(f);
        if (between == LAUNCHES)
            launch_again(f, c->keep);
        f->now += HOUR;
        core_tick(f);
        obey(f);
    }
    assert_kept(f, c->what, c->kept);
    sweep(f, true);
    uint64_t left = ack_value(f, 0);
    obey(f);
    sweep(f, true);
    assert_int_equal(ack_value(f, 0), 0);
    assert_true(left <= 1);
    assert_kept(f, c->what, c->kept_close);
}

static void run_cases(enum between between)
{
    struct core_fixture f;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        core_fixture_running(&f, 1, LAYOUT_REPLICATED);
        run_case(&f, &cases[i], between);
        core_fixture_close(&f);
    }
}

static void the_examples_hold(void **state)
{
    (void)state;
    run_cases(NOTHING);
}

static void the_examples_hold_with_a_restart_after_every_save(void **state)
{
    (void)state;
    run_cases(RESTARTS);
}

static void the_examples_hold_over_launches(void **state)
{
    (void)state;
    run_cases(LAUNCHES);
}

static void the_best_by_metric_stay(void **state)
{
    struct core_fixture *f = *state;
    static const char *const losses[] = {"{\"loss\": 3}", "{\"loss\": 1}", NULL, "{\"loss\": 2}",
                                         "{\"loss\": 9}"};

    policies(f, "best 2 least loss", "");
    for (int i = 0; i < 5; i++) {
        f->metrics = losses[i];
        saved(f, i + 1);
        obey(f);
    }
    assert_kept(f, "best 2", "2 4 5");
    restart(f); /* the metrics are in the rows */
    f->metrics = "{\"loss\": 0.5}";
    saved(f, 6);
    obey(f);
    assert_kept(f, "best 2", "2 6");
}

/* --- deletions ----------------------------------------------------------------------------------- */

static void a_deletion_is_on_record_before_it_is_told(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    assert_core(f, "+policy 'latest 1' ''; +node 0 restored #2; 0:ack #2 MUSTER_OK");
    uint64_t first = saved(f, 1);
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    assert_int_equal(core_checkpoint(f, first)->state,
                     CHECKPOINT_COMMITTED); /* the last whole one */
    manifest_done(f, second, 2);
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_DELETING);
    core_tick(f);
    assert_deletes(f, "0:1");
    const struct wire_delete *told = &core_sent(f, 100, WIRE_DELETE)->u.delete;
    assert_string_equal(told->path, "/ckpt/1");
    assert_int_equal(told->step, 1);
    assert_int_equal(told->round_generation, 1);
    f->now += DELETE_REPEAT_MS - 1;
    core_tick(f);
    assert_deletes(f, "");
    f->now += 1;
    core_tick(f);
    assert_deletes(f, "0:1"); /* until it is done */
    restart(f);
    core_tick(f);
    assert_deletes(f, "0:1");
    deleted(f, 0, first, MUSTER_OK);
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_DELETED);
    deleted(f, 0, first, MUSTER_OK); /* told twice */
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    f->now += 10000;
    core_tick(f);
    assert_deletes(f, "");
}

static void one_that_fails_waits_and_the_others_go_on(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    uint64_t first = saved(f, 1);
    uint64_t second = saved(f, 2);
    saved(f, 3);
    core_tick(f);
    deleted(f, 0, first, MUSTER_E_IO);
    core_tick(f);
    deleted(f, 0, second, MUSTER_OK);
    core_tick(f);
    assert_deletes(f, "");
    f->now += DELETE_AGAIN_MS;
    core_tick(f);
    assert_deletes(f, "0:1");
}

static void the_next_rank_deletes_when_the_chief_is_gone(void **state)
{
    struct core_fixture *f = *state; /* three */

    policies(f, "latest 1", "");
    saved(f, 1);
    saved(f, 2);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->now += DELETE_REPEAT_MS;
    core_tick(f);
    assert_deletes(f, "1:1");
}

static void a_checkpoint_without_its_manifest_stays_until_it_has_one(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    core_commit_at(f, 1);
    uint64_t first = core_job(f)->round;
    saved(f, 2);
    assert_kept(f, "its writer may be at it", "1 2");
    manifest_done(f, first, 1);
    assert_kept(f, "now it may go", "2");
}

static void drop(struct core_fixture *f, uint64_t checkpoint, bool newest)
{
    struct wire_msg message = core_msg(f, 0, WIRE_DROP);

    message.u.drop = (struct wire_drop){.checkpoint = checkpoint, .newest = newest};
    core_say(f, 0, message);
}

static void the_last_whole_one_stays_until_a_newer_one_is(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    uint64_t first = saved(f, 1);
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    obey(f);
    assert_kept(f, "what can be read", "1 2");
    drop(f, first, true);
    assert_int_equal(ack_code(f, 0), MUSTER_E_BUSY);
    sweep(f, true);
    assert_int_equal(ack_value(f, 0), 1); /* it waits for the manifest */
    restart(f);
    policies(f, "latest 0", "");
    obey(f);
    assert_kept(f, "what can be read after a start", "1 2");
    manifest_done(f, second, 2);
    core_tick(f);
    assert_deletes(f, "0:1");
}

static void the_last_manifest_of_a_launch_lets_the_older_one_go(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    saved(f, 1);
    core_notice(f, 0, "n1", 1000000);
    uint64_t last = core_job(f)->round;
    core_report(f, 0, last, 4, 4);
    core_save(f, 0, last, 4);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_kept(f, "no manifest yet", "1 4");
    manifest_done(f, last, 4);
    core_tick(f);
    assert_deletes(f, "0:1");
    assert_kept(f, "the launch's last", "4");
}

static void a_deletion_is_not_told_while_nothing_as_new_is_whole(void **state)
{
    struct core_fixture *f = *state;

    saved(f, 1);
    uint64_t second = saved(f, 2);
    drop(f, second, true);
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    core_commit_at(f, 3);
    uint64_t third = core_job(f)->round;
    f->now += 2 * DELETE_REPEAT_MS;
    core_tick(f);
    assert_deletes(f, "");
    manifest_done(f, third, 3);
    core_tick(f);
    assert_deletes(f, "0:2");
}

/* A launch's choice that is deleted is no reason to save nothing. */
static void what_was_dropped_is_saved_again(void **state)
{
    struct core_fixture *f = *state;

    saved(f, 4);
    launch_again(f, "");
    drop(f, registry_newest(core_job(f))->row.round, true);
    obey(f);
    assert_kept(f, "dropped", "");
    core_save_now(f, "a");
    uint64_t round = core_job(f)->round;
    core_report(f, 0, round, 4, 4);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_DECIDED);
    core_save(f, 0, round, 4);
    assert_kept(f, "saved again", "4");
}

static void another_launch_keeps_all_until_it_tells_its_policies(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    saved(f, 1);
    saved(f, 2);
    obey(f);
    launch_again(f, "");
    saved(f, 3);
    saved(f, 4);
    obey(f);
    assert_kept(f, "it wants all", "2 3 4");
    policies(f, "latest 2", "");
    obey(f);
    assert_kept(f, "now it does not", "3 4");
}

static void policies_that_are_none_are_refused_and_change_nothing(void **state)
{
    struct core_fixture *f = *state; /* three */
    struct wire_msg message = core_msg(f, 1, WIRE_POLICIES);

    policies(f, "latest 2", "");
    policies(f, "oldest 2", "");
    assert_int_equal(ack_code(f, 0), MUSTER_E_ARGUMENT);
    policies(f, "latest 2", "never");
    assert_int_equal(ack_code(f, 0), MUSTER_E_ARGUMENT);
    message.u.policies = (struct wire_policies){.keep = "latest 0", .save = "", .trash = ""};
    core_say(f, 1, message);
    assert_int_equal(ack_code(f, 1), MUSTER_E_ARGUMENT);
    message.u.policies = (struct wire_policies){.keep = "", .save = "", .trash = "../x"};
    message.up = core_msg(f, 0, WIRE_POLICIES).up;
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_E_ARGUMENT);
    assert_string_equal(keep_policies_of(core_job(f))->keep_text, "latest 2");
}

/* --- what is never deleted ------------------------------------------------------------------------ */

static struct wire_msg tool(enum wire_type type)
{
    return (struct wire_msg){.type = type, .up = {.job = "train", .role = ROLE_TOOL}};
}

static void pin(struct core_fixture *f, uint64_t checkpoint, const char *id, int64_t lease_ms)
{
    struct wire_msg message = tool(WIRE_PIN);

    message.u.pin = (struct wire_pin){.checkpoint = checkpoint, .id = id, .lease_ms = lease_ms};
    core_tool(f, message, 1);
}

static void unpin(struct core_fixture *f, uint64_t checkpoint, const char *id)
{
    struct wire_msg message = tool(WIRE_UNPIN);

    message.u.unpin = (struct wire_unpin){.checkpoint = checkpoint, .id = id};
    core_tool(f, message, 1);
}

static void a_pinned_checkpoint_stays_until_it_is_let_go(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    uint64_t first = saved(f, 1);
    pin(f, first, "op", 0);
    assert_true(core_checkpoint(f, first)->pinned);
    saved(f, 2);
    restart(f);
    saved(f, 3);
    obey(f);
    assert_kept(f, "pinned", "1 3");
    pin(f, 0, "op", 0); /* the newest */
    unpin(f, first, "somebody else");
    assert_kept(f, "not by another", "1 3");
    unpin(f, first, "op");
    assert_kept(f, "let go", "3");
    assert_int_equal(core_job(f)->keep.pins_count, 1);
}

static void a_lease_falls_and_is_prolonged(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    uint64_t first = saved(f, 1);
    pin(f, first, "reader", 10000);
    saved(f, 2);
    f->now += 9000;
    core_tick(f);
    pin(f, first, "reader", 10000);
    f->now += 9000;
    restart(f); /* it counts on over a start */
    f->now += 999;
    core_tick(f);
    assert_kept(f, "held", "1 2");
    f->now += 5000; /* and is left time to be prolonged */
    core_tick(f);
    assert_kept(f, "fallen", "2");
    assert_int_equal(core_job(f)->keep.pins_count, 0);
}

static void pins_of_what_is_not_there_are_refused(void **state)
{
    struct core_fixture *f = *state;

    pin(f, 0, "op", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_NOT_FOUND"));
    saved(f, 1);
    pin(f, 77, "op", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_NOT_FOUND"));
    pin(f, 0, "", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_ARGUMENT"));
    pin(f, 0, "op", -1);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_ARGUMENT"));
}

static void what_is_being_restored_stays(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    uint64_t first = saved(f, 1);
    launch_again(f, "latest 1");
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1); /* joins, and reads the launch's choice */
    saved(f, 2);
    obey(f);
    assert_kept(f, "an evaluator reads it", "1 2");
    core_restored(f, 1, first, 1);
    obey(f);
    assert_kept(f, "it has restored", "2");
    f->nodes[2] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 1, .incarnation = 991, .route = 102};
    core_hello(f, 2); /* the launch's choice is gone: it is told the newest */
    const struct wire_snapshot *snapshot = &core_sent(f, 102, WIRE_SNAPSHOT)->u.snapshot;
    uint64_t told = snapshot->resume_checkpoint;
    assert_string_equal(snapshot->resume_path, "/ckpt/2");
    saved(f, 3);
    obey(f);
    assert_kept(f, "it reads the newest of its time", "2 3");
    core_restored(f, 2, told, 2);
    assert_int_equal(ack_code(f, 2), MUSTER_OK);
    obey(f);
    assert_kept(f, "both have restored", "3");
}

/* What a bystander was told to restore is in no row: after a start of the broker it may be any. */
static void what_is_being_restored_stays_over_a_start(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    saved(f, 1);
    launch_again(f, "latest 1");
    saved(f, 2);
    obey(f);
    uint64_t second = registry_newest(core_job(f))->row.round;
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1); /* is told the newest: the launch's choice is gone */
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, second);
    f->nodes[1].applied_seq = core_job(f)->seq;
    restart(f);
    core_hello(f, 1);
    saved(f, 3);
    obey(f);
    assert_kept(f, "it still reads", "2 3");
    core_hello(f, 1); /* with a snapshot or without */
    core_restored(f, 1, second, 2);
    assert_int_equal(ack_code(f, 1), MUSTER_OK);
    obey(f);
    assert_kept(f, "it has restored", "3");
}

/* A snapshot that is told again does not move it to another one. */
static void who_is_told_again_reads_the_same(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "latest 1", "");
    saved(f, 1);
    launch_again(f, "latest 1");
    saved(f, 2);
    obey(f);
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1);
    uint64_t told = core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint;
    saved(f, 3);
    f->nodes[1].applied_seq = 0; /* it lost the journal */
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, told);
}

static void nothing_goes_while_ranks_restore(void **state)
{
    struct core_fixture *f = *state; /* three */

    policies(f, "latest 1", "");
    saved(f, 1);
    saved(f, 2);
    for (int n = 0; n < 3; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    for (int n = 0; n < 3; n++) {
        f->nodes[n].incarnation += 100;
        f->nodes[n].generation = f->nodes[n].request = 0;
        f->nodes[n].begun = f->nodes[n].done = 0;
        core_hello(f, n);
    }
    core_tick(f);
    assert_deletes(f, ""); /* what was decided waits for a hand that has restored */
    policies(f, "latest 0", "");
    assert_kept(f, "joining", "2");
}

static void a_checkpoint_is_dropped_on_demand_but_for_what_must_stay(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message = core_msg(f, 0, WIRE_DROP);

    uint64_t first = saved(f, 1);
    uint64_t second = saved(f, 2);
    pin(f, first, "op", 0);
    message.u.drop.checkpoint = first;
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_E_BUSY);
    message.u.drop.checkpoint = second;
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_E_BUSY);
    unpin(f, first, "op");
    message.u.drop.checkpoint = first;
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    core_say(f, 0, message); /* it goes already */
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    message.u.drop.checkpoint = second;
    message.u.drop.newest = true;
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_OK);
    obey(f);
    assert_kept(f, "all dropped", "");
    core_say(f, 0, message);
    assert_int_equal(ack_code(f, 0), MUSTER_E_NOT_FOUND);
}

/* --- rounds by time, cost and history --------------------------------------------------------------- */

static void steps(struct core_fixture *f, int64_t done)
{
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n].begun = f->nodes[n].done = done;
        core_heartbeat(f, n);
    }
}

/* Ms until a round opens, at most `most`. */
static int64_t opens_after(struct core_fixture *f, int64_t most)
{
    int64_t began = f->now;

    core_tick(f);
    while (core_event(f, EVENT_FREEZE) == NULL) {
        if (f->now - began >= most)
            return -1;
        core_pass(f, 500);
    }
    return f->now - began;
}

/* The open round is saved at `step`, and stops training for blocked_ms. */
static void finish(struct core_fixture *f, int64_t step, uint64_t blocked_ms)
{
    uint64_t round = core_job(f)->round;

    f->blocked_ms = blocked_ms;
    core_report(f, 0, round, step, step);
    core_save(f, 0, round, step);
    manifest_done(f, round, step);
    assert_int_equal(registry_newest(core_job(f))->row.step, step);
}

static void a_period_opens_rounds(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "", "period-ms 60000");
    steps(f, 1);
    int64_t first = opens_after(f, 70000);
    assert_in_range(first, 58500, 60500);
    assert_events(f, "freeze r1 period m0");
    finish(f, 1, 100);
    assert_int_equal(opens_after(f, 70000), -1); /* nothing was done since */
    steps(f, 2);
    assert_in_range(opens_after(f, 2000), 0, 1000);
    finish(f, 2, 100);
    steps(f, 3);
    core_commit_at(f, 3); /* another cause's save counts */
    steps(f, 4);
    assert_in_range(opens_after(f, 70000), 59500, 60500);
}

/* What fails is not asked for every second: a full disk stays full. */
static void saves_that_fail_are_asked_for_more_and_more_rarely(void **state)
{
    struct core_fixture *f = *state;
    int64_t waits[9] = {0};

    policies(f, "", "continuous-ms 0");
    steps(f, 1);
    for (int i = 0; i < 9; i++) {
        waits[i] = opens_after(f, 70000);
        core_report(f, 0, core_job(f)->round, 1, 1);
        core_save_failed(f, 0, core_job(f)->round, 1, MUSTER_E_STORAGE);
    }
    assert_in_range(waits[1], 500, 1000);
    assert_in_range(waits[3], 3500, 4000);
    assert_in_range(waits[8], 59500, 60000);
    assert_in_range(opens_after(f, 70000), 59500, 60000);
    finish(f, 1, 1);
    steps(f, 2);
    assert_in_range(opens_after(f, 70000), 59500, 60000); /* it was in time to wait for that one */
    finish(f, 2, 1);
    steps(f, 3);
    assert_in_range(opens_after(f, 70000), 500, 1000);
}

static void a_sharded_job_without_a_rank_is_not_asked(void **state)
{
    struct core_fixture f;

    (void)state;
    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    policies(&f, "", "period-ms 1000");
    core_leave(&f, 1, LEAVE_FINISHED, 0);
    f.nodes[1].silent = true;
    f.nodes[0].begun = f.nodes[0].done = 1;
    core_heartbeat(&f, 0);
    assert_int_equal(opens_after(&f, 10000), -1);
    assert_int_equal(core_job(&f)->round, 0);
    core_fixture_close(&f);
}

static void a_period_counts_on_over_a_restart(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "", "period-ms 60000");
    saved(f, 1);
    f->now += 40000;
    restart(f);
    steps(f, 2);
    assert_in_range(opens_after(f, 70000), 19000, 21000);
}

static void continuous_waits_for_the_save_before(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "", "continuous-ms 5000");
    steps(f, 1);
    assert_in_range(opens_after(f, 10000), 3500, 5500);
    core_report(f, 0, 1, 1, 1);
    core_at_step(f, 0, 1, 1, true); /* captured: it is written behind */
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    steps(f, 2);
    assert_int_equal(opens_after(f, 20000), -1);
    core_files(f, 0, 1, 1, 1);
    core_saved(f, 0, 1, 1, 1);
    assert_in_range(opens_after(f, 2000), 0, 1000);
}

static void overhead_follows_the_measured_cost(void **state)
{
    struct core_fixture *f = *state;

    policies(f, "", "overhead-ppm 20000"); /* 2 % */
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000); /* to learn what a save costs */
    finish(f, 1, 400);
    steps(f, 2);
    assert_in_range(opens_after(f, 60000), 19500, 20500);
    finish(f, 2, 800); /* mean 600 */
    steps(f, 3);
    assert_in_range(opens_after(f, 60000), 29500, 30500);
}

static void daly_follows_cost_and_interruptions(void **state)
{
    struct core_fixture *f = *state;
    int64_t day = 24 * HOUR;

    /* Daly 2006: sqrt(2 C M)(1 + 1/3 sqrt(C/2M) + 1/9 (C/2M)) between saves */
    assert_int_equal(save_policy_daly_ms(60000, day), 3240062);
    assert_int_equal(save_policy_daly_ms(0, day), 0);
    assert_int_equal(save_policy_daly_ms(2 * day, day), day);
    policies(f, "", "young-daly");
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    finish(f, 1, 2000);
    steps(f, 2);
    int64_t once = opens_after(f, 3000000);
    assert_in_range(once, 580000, 600000); /* sqrt(2 x 2 s x 86,400 s) = 588 s */
    finish(f, 2, 2000);
    core_job(f)->keep.interruptions = 15; /* M is a 16th of it, the interval a quarter */
    steps(f, 3);
    assert_in_range(opens_after(f, 3000000), once / 4 - 3000, once / 4 + 3000);
}

static void a_launch_that_did_not_finish_is_an_interruption(void **state)
{
    struct core_fixture *f = *state;

    f->now += HOUR;
    core_tick(f);
    core_notice(f, 0, "n1", 1000000);
    core_report(f, 0, 1, 4, 4);
    core_save(f, 0, 1, 4);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    assert_int_equal(core_job(f)->keep.interruptions, 1);
    assert_in_range(core_job(f)->keep.run_ms, HOUR, HOUR + 5000);
}

static void the_chief_may_wish_for_a_save(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message = core_msg(f, 0, WIRE_SAVE_WISH);

    message.u.save_wish.step = 1;
    steps(f, 1);
    core_say(f, 0, message);
    assert_int_equal(ack_value(f, 0), 1);
    core_say(f, 0, message); /* while it is open: the same */
    assert_int_equal(ack_value(f, 0), 1);
    finish(f, 1, 1);
    core_say(f, 0, message); /* within a second of the last: not now */
    assert_int_equal(ack_value(f, 0), 0);
}

/* --- what a save tells --------------------------------------------------------------------------------- */

static void metrics_and_times_are_in_the_rows(void **state)
{
    struct core_fixture *f = *state;

    f->metrics = "{\"loss\": 0.5}";
    f->custom = "{\"who\": \"me\"}";
    f->blocked_ms = 25;
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    f->now += 300;
    core_at_step(f, 0, 1, 4, false);
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
    assert_non_null(strstr(core_text(f), "+custom {\"who\": \"me\"}"));
    assert_string_equal(core_checkpoint(f, 1)->metrics, "{\"loss\": 0.5}");
    assert_int_equal(core_checkpoint(f, 1)->blocked_ms, 25);
    assert_int_equal(core_checkpoint(f, 1)->total_ms, 300);
    f->metrics = "no JSON"; /* of a sender that does not check: the save counts */
    f->custom = "[]";
    core_commit_at(f, 5);
    assert_string_equal(core_checkpoint(f, 2)->metrics, "");
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, one_running, close_core)
#define THREE(test) cmocka_unit_test_setup_teardown(test, three_running, close_core)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_hold),
        cmocka_unit_test(the_examples_hold_with_a_restart_after_every_save),
        cmocka_unit_test(the_examples_hold_over_launches),
        ONE(the_best_by_metric_stay),
        ONE(a_deletion_is_on_record_before_it_is_told),
        ONE(one_that_fails_waits_and_the_others_go_on),
        THREE(the_next_rank_deletes_when_the_chief_is_gone),
        ONE(a_checkpoint_without_its_manifest_stays_until_it_has_one),
        ONE(the_last_whole_one_stays_until_a_newer_one_is),
        ONE(the_last_manifest_of_a_launch_lets_the_older_one_go),
        ONE(a_deletion_is_not_told_while_nothing_as_new_is_whole),
        ONE(what_was_dropped_is_saved_again),
        ONE(another_launch_keeps_all_until_it_tells_its_policies),
        THREE(policies_that_are_none_are_refused_and_change_nothing),
        ONE(a_pinned_checkpoint_stays_until_it_is_let_go),
        ONE(a_lease_falls_and_is_prolonged),
        ONE(pins_of_what_is_not_there_are_refused),
        ONE(what_is_being_restored_stays),
        ONE(what_is_being_restored_stays_over_a_start),
        ONE(who_is_told_again_reads_the_same),
        THREE(nothing_goes_while_ranks_restore),
        ONE(a_checkpoint_is_dropped_on_demand_but_for_what_must_stay),
        ONE(a_period_opens_rounds),
        ONE(saves_that_fail_are_asked_for_more_and_more_rarely),
        cmocka_unit_test(a_sharded_job_without_a_rank_is_not_asked),
        ONE(a_period_counts_on_over_a_restart),
        ONE(continuous_waits_for_the_save_before),
        ONE(overhead_follows_the_measured_cost),
        ONE(daly_follows_cost_and_interruptions),
        ONE(a_launch_that_did_not_finish_is_an_interruption),
        ONE(the_chief_may_wish_for_a_save),
        ONE(metrics_and_times_are_in_the_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
