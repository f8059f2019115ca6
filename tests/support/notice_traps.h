/* notice_traps - how metadata services misbehave, told once for all of them: each a test of its
 * own. A provider's test says what its service is like, and lists NOTICE_TRAPS beside its own
 * tests. Time between requests goes faster there; timeouts are real where nothing else is said. */
#ifndef TESTS_SUPPORT_NOTICE_TRAPS_H
#define TESTS_SUPPORT_NOTICE_TRAPS_H

#include "tests/support/notice_fixture.h"

#define NOTICE_LIMIT_MS 20000 /* with sanitizers on two busy cores */
#define NOTICE_PACE 25

struct notice_service {
    const char *name;    /* of the source */
    const char *path;    /* what announces an end, asked again and again */
    const char *headers; /* of each answer; NULL = none */
    const char *nothing; /* the body that announces nothing; NULL: that is a 404 */
    enum wire_notice_kind kind;
    bool timed;       /* the body has a time */
    bool cancellable; /* what is announced can be withdrawn */
    void (*ready)(
        struct notice_fixture *f); /* all but that path answers, and nothing is announced */
    const char *(*announcement)(int64_t from_now_s); /* a body of that path */
};

/* Setup and teardown for a test: the server is there, `ready`. Nobody watches yet. */
void notice_service_open(struct notice_fixture *f, const struct notice_service *service);

/* That path answers so from here on (instead: of all before). Headers are the service's if there
 * are none. */
void notice_answers(struct notice_fixture *f, struct http_script script);
void notice_then_answers(struct notice_fixture *f,
                         struct http_script script); /* behind those before */
void notice_announces(struct notice_fixture *f, int64_t in_s);
void notice_says_nothing(struct notice_fixture *f);

/* How long from now, within limits. */
void notice_assert_left(const struct notice_record *record, int64_t least_ms, int64_t most_ms);
void notice_assert_retry(const struct source_status *status, int64_t least_ms, int64_t most_ms);

typedef void notice_trap(void **state);
notice_trap nothing_announced_is_healthy, an_end_is_told_once, http_1_0_without_length_is_read,
    a_503_is_retried, a_500_is_retried, a_429_is_retried, a_410_is_retried,
    a_403_is_asked_rarely_where_it_never_worked, a_403_is_retried_soon_where_it_has_worked,
    a_redirect_is_not_followed, a_reset_is_retried, a_hang_ends_by_the_timeout,
    a_silent_close_is_retried, what_is_no_http_is_retried, half_a_body_is_no_notice,
    slow_bytes_beyond_the_timeout_are_no_notice, slow_bytes_within_it_are_read,
    a_body_beyond_the_cap_is_not_read, garbage_is_degraded_and_withdraws_nothing,
    nobody_there_is_absent_and_found_when_it_comes, a_time_that_moves_later_keeps_the_first,
    a_time_that_moves_nearer_is_told_again, a_time_that_passed_is_now;

#define NOTICE_TRAPS(CASE)                                                                     \
    CASE(nothing_announced_is_healthy), CASE(an_end_is_told_once),                             \
        CASE(http_1_0_without_length_is_read), CASE(a_503_is_retried), CASE(a_500_is_retried), \
        CASE(a_429_is_retried), CASE(a_410_is_retried),                                        \
        CASE(a_403_is_asked_rarely_where_it_never_worked),                                     \
        CASE(a_403_is_retried_soon_where_it_has_worked), CASE(a_redirect_is_not_followed),     \
        CASE(a_reset_is_retried), CASE(a_hang_ends_by_the_timeout),                            \
        CASE(a_silent_close_is_retried), CASE(what_is_no_http_is_retried),                     \
        CASE(half_a_body_is_no_notice), CASE(slow_bytes_beyond_the_timeout_are_no_notice),     \
        CASE(slow_bytes_within_it_are_read), CASE(a_body_beyond_the_cap_is_not_read),          \
        CASE(garbage_is_degraded_and_withdraws_nothing),                                       \
        CASE(nobody_there_is_absent_and_found_when_it_comes)
/* And of those whose announcements have a time. */
#define NOTICE_TIME_TRAPS(CASE)                                                                  \
    CASE(a_time_that_moves_later_keeps_the_first), CASE(a_time_that_moves_nearer_is_told_again), \
        CASE(a_time_that_passed_is_now)

#endif
