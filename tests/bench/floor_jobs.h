/* floor_jobs - what many jobs at once cost without muster: a process with a bare ROUTER and PUB
 * that takes all messages that are there, writes their events and decisions into SQLite in one
 * synced transaction, and then answers and publishes. It decodes nothing, and decides by counting.
 */
#ifndef TESTS_BENCH_FLOOR_JOBS_H
#define TESTS_BENCH_FLOOR_JOBS_H

#include "tests/bench/swarm.h"

enum { /* up */
       FLOOR_SAVE = 's',
       FLOOR_REPORT = 'r',
       FLOOR_FAILED = 'f',
       FLOOR_PROBE = 'p', /* published as it is, without a row */
       /* down */
       FLOOR_ORDER = 'o',
       FLOOR_FREEZE = 'z',
       FLOOR_DECISION = 'd',
       FLOOR_ABORT = 'x',
};

#define FLOOR_JOBS_TABLES                                                               \
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "                                \
    "CREATE TABLE event (job TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, " \
    "PRIMARY KEY (job, seq)) WITHOUT ROWID; "                                           \
    "CREATE TABLE round (round INTEGER PRIMARY KEY, step INTEGER NOT NULL)"
#define FLOOR_JOBS_EVENT "INSERT INTO event (job, seq, body) VALUES ('bench', ?1, zeroblob(100))"
#define FLOOR_JOBS_DECISION "INSERT INTO round (round, step) VALUES (?1, 12)"

struct floor_jobs;

/* Its database is in `dir`. It is bench_server. */
struct floor_jobs *floor_jobs_start(const char *dir, size_t jobs, size_t world,
                                    struct door *ret_door);
void floor_jobs_stop(struct floor_jobs *floor);
uint64_t floor_jobs_commits(const struct floor_jobs *floor);

bool floor_is_event(char kind);
uint32_t floor_job_of(const char *job); /* its number, of swarm_split's name */
void floor_jobs_say(void *dealer, char kind, uint32_t job);
void floor_jobs_drain(void *dealer); /* its answers */

#endif
