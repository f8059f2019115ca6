/* sim_save - a rank at its save step. The agent saves, in the foreground or behind training, as
 * node/agent/agent_capture.c makes it; or the program saves by itself in its turn, as one does that
 * uses a framework's checkpoints: it is told to, saves, and comes back. Only worlds with the option
 * turns have such programs; these draw from a stream of chance of their own.
 * Owns: which shard a save begins, and what is told of it. */
#include "tests/sim/sim_save.h"

#include <string.h>

#define FILES 200
#define SALT UINT64_C(0x7e5a11ed)

static const struct wire_file *job_files(struct sim *sim, struct sim_job *job)
{
    if (job->files != NULL)
        return job->files;
    job->files = arena_alloc(&sim->arena, FILES * sizeof *job->files);
    for (int i = 0; i < FILES; i++)
        job->files[i] =
            (struct wire_file){.path = arena_printf(&sim->arena, "f%03d.safetensors", i),
                               .bytes = 1000,
                               .checksum = "xxh3-128:00112233445566778899aabbccddeeff"};
    return job->files;
}

/* How a save ended, and what is told of it. */
static struct member_input save_result(struct sim *sim, struct sim_proc *proc, uint64_t generation,
                                       uint64_t round, int64_t begun_us)
{
    struct sim_job *job = &sim->jobs[proc->job];
    struct sim_shard *shard = fs_shard(sim, proc, generation, round);
    bool fails = sim->fail_saves > 0;
    struct member_input input = {.kind = MEMBER_SAVED,
                                 .round = round,
                                 .step = shard->done,
                                 .epoch = 1,
                                 .step_in_epoch = shard->done,
                                 .data_position = shard->done};

    if (fails) {
        sim->fail_saves--;
        fault_met(sim, FAULT_SAVE_FAILS);
        shard->deleted = true;
        sim->unchecked = true;
        input.kind = MEMBER_SAVE_FAILED;
        input.code = sim_chance(sim, 50) || sim->fail_again ? MUSTER_E_SAVE : MUSTER_E_STORAGE;
        input.text = "no room for the shard";
        if (input.code == MUSTER_E_STORAGE)
            job->no_room_us = sim->now_us;
    } else {
        shard->complete = true;
        shard->synced = sim->options.mutation != MUTANT_SAVED_UNSYNCED;
        power_moment(sim, proc, POWER_SAVED);
        proc->saved_us = sim->now_us;
        input.files = job_files(sim, job);
        input.files_count = (size_t)(round % 9 == 0 && !sim->keeps ? FILES : 1 + round % 3);
        input.bytes = 1000 * input.files_count;
        input.save_ms = input.blocked_ms = (uint64_t)(sim->now_us - begun_us) / 1000;
        if (sim->keeps)
            input.metrics = keeps_metrics(sim, shard->done);
    }
    SIM_TELL(sim, "%s/%u save of round %llu at step %lld %s", job->name, proc->slot,
             (unsigned long long)round, (long long)shard->done, fails ? "fails" : "is whole");
    return input;
}

static void discard_late(struct sim *sim, struct sim_proc *proc, uint64_t round)
{
    if (proc->discard_round != round || round == 0)
        return;
    proc->discard_round = 0;
    fs_discard(sim, proc, proc->discard_generation, round);
}

static void save_end(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    uint64_t round = proc->saving_round;

    if (event->stamp != proc->thread_stamp)
        return;
    struct member_input input =
        save_result(sim, proc, (uint64_t)event->number, round, proc->save_begun_us);
    proc->saving_round = 0;
    discard_late(sim, proc, round);
    thread_post(sim, proc, &input, proc->leaving ? THREAD_LEAVING : THREAD_WAITING);
}

static void written_behind(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    uint64_t round = proc->behind_round;
    struct member_input input =
        save_result(sim, proc, (uint64_t)event->number, round, proc->behind_begun_us);

    proc->behind_round = 0;
    discard_late(sim, proc, round);
    proc_feed(sim, proc, &input);
    if (proc->alive)
        thread_look(sim, proc); /* the next capture may have waited for it */
}

static void snapshot_end(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct member_input input = {.kind = MEMBER_CAPTURED, .round = proc->saving_round};

    if (event->stamp != proc->thread_stamp)
        return;
    proc->behind_round = proc->saving_round;
    proc->behind_begun_us = proc->save_begun_us;
    proc->saving_round = 0;
    struct sim_event *end = sim_after(sim, (int64_t)event->size, written_behind, proc);
    end->number = event->number;
    sim->stats->behind++;
    thread_post(sim, proc, &input, proc->leaving ? THREAD_LEAVING : THREAD_WAITING);
}

