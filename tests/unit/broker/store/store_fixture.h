/* store_fixture - a store on a file of its own, for its tests. With MUSTER_TEST_SHARED the
 * records are in PostgreSQL, and the file is a copy: see tests/proc/recovery/shared_store.sh. */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include "broker/store/shared.h"
#include "broker/store/store.h"
#include "tests/support/scratch.h"
#include "tests/unit/broker/store/store_samples.h"

#include <sys/resource.h>

#define NOW 1000000 /* boot ms */

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX + 32];
    struct store *store;
    struct store_options options;
    struct muster_error err;
    unsigned number; /* of the test, with MUSTER_TEST_SHARED */
};

int fixture_setup(void **state); /* for cmocka; *state is a struct fixture */
int fixture_teardown(void **state);
bool fixture_is_shared(void);
void fixture_close(struct fixture *f);
void fixture_reopen(struct fixture *f); /* closed first, if it is open */

enum muster_status fixture_apply(struct fixture *f, const struct record *rows, size_t count);
void fixture_write(struct fixture *f, const struct record *row);
void fixture_write_samples(struct fixture *f);

/* A number by SQL, on a connection of its own. */
int64_t fixture_look(const struct fixture *f, const char *sql);
/* With the store closed. */
void fixture_change(const struct fixture *f, const char *sql);

/* A disk that is full, as a limit on the size of files. */
void fixture_limit_file_size(rlim_t bytes);

#endif
