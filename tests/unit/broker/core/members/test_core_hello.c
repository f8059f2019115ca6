/* The broker's core: HELLO and its refusals, numbered requests, taken ranks, stale processes, what
 * a restored database does. PROTOCOL.md R1, R3. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- joining ---------------------------------------------------------------------------------- */

/* R3.1 */
static void the_first_hello_opens_a_generation_and_every_row_precedes_the_answer(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    assert_core(f, "+job; +generation joining; "
                   "+job; +event 1; !1 generation opened S0; "
                   "+generation joining; +job; +event 2; !2 resume S0; "
                   "+node 0 joined #0; 0:welcome g1; 0:SNAPSHOT");
    const struct wire_welcome *welcome = &core_sent(f, 100, WIRE_WELCOME)->u.welcome;
    assert_int_equal(welcome->nonce, 900);
    assert_int_equal(welcome->world_size, 2);
    assert_int_equal(welcome->last_request, 0);
    assert_true(welcome->snapshot_follows);
    assert_string_equal(welcome->events_endpoint, "ipc:///e");
    assert_int_equal(core_sent(f, 100, WIRE_WELCOME)->down.start_id, 7001);
    assert_int_equal(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.seq, 2);
}

/* R3.3 */
static void steps_begin_when_the_last_rank_has_restored(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    assert_core(f, "+node 0 restored #0; +node 0 restored #1; 0:ack #1 MUSTER_OK");
    core_hello(f, 1);
    core_restored(f, 1, 0, 0);
    assert_core(
        f, "+node 1 restored #0; +launch 1 >0; +generation running; +job; +event 3; !3 started; "
           "+node 1 restored #1; 1:ack #1 MUSTER_OK");
}

struct refusal {
    const char *what;
    void (*change)(struct wire_msg *hello);
    const char *answer;
};
static void other_world(struct wire_msg *m)
{
    m->u.hello.world_size = 3;
}
static void other_layout(struct wire_msg *m)
{
    m->u.hello.layout = LAYOUT_SHARDED;
}
static void other_directory(struct wire_msg *m)
{
    m->u.hello.checkpoint_dir = "/other";
}
static void rank_outside(struct wire_msg *m)
{
    m->up.rank = 2;
}
static void no_world(struct wire_msg *m)
{
    m->u.hello.world_size = 0;
}
static void no_incarnation(struct wire_msg *m)
{
    m->up.incarnation = 0;
}
static void no_layout(struct wire_msg *m)
{
    m->u.hello.layout = LAYOUT_NONE;
}
static void no_role(struct wire_msg *m)
{
    m->up.role = ROLE_NONE;
}
static void a_tool(struct wire_msg *m)
{
    m->up.role = ROLE_TOOL;
}
static void a_bad_job(struct wire_msg *m)
{
    m->up.job = "../etc";
}
static void a_huge_seq(struct wire_msg *m)
{
    m->up.applied_seq = UINT64_MAX;
}
static void a_huge_round(struct wire_msg *m)
{
    m->u.hello.saved_round = UINT64_MAX;
}
static void a_negative_step(struct wire_msg *m)
{
    m->u.hello.done = -1;
}
static void a_huge_step(struct wire_msg *m)
{
    m->u.hello.begun = INT64_MAX;
}
static void other_wish(struct wire_msg *m)
{
    m->u.hello.restore_fallback = true;
}
static void taken(struct wire_msg *m)
{
    m->up.rank = 0;
}

