/* sim_focus - worlds that are made for what chance meets too seldom: their size, their times, and
 * the faults that meet in them. */
#include "tests/sim/sim_world.h"

#include <string.h>

/* clang-format off */
#define CHANCE 0 /* nodes, times: as in every other world */
#define ANY LAYOUT_NONE
#define WHOLE LAYOUT_REPLICATED
#define PARTS LAYOUT_SHARDED
static const struct sim_focus focuses[] = {
    {"a lost rank, and survivors at different steps", 110, WHOLE, 1, 5, 14, 3000000, CHANCE, 30,
     false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 45000, 0}, {FAULT_NODE_CRASH, 20, 400, 1, 0,
      SIM_RANK_0}}},
    {"a lost rank in the first step", 65, WHOLE, 0, 2, 4, 60000000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 50000, 0}, {FAULT_NODE_CRASH, 20, 400, 1, 0,
      SIM_RANK_0}}},
    {"a rank that does not come to S", 110, ANY, -1, 6, 16, 200000, 20000, 30, false, 0, false,
     .faults = {{FAULT_THREAD_STUCK, 0, 0, 130000, 0, 0}, {FAULT_OPERATOR_SAVE, 300, 300, 1, 0,
      SIM_ANY}}},
    {"a save that takes too long", 85, ANY, -1, 1, 16, 100000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_SAVE_HANGS, 0, 0, 20000, 0, SIM_ANY},
      {FAULT_OPERATOR_SAVE, 10, 500, 1, 0, SIM_ANY}}},
    {"nobody answers the freeze", 25, WHOLE, -1, 4, 16, 100000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_NOTICE_TOOL, 0, 0, 1, 30000, SIM_ANY},
      {FAULT_CUT_ALL, 0, 0, 3500, 0, SIM_ANY}}},
    {"a loop that ends before S", 105, WHOLE, 1, 6, 16, 300000, CHANCE, 15, true, 0, true,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 2000, 1, 0, SIM_ANY},
      {FAULT_NOTICE, 500, 4000, 1, 30000, 0},
      {FAULT_OPERATOR_SAVE, 3000, 3000, 1, 0, SIM_ANY}}},
    {"a loop that ended, and every rank is needed", 70, PARTS, 1, 6, 16, 300000, CHANCE, 15, true,
     0, true,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 2000, 1, 0, SIM_ANY},
      {FAULT_OPERATOR_SAVE, 2000, 2000, 1, 0, SIM_ANY}}},
    {"a step that fails on the way to S", 40, ANY, -1, 6, 16, 1000000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 40000, 0}, {FAULT_STEP_FAILS, 1, 10, 1, 0, SIM_ANY},
      {FAULT_STEP_FAILS, 2, 10, 1, 0, SIM_ANY}}},
    {"the only rank fails", 85, WHOLE, -1, 1, 1, 1000000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 40000, 0}, {FAULT_STEP_FAILS, 1, 10, 1, 0, SIM_ANY}}},
    {"a full disk under a save", 20, ANY, -1, 6, 16, 200000, CHANCE, 20, false, 5, false,
     .faults = {{FAULT_SAVE_FAILS, 0, 5000, 1, 0, SIM_ANY}, {FAULT_NOTICE, 0, 0, 1000, 40000, 0},
      {FAULT_SAVE_FAILS, 0, 5000, 1, 0, SIM_ANY}}},
    {"too little time", 20, ANY, -1, 6, 16, 3000000, 4000000, 30, false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 3500, 0}}},
    {"the margin before the last report", 80, ANY, -1, 6, 14, 200000, CHANCE, 20, false, 0, false,
     .faults = {{FAULT_NODE_FREEZE, 0, 0, 4000, 0, 1}, {FAULT_STALL_UP, 0, 0, 400, 0, 0},
      {FAULT_NOTICE, 5, 20, 1000, 3000, 0}}},
    {"the decision is not heard, and the next save is due", 90, ANY, 1, 6, 14, 200000, 20000, 30,
     false, 20, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY},
      {FAULT_STALL_DOWN, 0, 4, 9000, 0, SIM_RANK_0}}},
    {"a broker that dies in a round", 20, ANY, -1, 6, 24, CHANCE, CHANCE, CHANCE, false, 5, false,
     .faults = {{FAULT_BROKER_BETWEEN_SENDS, 0, 50, 500, 0, SIM_ANY},
      {FAULT_NOTICE, 100, 100, 1000, 40000, 0},
      {FAULT_BROKER_AFTER_COMMIT, 2500, 1500, 500, 0, SIM_ANY}}},
    {"a stuck rank", 5, ANY, -1, 6, 14, 100000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_THREAD_STUCK, 0, 0, 75000, 0, 0}}},
    {"a notice that is withdrawn in time", 15, ANY, -1, 6, 16, 200000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_BROKER_IDLE, 0, 1, 2500, 0, SIM_ANY},
      {FAULT_NOTICE_WITHDRAWN, 500, 500, 1000, 0, 0}}},
    {"a rank that comes back", 15, ANY, -1, 6, 16, 100000, CHANCE, 30, false, 0, false,
     .faults = {{FAULT_TWIN, 0, 0, 3000, 0, 0}, {FAULT_TWIN, 3000, 3000, 3000, 0, 1}}},
    {"a database restored from a copy", 40, ANY, -1, 6, 24, 100000, CHANCE, 30, false, 5, false,
     .faults = {{FAULT_DATABASE_OLD, 0, 0, 6000, 0, SIM_ANY},
      {FAULT_NOTICE, 4000, 1900, 1000, 40000, 0},
      {FAULT_OPERATOR_SAVE, 1000, 2000, 1, 0, SIM_ANY}}},
    {"a save whose end is forgotten", 22, ANY, -1, 6, 16, 100000, 1500000, 30, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY},
      {FAULT_DATABASE_OLD, 300, 500, 9000, 0, SIM_ANY},
      {FAULT_NODE_CRASH, 850, 600, 1, 0, SIM_RANK_0}}},
    {"a notice that leaves less than three saves", 33, ANY, -1, 4, 12, 100000, 3000000, 40, false,
     8, false,
     .faults = {{FAULT_NOTICE, 15000, 5000, 1000, 7000, 0}}},
};
/* What takes three faults in their order. No seed of these was a world of another kind before, but
 * the fourth
 * part of the focused ones. */
