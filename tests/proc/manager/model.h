/* model - a training whose result can be computed, for the programs here.
 *
 * The state is a vector of integers; step n adds a number that depends on n and on the rank to one
 * cell. So the vector after n steps is known without training, and a step that is lost, repeated or
 * taken twice changes it. `replicated`: every rank adds what all ranks contribute. `sharded`: its
 * own. Owns: its memory. Never: a file but those it is told to write and read, a clock. */
#ifndef TESTS_PROC_MODEL_H
#define TESTS_PROC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_CELLS_MAX 65536

struct model {
    int rank, world_size;
    bool sharded;
    int64_t cells;
    int64_t step; /* so many are in the vector */
    int64_t vector[MODEL_CELLS_MAX];
};

void model_step(struct model *model);
int64_t model_sum(const struct model *model);
int64_t model_expected_sum(const struct model *model);
/* Are the cells those of an uninterrupted run of as many steps, bit for bit? Not from two threads.
 */
bool model_is_right(const struct model *model);

/* The files `vector` and `step`; 0 or an errno. `cells` says how much of the vector is written. */
int model_write(const struct model *model, const char *directory);
int model_write_half(const struct model *model, const char *directory); /* of `vector`; no `step` */
int model_read(struct model *model, const char *directory);

#endif