/* R3.4, R3.7 */
static void a_hello_that_does_not_fit_is_refused_with_its_reason(void **state)
{
    struct core_fixture *f = *state;
    static const struct refusal table[] = {
        {"world size at first", other_world, "0:PING; 1:refused MUSTER_E_WORLD_SIZE retry"},
        {"world size, unanswered", other_world, "1:refused MUSTER_E_WORLD_SIZE retry"},
        {"world size", other_world, "1:refused MUSTER_E_WORLD_SIZE"},
        {"layout", other_layout, "1:refused MUSTER_E_LAYOUT"},
        {"directory", other_directory, "1:refused MUSTER_E_LAYOUT"},
        {"rank outside", rank_outside, "1:refused MUSTER_E_RANK"},
        {"no world", no_world, "1:refused MUSTER_E_RANK"},
        {"no incarnation", no_incarnation, "1:refused MUSTER_E_ARGUMENT"},
        {"no layout", no_layout, "1:refused MUSTER_E_ARGUMENT"},
        {"no role", no_role, "1:refused MUSTER_E_ARGUMENT"},
        {"a tool", a_tool, "1:refused MUSTER_E_ARGUMENT"},
        {"job name", a_bad_job, "1:refused MUSTER_E_ARGUMENT"},
        {"huge seq", a_huge_seq, "1:refused MUSTER_E_ARGUMENT"},
        {"huge round", a_huge_round, "1:refused MUSTER_E_ARGUMENT"},
        {"negative step", a_negative_step, "1:refused MUSTER_E_ARGUMENT"},
        {"huge step", a_huge_step, "1:refused MUSTER_E_ARGUMENT"},
        {"fallback", other_wish, "1:refused MUSTER_E_RESTORE retry"},
        {"taken rank", taken, "0:PING; 1:refused MUSTER_E_RANK_TAKEN retry"},
    };

    core_hello(f, 0);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (i == 2)
            core_heartbeat(f, 0); /* it lives: a refusal is final from here on */
        struct wire_msg hello = core_msg(f, 1, WIRE_HELLO);
        hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                            .nonce = 7,
                                            .world_size = 2,
                                            .host = "host",
                                            .layout = LAYOUT_REPLICATED,
                                            .checkpoint_dir = "/ckpt"};
        table[i].change(&hello);
        core_feed(f, 101, &hello);
        if (strcmp(core_answers(f), table[i].answer) != 0)
            fail_msg("%s: %s", table[i].what, core_answers(f));
        const struct wire_msg *refused = core_sent(f, 101, WIRE_REFUSED);
        assert_int_equal(refused->u.refused.nonce, 7);
        assert_true(strlen(refused->u.refused.text) > 10);
    }
    assert_null(core_row(f, RECORD_NODE));
}

/* One path, and not one file system: what the chief saves the others would never find (R3.7). */
static void a_rank_that_sees_another_directory_is_refused(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].directory = 17;
    core_hello(f, 0);
    f->nodes[1].directory = 18;
    core_hello(f, 1);
    assert_answers(f, "1:refused MUSTER_E_LAYOUT retry");
    assert_non_null(strstr(core_sent(f, 101, WIRE_REFUSED)->u.refused.text, "rank 1 on host"));
    assert_non_null(strstr(core_sent(f, 101, WIRE_REFUSED)->u.refused.text, "rank 0 on host"));
    core_restart(f, false);
    core_hello(f, 0); /* says it again */
    core_hello(f, 1);
    assert_answers(f, "1:refused MUSTER_E_LAYOUT retry");
    f->nodes[1].directory = 17;
    core_hello(f, 1);
    assert_non_null(core_sent(f, 101, WIRE_WELCOME));
}

static void a_rank_that_knows_no_number_of_its_directory_is_let_in(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].directory = 17;
    core_hello(f, 0);
    core_hello(f, 1);
    assert_non_null(core_sent(f, 101, WIRE_WELCOME));
    assert_int_equal(core_job(f)->gen.directory, 17);
}

/* The directory was made again, and the launch before is not known to be lost yet. */
static void another_directory_of_the_next_launch_is_not_compared_with_the_dead_one(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 2; n++) {
        f->nodes[n].directory = 17;
        core_hello(f, n);
    }
    for (int n = 0; n < 2; n++)
        f->nodes[n] = (struct core_node){.role = n == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                         .rank = (uint64_t)n,
                                         .incarnation = 500 + (uint64_t)n,
                                         .route = 200 + (uint64_t)n,
                                         .directory = 18};
    core_hello(f, 0);
    assert_answers(f, "0:PING; @200:refused MUSTER_E_RANK_TAKEN retry");
    core_pass(f, TAKEOVER_MS);
    core_hello(f, 0);
    assert_answers(f, "@200:refused MUSTER_E_LAYOUT retry"); /* the other one may live */
    core_hello(f, 1);
    core_pass(f, TAKEOVER_MS);
    core_hello(f, 1);
    assert_int_equal(core_job(f)->gen.directory, 18);
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.generation, 2);
    assert_int_equal(generation_live_count(core_job(f)), 2);
}

