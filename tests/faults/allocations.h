/* allocations - the allocations of our own code and of SQLite, counted, and one of them refused.
 * Own: at link time (-Wl,--wrap=malloc ...), with those that msgpack, jansson and xxhash make for
 * us. SQLite's: by sqlite3_config, so allocations_prepare() comes before SQLite's first use. Counts
 * only inside calls of the product, which are wrapped too (see the end of allocations.c): what a
 * test allocates between them is never refused. One thread. */
#ifndef TESTS_FAULTS_ALLOCATIONS_H
#define TESTS_FAULTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#define ALLOCATIONS_OWN 1u
#define ALLOCATIONS_SQLITE 2u

/* Once, first thing in main. */
void allocations_prepare(void);

/* Refuses the at-th from now on, with `sticky` every one after it too. 0 = none; they are counted.
 */
void allocations_plan(unsigned whose, uint64_t at, bool sticky);
/* Neither refused nor counted until resumed. */
void allocations_pause(bool pause);
uint64_t allocations_count(void);
uint64_t allocations_hits(void);

/* For calls that are not wrapped. They nest. */
void allocations_begin(void);
void allocations_end(void);
/* While it is on: only what this thread asks for counts, in those calls. */
void allocations_of_this_thread(bool on);
/* While it is on: whatever another thread than this one asks for counts too, in whichever call. */
void allocations_of_others(bool on);

#endif