static const struct sim_focus rare[] = {
    {"a rank is lost after its save, and another's save fails", 15, PARTS, -1, 3, 8, 100000,
     2000000, 40, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY}, {FAULT_SAVE_SLOW, 0, 0, 2000, 0, 0},
      {FAULT_NODE_CRASH, 5000, 1000, 1, 0, 1}, {FAULT_SAVE_FAILS, 13000, 0, TRIED_AGAIN, 0,
      SIM_ANY}}, .rare = true, .behind = SIM_WITHOUT},
    {"a step fails after its rank's save, and another's save fails", 18, PARTS, 1, 3, 8, 100000,
     2000000, 40, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY}, {FAULT_SAVE_SLOW, 0, 0, 2000, 0, 0},
      {FAULT_STEP_FAILS, 5000, 1000, 1, 0, SIM_ANY}, {FAULT_SAVE_FAILS, 13000, 0, TRIED_AGAIN, 0,
      SIM_ANY}}, .rare = true, .behind = SIM_WITHOUT},
    {"who waited for another's save has left, and that fails", 66, PARTS, -1, 3, 4, 100000,
     1000000, 20, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY}, {FAULT_SAVE_LONG, 0, 0, 3000, 0, 0},
      {FAULT_NODE_CRASH, 5000, 1000, 1, 0, 1}, {FAULT_SAVE_FAILS, 100000, 0, TRIED_AGAIN, 0,
      SIM_ANY}},
     .rare = true, .behind = SIM_WITHOUT},
    {"a database of before a rank had come, and that rank cut off", 20, PARTS, -1, 2, 8, 100000,
     CHANCE, 30, false, 0, false,
     .faults = {{FAULT_DATABASE_OLD, 20, 300, 7000, 0, SIM_ANY},
      {FAULT_CUT_NODE, 6000, 0, 8000, 0, 0},
      {FAULT_NOTICE, 9500, 2000, 1000, 40000, 1}}, .rare = true, .from_start = true},
    {"a database of before the launch, with its round", 14, ANY, -1, 2, 8, 100000, 1500000, 40,
     false, 0, false,
     .faults = {{FAULT_NOTICE, 0, 0, 1000, 20000, 0}, {FAULT_DATABASE_OLD, 250, 600, 14000, 0,
      SIM_ANY}}, .rare = true},
    {"a database of before a later round", 19, ANY, -1, 2, 8, 100000, 1500000, 30, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY},
      {FAULT_DATABASE_OLD, 300, 500, 6000, 0, SIM_ANY},
      {FAULT_OPERATOR_SAVE, 3500, 1000, 1, 0, SIM_ANY}}, .rare = true},
    {"a database of before an abort", 8, ANY, -1, 2, 8, 100000, 1500000, 30, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY},
      {FAULT_SAVE_FAILS, 200, 0, 1, 0, SIM_ANY},
      {FAULT_DATABASE_OLD, 300, 500, 6000, 0, SIM_ANY}}, .rare = true},
    {"a rank that missed the freeze is lost", 12, WHOLE, 0, 3, 8, 200000, CHANCE, 30, false, 0,
     false,
     .faults = {{FAULT_NODE_FREEZE, 0, 0, 20000, 0, 0}, {FAULT_NOTICE, 200, 300, 1000, 40000, 1}},
      .rare = true},
    {"who writes behind dies when the job has ended", 7, WHOLE, -1, 3, 8, 100000, 6000000, 30,
     false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY}, {FAULT_NODE_CRASH, 1000, 300, 1, 0, 1},
      {FAULT_NODE_CRASH, 2500, 800, 1, 0, SIM_RANK_0}}, .rare = true, .behind = SIM_WITH},
    {"a save that goes on for minutes", 8, ANY, -1, 2, 5, 500000, 1000000, 20, false, 0, false,
     .faults = {{FAULT_SAVE_LONG, 0, 0, 3000, 0, SIM_RANK_0},
      {FAULT_NOTICE_TOOL, 100, 200, 1, 600000, SIM_ANY}}, .rare = true},
};
/* Of some more of the focused seeds: a rank's loop ends before the others', and its supervisor
 * begins it again. */