/* --- requests --------------------------------------------------------------------------------- */

/* R1.2 */
static void requests_are_taken_once_and_in_number_order(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg cancel = core_msg(f, 0, WIRE_CANCEL);

    core_save_now(f, "a");
    core_cancel(f, 0, "first"); /* request 2 */
    cancel.u.cancel.id = "none";
    cancel.up.request = 5;
    core_feed(f, 100, &cancel);
    assert_core(f, ""); /* its turn has not come */
    cancel.up.request = 3;
    core_feed(f, 100, &cancel);
    assert_core(f, "+node 0 restored #3; 0:ack #3 MUSTER_E_NOT_FOUND");
    core_feed(f, 100, &cancel);
    assert_core(f, "0:ack #3 MUSTER_E_NOT_FOUND"); /* the same answer, nothing done */
    cancel.up.request = 2;
    core_feed(f, 100, &cancel);
    assert_core(f, "0:ack #2 MUSTER_OK"); /* long answered */
}

/* R1.2 */
static void a_repeated_request_is_answered_from_its_row_after_a_restart(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    uint64_t number = f->nodes[1].request;
    core_restart(f, false);
    struct wire_msg again = core_msg(f, 1, WIRE_NOTICE);
    again.u.notice = (struct wire_notice){.id = "n1",
                                          .kind = NOTICE_PREEMPT,
                                          .source = "test",
                                          .left_ms = 60000,
                                          .text = "",
                                          .rank = 1};
    again.up.request = number;
    core_feed(f, 101, &again);
    assert_core(f, "1:ack #2 MUSTER_E_HELLO"); /* this start has not seen it yet */
    core_hello(f, 1);
    assert_int_equal(f->nodes[1].request, number);
    core_feed(f, 101, &again);
    assert_core(f, "1:ack #2 MUSTER_OK=1");
}

/* R1.4 */
static void whoever_is_not_mapped_is_told_to_say_hello(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg beat = core_msg(f, 0, WIRE_HEARTBEAT);
    struct {
        uint64_t route, incarnation;
        const char *job;
    } table[] = {{100, 777, "train"}, {101, 50, "train"}, {100, 50, "other"}, {9, 0, ""}};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        beat.up.incarnation = table[i].incarnation;
        beat.up.job = table[i].job;
        core_feed(f, table[i].route, &beat);
        assert_int_equal(f->out.count, 1);
        const struct wire_msg *ack = core_sent(f, table[i].route, WIRE_ACK);
        assert_int_equal(ack->u.ack.code, MUSTER_E_HELLO);
    }
}

static void a_message_of_the_other_direction_changes_nothing(void **state)
{
    struct core_fixture *f = *state;

    core_feed(f, 100, &(struct wire_msg){.type = WIRE_ALIVE, .up = core_msg(f, 0, WIRE_ALIVE).up});
    assert_core(f, "");
    struct wire_msg save_now = core_msg(f, 0, WIRE_SAVE_NOW);
    save_now.u.save_now.id = "x";
    core_say(f, 0, save_now);
    assert_core(f, "+node 0 restored #2; 0:ack #2 MUSTER_E_PROTOCOL");
}

static void questions_are_answered_from_the_journal_and_the_rows(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg m = core_msg(f, 0, WIRE_EVENTS_GET);

    m.u.events_get.from_seq = 2;
    core_say(f, 0, m);
    assert_core(f, "0:events 2");
    assert_int_equal(f->out.items[0].count, EVENTS_PAGE_MAX);
    m.u.events_get.from_seq = core_job(f)->seq + 1;
    core_say(f, 0, m);
    assert_core(f, ""); /* none yet */
    m = core_msg(f, 0, WIRE_MANIFEST_GET);
    m.u.manifest_get = (struct wire_manifest_get){.checkpoint = 3, .offset = 49152};
    core_say(f, 0, m);
    assert_core(f, "0:manifest 3+49152");
    m = core_msg(f, 0, WIRE_PROBE_GET);
    m.u.probe_get.nonce = 5;
    core_say(f, 0, m);
    assert_core(f, "!probe");
    core_tool(f, (struct wire_msg){.type = WIRE_HEARTBEAT}, 0);
    assert_core(f, "@500:ALIVE");
    m = (struct wire_msg){.type = WIRE_QUERY};
    m.u.query.name = "status";
    m.u.query.text_arg = "";
    core_tool(f, m, 1);
    assert_core(f, "@500:rows");
    core_tool(f, (struct wire_msg){.type = WIRE_REPORT}, 1);
    assert_core(f, "@500:ack #1 MUSTER_E_PROTOCOL");
}

