/* stories - the databases of the golden tests: one function makes one story. */
#ifndef TESTS_CLI_STORIES_H
#define TESTS_CLI_STORIES_H

#include "tests/support/db_fixture.h"

struct cli_story {
    const char *name;
    void (*make)(struct db_fixture *db);
};
extern const struct cli_story cli_stories[]; /* ends with name NULL */

/* What others begin with. */
void make_running(struct db_fixture *db);
void make_periodic(struct db_fixture *db);
void make_committed(struct db_fixture *db);
void make_operator(struct db_fixture *db);
void make_unchanged(struct db_fixture *db);
void make_not_saved(struct db_fixture *db);

/* stories_after.c */
void make_not_saved_ended(struct db_fixture *db);
void make_saved_behind(struct db_fixture *db);
void make_pinned(struct db_fixture *db);
void make_written(struct db_fixture *db);
void make_kept(struct db_fixture *db);
void make_kept_before(struct db_fixture *db);
void make_four_notices(struct db_fixture *db);
void make_finished_without(struct db_fixture *db);
void make_unstarted(struct db_fixture *db);
void make_unstarted_preempted(struct db_fixture *db);
void make_unstarted_finished(struct db_fixture *db);
void make_collective_broke(struct db_fixture *db);
void make_killed_behind(struct db_fixture *db);

/* stories_stuck.c */
void make_stuck(struct db_fixture *db);
void make_stuck_all(struct db_fixture *db);
void make_stuck_later(struct db_fixture *db);
void make_stuck_no_more(struct db_fixture *db);
void make_stuck_once(struct db_fixture *db);
void make_stuck_in_save(struct db_fixture *db);
void make_stuck_in_save_no_more(struct db_fixture *db);
void make_stuck_in_save_once(struct db_fixture *db);
void make_one_finished(struct db_fixture *db);
void make_beside(struct db_fixture *db);
void make_hosts(struct db_fixture *db);
void make_hosts_first(struct db_fixture *db);
void make_fallen(struct db_fixture *db);
void make_joined(struct db_fixture *db);
void make_joined_before(struct db_fixture *db);
void make_nobody_left(struct db_fixture *db);

/* stories_restore.c */
void make_fell_back(struct db_fixture *db);
void make_fell_back_ended(struct db_fixture *db);
void make_unrestored(struct db_fixture *db);
void make_unrestored_twice(struct db_fixture *db);
void make_unrestored_older(struct db_fixture *db);
void make_unrestored_unknown(struct db_fixture *db);
void make_unrestored_noticed(struct db_fixture *db);
void make_unrestored_round(struct db_fixture *db);
void make_unrestored_put_right(struct db_fixture *db);
void make_unrestored_imported(struct db_fixture *db);
void make_unrestored_unfit(struct db_fixture *db);
void make_unrestored_unfit_older(struct db_fixture *db);
void make_unrestored_damaged(struct db_fixture *db);
void make_unrestored_then_older(struct db_fixture *db);

/* One round that was aborted for good, each for another reason. */
struct cli_abort {
    const char *name;
    int phase; /* 0: some did not report, 1: agreed, some never came, 2: all came, some did not save
                */
    int culprit;
    int code; /* enum muster_status */
    const char *reason;
    const char *extra; /* SQL that follows, or NULL */
};
extern const struct cli_abort cli_aborts[]; /* ends with name NULL */
void cli_abort_make(struct db_fixture *db, const struct cli_abort *abort_story);

#endif