static const struct sim_focus again =
    {"a rank that is begun again when it has finished", 1, WHOLE, 1, 6, 16, 300000, CHANCE, 15,
     true, 0, true,
     .faults = {{FAULT_TWIN, 0, 2000, 8000, 0, 0}, {FAULT_TWIN, 0, 2000, 8000, 0, 1},
      {FAULT_TWIN, 3000, 2000, 8000, 0, 0}}, .rare = true};
/* No seed's, but asked for by a control: a freeze lacks a report when the broker dies, and before
 * it a notice joins it, or
 * behind it come the saves of a policy; or the writer of a save dies while a notice waits for its
* time. */
static const struct sim_focus asked[] = {
    {"a notice that joined a save is withdrawn after a start", 1, WHOLE, -1, 3, 8, 200000, CHANCE,
     60, false, 0, false,
     .faults = {{FAULT_STALL_UP, 2000, 0, 8000, 0, 1}, {FAULT_OPERATOR_SAVE, 2010, 100, 1, 0,
      SIM_ANY},
      {FAULT_NOTICE_WITHDRAWN, 2200, 300, 4000, 0, 0}, {FAULT_BROKER_IDLE, 2700, 300, 500, 0,
      SIM_ANY}}, .rare = true},
    {"a save that was begun before a start, and a policy's behind it", 1, WHOLE, -1, 3, 8, 200000,
     CHANCE, 30, false, 12, false,
     .faults = {{FAULT_STALL_UP, 0, 0, 8000, 0, 1}, {FAULT_OPERATOR_SAVE, 10, 100, 1, 0, SIM_ANY},
      {FAULT_BROKER_IDLE, 700, 300, 500, 0, SIM_ANY}}, .rare = true},
    {"a notice while ranks start", 1, ANY, -1, 3, 8, 100000, CHANCE, 20, false, 0, false,
     .faults = {{FAULT_NOTICE, 100, 1500, 1000, 20000, 0}, {FAULT_NOTICE, 100, 1500, 1000, 20000,
      1},
      {FAULT_BROKER_IDLE, 500, 1500, 500, 0, SIM_ANY}}, .rare = true, .from_start = true},
    {"a writer that dies in another save while a notice stands", 1, WHOLE, 0, 3, 8, 100000,
     1500000, 60, false, 0, false,
     .faults = {{FAULT_OPERATOR_SAVE, 0, 0, 1, 0, SIM_ANY}, {FAULT_NOTICE, 4000, 0, 1000, 90000, 1},
      {FAULT_OPERATOR_SAVE, 6000, 500, 1, 0, SIM_ANY}, {FAULT_NODE_CRASH, 6600, 1000, 1, 0,
      SIM_RANK_0}}, .rare = true},
};
/* clang-format on */

