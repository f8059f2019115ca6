/* sim_save - see sim_save.c. */
#ifndef TESTS_SIM_SIM_SAVE_H
#define TESTS_SIM_SIM_SAVE_H

#include "tests/sim/sim_world.h"

/* The view tells this rank to save. */
void save_capture(struct sim *sim, struct sim_proc *proc);

/* Where the program saves by itself: */
void turns_plan_world(struct sim *sim);
void turn_at_boundary(struct sim *sim, struct sim_proc *proc); /* after a step */
void turn_at_save_step(struct sim_proc *proc);                 /* it may be one */
void turn_arrives(struct sim *sim, struct sim_proc *proc);     /* it is about to say so */
/* True: the program goes on with its turn. */
bool turn_is_on(struct sim *sim, struct sim_proc *proc);

/* sim_thread.c */
void thread_set_state(struct sim *sim, struct sim_proc *proc, enum sim_thread_state state);
/* What the thread has for its agent, and what it does then. */
void thread_post(struct sim *sim, struct sim_proc *proc, const struct member_input *input,
                 enum sim_thread_state after);

/* sim.c: the next number of a stream of chance. */
uint64_t sim_next(uint64_t *state);

#endif