/* --- a rank that is held ---------------------------------------------------------------------- */

/* R3.10 */
static void a_held_rank_is_free_after_two_seconds_of_silence_to_a_ping(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    f->nodes[2] = f->nodes[0]; /* the same rank, another life */
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = f->nodes[2].request = 0;
    f->nodes[0].silent = true;
    core_hello(f, 2);
    assert_answers(f, "0:PING; 2:refused MUSTER_E_RANK_TAKEN retry");
    assert_non_null(
        strstr(core_sent(f, 102, WIRE_REFUSED)->u.refused.text, "process 4000 on host"));
    core_pass(f, TAKEOVER_MS - 1);
    core_hello(f, 2);
    assert_answers(f, "0:PING; 2:refused MUSTER_E_RANK_TAKEN retry");
    core_heartbeat(f, 0); /* it lives: the count begins again */
    core_hello(f, 2);
    core_pass(f, TAKEOVER_MS - 1);
    core_hello(f, 2);
    assert_answers(f, "0:PING; 2:refused MUSTER_E_RANK_TAKEN retry");
    core_pass(f, 1);
    core_hello(f, 2); /* nobody was left in the generation: the next one opens */
    assert_events(f, "generation ended; generation opened S0; resume S0");
    assert_answers(f, "2:welcome g2; 2:SNAPSHOT");
    core_heartbeat(f, 0);
    assert_answers(f, "0:ack #0 MUSTER_E_HELLO");
    core_hello(f, 0);
    assert_answers(f, "0:refused MUSTER_E_STALE");
}

