/* core_keep_fixture - what nodes and tools say of policies, deletions and pins to a broker core on
 * a table. */
#ifndef TESTS_UNIT_CORE_KEEP_FIXTURE_H
#define TESTS_UNIT_CORE_KEEP_FIXTURE_H

#include "broker/core/checkpoints/keep.h"
#include "tests/support/core_fixture.h"

#define HOUR ((int64_t)3600000)

void core_policies(struct core_fixture *f, const char *keep, const char *save);
void core_policies_trash(struct core_fixture *f, const char *keep, const char *trash);
void core_manifest_done(struct core_fixture *f, uint64_t checkpoint, int64_t step);
void core_deleted(struct core_fixture *f, int node, uint64_t checkpoint, unsigned code);
void core_sweep(struct core_fixture *f, bool final);
unsigned core_ack_code(const struct core_fixture *f, int node);
uint64_t core_ack_value(const struct core_fixture *f, int node);
/* A committed checkpoint of `step`, its manifest in place. Returns its number. */
uint64_t core_saved_whole(struct core_fixture *f, int64_t step);
/* The chief's hand: whatever it is told to delete, it deletes. */
void core_obey(struct core_fixture *f);
/* Whom the last messages tell to delete what. */
void assert_deletes(struct core_fixture *f, const char *expected);
/* The steps of committed checkpoints, as the core has them and as the rows do. */
void assert_kept(struct core_fixture *f, const char *what, const char *expected);
void core_start_again(struct core_fixture *f);
/* The launch ends, and the next one resumes and tells its policies again. */
void core_launch_again(struct core_fixture *f, const char *keep);
void core_drop(struct core_fixture *f, uint64_t checkpoint, bool newest);
void core_pin(struct core_fixture *f, uint64_t checkpoint, const char *id, int64_t lease_ms);
void core_unpin(struct core_fixture *f, uint64_t checkpoint, const char *id);

#endif
