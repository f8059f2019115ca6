/* notice_fixture - a provider beside a scripted metadata service: as in a node, without the node.
 * Opens a watch on one list of sources and waits for what it says. Endpoint and runtime directory
 * are set in the environment before. Every wait is bounded and fails the test with what was known.
 */
#ifndef TESTS_SUPPORT_NOTICE_FIXTURE_H
#define TESTS_SUPPORT_NOTICE_FIXTURE_H

#include "node/notice/watch.h"
#include "tests/support/http_server.h"

struct notice_service; /* see notice_traps.h */

struct notice_fixture {
    const struct notice_service *service;
    struct provider_pace pace; /* of the watch */
    struct http_server *server;
    struct watch *watch;
    int wake_fd;
    char directory[64]; /* MUSTER_RUNTIME_DIR, removed at the end */
};

/* Starts the server and names it by MUSTER_<PROVIDER>_ENDPOINT (provider NULL: no server). */
void notice_fixture_open(struct notice_fixture *f, const char *provider);
void notice_fixture_watch(struct notice_fixture *f, const char *sources);
void notice_fixture_close(struct notice_fixture *f);

/* The next record, within limit_ms. */
struct notice_record notice_await(struct notice_fixture *f, int limit_ms);
/* Fails if a record comes within this time: for what has been answered so often already. */
void notice_none(struct notice_fixture *f);
/* What is told of this source; false: nothing (yet). */
bool notice_status(struct notice_fixture *f, const char *source, struct source_status *ret_status);
/* Waits until this source is in that state, with this in its text; the time of its next try, from
 * now. */
struct source_status notice_state(struct notice_fixture *f, const char *source,
                                  enum source_state state, const char *text, int limit_ms);
struct notice_now notice_clocks(void);
/* A date this far from now, as metadata services write it. */
const char *notice_rfc3339(int64_t from_now_s);
const char *notice_rfc1123(int64_t from_now_s);
const char *notice_plain(int64_t from_now_s); /* "2018-08-18 12:05:33", of UTC */

#endif