#define SLOW_ONE_US 20000000 /* longer than everybody else's */

static bool is_meant(const struct sim_proc *proc, int slot)
{
    return slot < 0 || (proc->job == 0 && (int)proc->slot == slot);
}

static int64_t save_takes(struct sim *sim, struct sim_proc *proc)
{
    int64_t takes = sim->jobs[proc->job].save_us * sim_range(sim, 60, 140) / 100;

    if (sim->options.grace != NULL)
        takes = grace_save_us(sim, proc->view.round);
    if (sim->now_us < sim->slow_saves_until_us && is_meant(proc, sim->slow_slot)) {
        fault_met_once(sim, &sim->unmet, FAULT_SAVE_SLOW);
        takes += sim->slow_slot < 0 ? sim_range(sim, 1000000, 20000000) : SLOW_ONE_US;
    }
    if (sim->now_us < sim->hung_saves_until_us) {
        fault_met_once(sim, &sim->unmet, FAULT_SAVE_HANGS);
        takes += sim_range(sim, 62000000, 90000000);
    }
    if (proc->saves_long)
        proc->saved_long_us = sim->now_us;
    proc->saves_long = sim->now_us < sim->long_saves_until_us && is_meant(proc, sim->long_slot);
    if (proc->saves_long) {
        fault_met_once(sim, &sim->unmet, FAULT_SAVE_LONG);
        takes += sim_range(sim, 130000000, 240000000);
    }
    return takes;
}

/* --- the program's turn ----------------------------------------------------------------------- */

static int64_t turns_below(struct sim *sim, int64_t below)
{
    return (int64_t)(sim_next(&sim->turns_chance) % (uint64_t)below);
}