static void a_held_rank_is_free_after_two_seconds_also_just_after_a_broker_start(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    f->nodes[2] = f->nodes[0];
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = 0;
    core_hello(f, 2);
    assert_answers(f, "2:refused MUSTER_E_RANK_TAKEN retry"); /* no route to ping it yet */
    core_pass(f, TAKEOVER_MS);
    core_hello(f, 2); /* steps were begun: this launch is over */
    assert_events(f, "node lost S0 rank 0 MUSTER_E_PEER");
    assert_answers(f, "2:refused MUSTER_E_ENDING retry");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

static void a_rank_that_is_taken_over_while_joining_restores_like_the_others(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_hello(f, 1);
    core_restored(f, 1, 0, 0);
    f->nodes[2] = f->nodes[0];
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = 0;
    f->nodes[0].silent = true;
    core_hello(f, 2);
    core_pass(f, TAKEOVER_MS);
    core_hello(f, 2);
    assert_core(f, "+node 0 lost #0; +node 0 joined #0; 2:welcome g1; 2:SNAPSHOT");
    core_heartbeat(f, 0);
    assert_answers(f, "0:ack #0 MUSTER_E_STALE");
    core_restored(f, 2, 0, 0);
    assert_events(f, "started");
}

static void another_life_of_rank_1(struct core_fixture *f)
{
    f->nodes[2] =
        (struct core_node){.role = f->nodes[1].role, .rank = 1, .incarnation = 999, .route = 177};
}

/* PING went out behind it, and the HELLO that is repeated stands before the holder's answer. */
static void the_brokers_own_absence_frees_no_held_rank(void **state)
{
    struct core_fixture *f = *state;

    another_life_of_rank_1(f);
    core_hello(f, 2);
    assert_answers(f, "1:PING; @177:refused MUSTER_E_RANK_TAKEN retry");
    core_tick(f);
    for (int i = 0; i < 3; i++) {
        f->now += 60000;
        core_hello(f, 2);
        assert_answers(f, "1:PING; @177:refused MUSTER_E_RANK_TAKEN retry");
        assert_events(f, "");
        core_heartbeat(f, 1);
        core_heartbeat(f, 0);
        core_tick(f);
    }
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    f->nodes[1].silent = true;
    core_hello(f, 2);
    core_pass(f, TAKEOVER_MS - 1);
    core_hello(f, 2);
    assert_events(f, "");
    core_pass(f, 1);
    core_hello(f, 2);
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
}

static void a_loop_whose_every_pass_is_slow_frees_a_held_rank(void **state)
{
    struct core_fixture *f = *state;
    int passes = 0;

    another_life_of_rank_1(f);
    core_hello(f, 2);
    for (core_tick(f); passes < 3600 && core_event(f, EVENT_NODE_LOST) == NULL; passes++) {
        core_heartbeat(f, 0);
        core_tick(f);
        f->now += LOOP_GAP_MS + 100;
        core_hello(f, 2); /* judged by what was known at the tick before */
    }
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
    assert_int_equal(passes, GAPS_FORGIVEN + TAKEOVER_MS / LOOP_GAP_MS + 1);
}

static void only_trainers_hold_the_generation_to_its_ranks(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[3].role = ROLE_EVALUATOR;
    f->nodes[3].rank = 0;
    core_hello(f, 3);
    assert_answers(f, "3:welcome g1; 3:SNAPSHOT");
    f->nodes[4].role = ROLE_EVALUATOR;
    f->nodes[4].rank = 0;
    core_hello(f, 4);
    assert_answers(f, "3:PING; 4:refused MUSTER_E_RANK_TAKEN retry");
    core_leave(f, 3, LEAVE_FINISHED, 0);
    core_hello(f, 4); /* they come and go */
    assert_answers(f, "4:welcome g1; 4:SNAPSHOT");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* --- who was away ----------------------------------------------------------------------------- */

/* R1.3 */
static void a_process_that_was_lost_is_stale_and_one_that_left_is_answered(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 1, LEAVE_FINISHED, 0);
    struct wire_msg leave = core_msg(f, 1, WIRE_LEAVE);
    leave.up.request = f->nodes[1].request;
    core_feed(f, 101, &leave);
    assert_core(f, "1:ack #2 MUSTER_OK"); /* its answer was lost */
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S0 rank 0 MUSTER_E_PEER; generation ended");
    core_heartbeat(f, 0);
    assert_answers(f, "0:ack #0 MUSTER_E_STALE");
    core_hello(f, 0);
    assert_answers(f, "0:refused MUSTER_E_STALE");
}

/* R10.1 */
static void numbers_that_a_node_saw_are_jumped_over_before_it_is_answered(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].epoch = 40;
    f->nodes[0].applied_seq = 90;
    f->nodes[0].round = 12;
    core_restart(f, false);
    core_hello(f, 0);
    assert_core(f, "+broker 41; +job; +node 0 restored #1; 0:welcome g1; 0:SNAPSHOT");
    assert_int_equal(core_sent(f, 100, WIRE_WELCOME)->down.broker_epoch, 41);
    const struct wire_snapshot *s = &core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot;
    assert_int_equal(s->seq, 91);
    assert_int_equal(s->named_round, 12);
    assert_int_equal(s->named_state, ROUND_ABORTED); /* unknown here: never committed */
    assert_int_equal(s->named_cause, CAUSE_NONE);
    core_hello(f, 1);
    core_save_now(f, "a");
    assert_events(f, "freeze r13 operator m0,1");
}

/* R10.1: an epoch counts starts. Who claims one that no broker can have reached would make the next
 * start's number one that no HELLO may carry, and so end every job. */
static void no_claim_of_a_stranger_takes_the_epoch_beyond_what_others_may_say(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg hello = core_msg(f, 2, WIRE_HELLO);

    hello.up.job = "strangers";
    hello.up.broker_epoch = ((uint64_t)1 << 62) - 1;
    hello.u.hello = (struct wire_hello){.world_size = 1, .layout = LAYOUT_SHARDED, .nonce = 1};
    core_feed(f, 700, &hello);
    core_restart(f, false);
    core_hello(f, 0);
    core_restart(f, false);
    core_hello(f, 0); /* shows what it was told */
    assert_non_null(core_sent(f, 100, WIRE_WELCOME));
    assert_int_equal(f->nodes[0].epoch, 3);
}