/* By their weights; in `share` times as many numbers none is. */
static const struct sim_focus *pick(const struct sim_focus *from, size_t count, uint64_t number,
                                    unsigned share)
{
    unsigned all = 0, at;

    for (size_t i = 0; i < count; i++)
        all += from[i].weight;
    at = (unsigned)(number % (share * all));
    for (size_t i = 0; i < count; i++) {
        if (at < from[i].weight)
            return &from[i];
        at -= from[i].weight;
    }
    return NULL;
}

#define SALT UINT64_C(0x51a77e)
#define SALT_AGAIN UINT64_C(0xa9a14)
#define RARE_OF_FOCUSED 4 /* of so many seeds one */
#define RARE_OF_CHANCE 40
#define AGAIN_OF_FOCUSED 40

/* By a number of its own, so that no other seed's world is another for it. */
static uint64_t own_number(const struct sim *sim, uint64_t salt)
{
    return (sim->options.seed ^ salt) * UINT64_C(0x9e3779b97f4a7c15) >> 16;
}

static const struct sim_focus *rare_of(const struct sim *sim)
{
    uint64_t number = own_number(sim, SALT);
    unsigned one_in = sim->options.focused ? RARE_OF_FOCUSED : RARE_OF_CHANCE;

    if (sim->options.focused && own_number(sim, SALT_AGAIN) % AGAIN_OF_FOCUSED == 0)
        return &again;
    if (number % one_in != 0)
        return NULL;
    return pick(rare, sizeof rare / sizeof rare[0], number / one_in, 1);
}

static const struct sim_focus *asked_by(const char *name)
{
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        if (strcmp(asked[i].name, name) == 0)
            return &asked[i];
    return NULL;
}

void plan_focus(struct sim *sim)
{
    const size_t count = sizeof focuses / sizeof focuses[0];

    if (sim->options.healthy || sim->options.nodes > 0 || sim->options.layout != LAYOUT_NONE)
        return;
    sim->focus = rare_of(sim);
    if (sim->options.world != NULL)
        sim->focus = asked_by(sim->options.world);
    else if (sim->focus == NULL)
        sim->focus = pick(focuses, count, sim_random(sim), sim->options.focused ? 1 : 2);
    if (sim->focus != NULL)
        SIM_TELL(sim, "WORLD of %s", sim->focus->name);
}