void turns_plan_world(struct sim *sim)
{
    sim->turns_chance = (sim->options.seed ^ SALT) * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_to_capture(const struct sim_proc *proc, uint64_t round)
{
    return proc->view.mode == VIEW_CAPTURE && proc->view.round == round;
}

/* The next call of the boundary. `asks`: it only tells whether the state is to be saved. */
static void turn_visit(struct sim *sim, struct sim_proc *proc, bool asks)
{
    proc->visit_asks = asks;
    proc->asked_round = 0;
    proc->arrived = false;
    thread_set_state(sim, proc, THREAD_WAITING);
    thread_look(sim, proc);
}

static void turn_unwritten(struct sim *sim, struct sim_proc *proc)
{
    uint64_t round = proc->turn_round;

    proc->turn_round = proc->saving_round = 0;
    discard_late(sim, proc, round);
}

/* Its save raised an exception. Perhaps it says that its step failed, too. */
static void turn_fails(struct sim *sim, struct sim_proc *proc, struct sim_shard *shard)
{
    struct member_input failed = {
        .kind = MEMBER_STEP_FAILED, .code = 7, .step = proc->done + 1, .text = "its save failed"};
    struct member_input input = {.kind = MEMBER_SAVE_FAILED,
                                 .round = proc->turn_round,
                                 .step = proc->done,
                                 .code = MUSTER_E_SAVE,
                                 .text = "the program failed while it saved"};

    sim->fail_saves--;
    fault_met(sim, FAULT_SAVE_FAILS);
    sim->stats->turns_failed++;
    shard->deleted = sim->unchecked = true;
    proc->captured_round = proc->turn_round;
    proc->visit_asks = proc->arrived = false;
    turn_unwritten(sim, proc);
    if (turns_below(sim, 2) == 0) {
        proc->failed_step = true;
        proc_feed(sim, proc, &failed);
    }
    if (proc->alive)
        thread_post(sim, proc, &input, THREAD_WAITING);
}

/* It comes back from its save. */
static void turn_over(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct sim_shard *shard;

    if (event->stamp != proc->thread_stamp)
        return;
    if (proc->turn_beside) {
        proc->turn_round = 0;
        turn_visit(sim, proc, false);
        return;
    }
    shard = fs_shard(sim, proc, (uint64_t)event->number, proc->turn_round);
    if (!is_to_capture(proc, proc->turn_round)) { /* aborted meanwhile, or it is to end */
        sim->stats->turns_over++;
        turn_unwritten(sim, proc);
        turn_visit(sim, proc, false);
    } else if (sim->fail_saves > 0) {
        turn_fails(sim, proc, shard);
    } else {
        bool asks_again = turns_below(sim, 8) == 0;
        if (sim->options.mutation == MUTANT_TURN_TRAINS && !asks_again)
            shard->begun = ++shard->done;
        turn_visit(sim, proc, asks_again);
    }
}

static void turn_begin(struct sim *sim, struct sim_proc *proc, int64_t takes)
{
    thread_set_state(sim, proc, THREAD_SAVING);
    struct sim_event *event = sim_after(sim, takes, turn_over, proc);
    event->stamp = proc->thread_stamp;
    event->number = (int64_t)proc->view.generation;
}

static bool is_save_step(const struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    return (view->mode == VIEW_STEP_TO && !proc->failed_step) ||
           (view->mode == VIEW_CAPTURE && proc->captured_round != view->round);
}

bool turn_is_on(struct sim *sim, struct sim_proc *proc)
{
    if (!proc->visit_asks || proc->turn_round == 0 || proc->turn_round != proc->asked_round)
        return false;
    sim->stats->turns_again += !proc->turn_beside;
    turn_begin(sim, proc, turns_below(sim, 2000000));
    return true;
}

void turn_at_boundary(struct sim *sim, struct sim_proc *proc)
{
    proc->visit_asks = sim->options.turns && proc->role != ROLE_PS && proc->role != ROLE_EVALUATOR;
    proc->asked_round = 0;
}

void turn_at_save_step(struct sim_proc *proc)
{
    if (proc->visit_asks && is_save_step(proc))
        proc->asked_round = proc->view.round;
}

void turn_arrives(struct sim *sim, struct sim_proc *proc)
{
    if (proc->view.writer || !proc->visit_asks || proc->asked_round == 0)
        return;
    sim->stats->turns_beside++;
    proc->turn_round = proc->captured_round = proc->asked_round;
    proc->turn_beside = true;
}

/* --- capturing -------------------------------------------------------------------------------- */

static void check_stands(struct sim *sim, const struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    if (proc->begun != proc->done || proc->done != view->step)
        sim_broken(sim, "I1",
                   "rank %u is to capture round %llu at step %lld, but begun %lld done %lld",
                   proc->rank, (unsigned long long)view->round, (long long)view->step,
                   (long long)proc->begun, (long long)proc->done);
}

/* From here on it writes. */
static struct sim_shard *begin_writing(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    proc->saving_round = view->round;
    proc->save_begun_us = sim->now_us;
    return fs_shard_add(sim, proc, view->generation, view->round);
}

/* Its own save, or the record of what the program saved. */
static void save_now(struct sim *sim, struct sim_proc *proc, int64_t takes)
{
    bool behind = sim->jobs[proc->job].writes_behind && !proc->leaving && !proc->view.termination;

    thread_set_state(sim, proc, THREAD_SAVING);
    struct sim_event *event =
        sim_after(sim, behind ? takes / 20 : takes, behind ? snapshot_end : save_end, proc);
    event->size = behind ? (size_t)takes : 0;
    event->stamp = proc->thread_stamp;
    event->number = (int64_t)proc->view.generation;
}

void save_capture(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;
    bool turn = proc->turn_round != 0 && proc->turn_round == view->round;

    if (view->writer && proc->behind_round != 0)
        return; /* one at a time is written behind */
    check_stands(sim, proc);
    if (view->writer && proc->visit_asks) {
        sim->stats->turns++;
        int64_t takes = save_takes(sim, proc);
        begin_writing(sim, proc);
        proc->turn_round = view->round;
        proc->turn_beside = false;
        turn_begin(sim, proc, takes);
        return;
    }
    proc->captured_round = view->round;
    if (!view->writer) {
        thread_look(sim, proc);
        return;
    }
    proc->turn_round = 0;
    if (turn) {
        save_now(sim, proc, turns_below(sim, 20000));
        return;
    }
    int64_t takes = save_takes(sim, proc);
    struct sim_shard *shard = begin_writing(sim, proc);
    bool late = sim->options.mutation == MUTANT_SAVES_LATE ||
                sim->options.mutation == MUTANT_SAVES_LATE_SAYS_SO;
    if (late && !sim_is_calm(sim) && sim_chance(sim, 20))
        shard->begun = ++shard->done;
    save_now(sim, proc, takes);
}