/* R5.3 */
static void who_comes_back_into_a_running_freeze_is_a_member_and_must_report(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    f->nodes[1].done = f->nodes[1].begun = 55;
    f->nodes[0].done = f->nodes[0].begun = 57;
    core_hello(f, 1);
    core_pass(f, START_FREEZE_MS);
    core_save_now(f, "a");
    assert_events(f, "freeze r1 operator m0,1");
    f->nodes[0].applied_seq = 0;
    core_hello(f, 0);
    const struct wire_snapshot *s = &core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot;
    assert_int_equal(s->round, 1);
    assert_int_equal(s->round_state, ROUND_FREEZING);
    assert_true(s->member);
    assert_false(s->taken);
    core_report(f, 1, 1, 55, 55);
    assert_events(f, ""); /* not without rank 0 */
    core_report(f, 0, 1, 58, 57);
    assert_events(f, "decision r1 operator S58 m0w,1");
    f->nodes[2] = f->nodes[0];
    core_restart(f, false);
    core_hello(f, 0);
    s = &core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot;
    core_save(f, 0, 1, 58); /* its part is in the rows */
    assert_events(f, "commit r1 operator S58 c1 rank 0");
}

/* R3.7 */
static void another_launch_waits_until_a_killed_one_is_known_to_be_lost(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_hello(f, 1);
    core_restored(f, 1, 0, 0);
    core_clear(f);
    f->world_size = 3;
    f->nodes[0].silent = f->nodes[1].silent = true;
    core_hello(f, 2); /* both were killed a moment ago */
    assert_answers(f, "0:PING; 1:PING; 2:refused MUSTER_E_WORLD_SIZE retry");
    for (int64_t ms = 0; ms < LOST_MS; ms += HEARTBEAT_MS) {
        core_hello(f, 2);
        assert_true(core_sent(f, 102, WIRE_REFUSED)->u.refused.retry);
        core_pass(f, HEARTBEAT_MS);
    }
    core_hello(f, 2);
    assert_int_equal(core_job(f)->gen.world_size, 3);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_first_hello_opens_a_generation_and_every_row_precedes_the_answer, core_open_two),
        T(steps_begin_when_the_last_rank_has_restored, core_open_two),
        T(a_hello_that_does_not_fit_is_refused_with_its_reason, core_open_two),
        T(a_rank_that_sees_another_directory_is_refused, core_open_two),
        T(a_rank_that_knows_no_number_of_its_directory_is_let_in, core_open_two),
        T(another_directory_of_the_next_launch_is_not_compared_with_the_dead_one, core_open_two),
        T(requests_are_taken_once_and_in_number_order, core_run_two),
        T(a_repeated_request_is_answered_from_its_row_after_a_restart, core_run_two),
        T(whoever_is_not_mapped_is_told_to_say_hello, core_run_two),
        T(a_message_of_the_other_direction_changes_nothing, core_run_two),
        T(questions_are_answered_from_the_journal_and_the_rows, core_run_two),
        T(a_held_rank_is_free_after_two_seconds_of_silence_to_a_ping, core_open_two),
        T(a_held_rank_is_free_after_two_seconds_also_just_after_a_broker_start, core_run_two),
        T(a_rank_that_is_taken_over_while_joining_restores_like_the_others, core_open_two),
        T(the_brokers_own_absence_frees_no_held_rank, core_run_two),
        T(a_loop_whose_every_pass_is_slow_frees_a_held_rank, core_run_two),
        T(only_trainers_hold_the_generation_to_its_ranks, core_run_two),
        T(a_process_that_was_lost_is_stale_and_one_that_left_is_answered, core_run_two),
        T(numbers_that_a_node_saw_are_jumped_over_before_it_is_answered, core_run_two),
        T(no_claim_of_a_stranger_takes_the_epoch_beyond_what_others_may_say, core_run_two),
        T(who_comes_back_into_a_running_freeze_is_a_member_and_must_report, core_run_two),
        T(another_launch_waits_until_a_killed_one_is_known_to_be_lost, core_open_two),
    };

    return cmocka_run_group_tests_name("core_hello", tests, NULL, NULL);
}
