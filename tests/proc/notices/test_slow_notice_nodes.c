/* Each reply and trap of the clouds' metadata services, as `muster nodes` and `muster events` tell
 * of it: state, next try, notice. A real broker and real nodes, each asking all five services;
 * nothing goes faster than it does for users. */
#include "tests/proc/notices/notice_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define IN_S STAGE_END_IN_S
#define LEFT_MS (IN_S * 1000LL)
#define LATE_MS 130000 /* two phases of the stage */
#define TOKENS (CLOUD(CLOUD_EC2) | CLOUD(CLOUD_ALIBABA))
#define TIMED (CLOUDS_ALL & ~CLOUD(CLOUD_GCE))

/* --- what a service does ---------------------------------------------------------------------- */

static void is_well(struct notice_fixture *f)
{
    notice_says_nothing(f);
}

static void announces(struct notice_fixture *f)
{
    notice_announces(f, IN_S);
}

/* Answers where it is given the new token, else 401. */
static void to_its_new_token(struct notice_fixture *f, struct http_script script)
{
    script.needs = f->service == &notice_service_ec2 ? "X-aws-ec2-metadata-token: NEW"
                                                     : "X-aliyun-ecs-metadata-token: NEW";
    notice_answers(f, script);
}

static void announces_with_its_token(struct notice_fixture *f)
{
    to_its_new_token(f, (struct http_script){.body = f->service->announcement(IN_S)});
}

static void says_status(struct notice_fixture *f, int status)
{
    notice_answers(f, (struct http_script){.status = status, .body = "no", .headers = ""});
}

static void says_401(struct notice_fixture *f)
{
    says_status(f, 401);
}
static void says_403(struct notice_fixture *f)
{
    says_status(f, 403);
}
static void says_404_with_its_mark(struct notice_fixture *f)
{
    notice_answers(f, (struct http_script){.status = 404});
}
static void says_410(struct notice_fixture *f)
{
    says_status(f, 410);
}
static void says_429(struct notice_fixture *f)
{
    says_status(f, 429);
}
static void says_500(struct notice_fixture *f)
{
    says_status(f, 500);
}
static void says_503(struct notice_fixture *f)
{
    says_status(f, 503);
}

static void gives_an_old_token_first(struct notice_fixture *f)
{
    const bool ec2 = f->service == &notice_service_ec2;

    http_server_replace(
        f->server, "PUT", "/latest/api/token",
        (struct http_script){.headers =
                                 ec2 ? "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n" : NULL,
                             .body = "OLD",
                             .times = 1});
    http_server_on(f->server, "PUT", "/latest/api/token",
                   (struct http_script){
                       .headers = ec2 ? "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n" : NULL,
                       .body = "NEW"});
    if (!ec2)
        http_server_replace(f->server, "GET", "/latest/meta-data/instance-id",
                            (struct http_script){.body = "i-bp67acfmxazb4p"});
    to_its_new_token(f, (struct http_script){.status = 404});
}

/* Well once, then so for ever. */
static void then(struct notice_fixture *f, struct http_script script)
{
    struct http_script first = {.body = f->service->nothing, .times = 1};

    if (f->service->nothing == NULL)
        first.status = 404;
    notice_answers(f, first);
    notice_then_answers(f, script);
}

static void is_well_then_403(struct notice_fixture *f)
{
    then(f, (struct http_script){.status = 403, .headers = ""});
}
static void hangs(struct notice_fixture *f)
{
    then(f, (struct http_script){.way = HTTP_WAY_HANG});
}
static void resets(struct notice_fixture *f)
{
    then(f, (struct http_script){.way = HTTP_WAY_RESET});
}
static void closes(struct notice_fixture *f)
{
    then(f, (struct http_script){.way = HTTP_WAY_CLOSE});
}
static void speaks_no_http(struct notice_fixture *f)
{
    then(f, (struct http_script){.way = HTTP_WAY_GARBAGE, .body = "\x16\x03\x01 tls?"});
}
static void says_half(struct notice_fixture *f)
{
    then(f, (struct http_script){.way = HTTP_WAY_PART, .body = f->service->announcement(30)});
}
static void says_garbage(struct notice_fixture *f)
{
    then(f, (struct http_script){.body = "<html>welcome</html>"});
}
static void is_too_slow(struct notice_fixture *f)
{
    then(f, (struct http_script){.slow_ms = 2000, .body = f->service->announcement(30)});
}

static void says_too_much(struct notice_fixture *f)
{
    char *body = malloc(100001);

    assert_non_null(body);
    memset(body, ' ', 100000);
    body[100000] = '\0';
    then(f, (struct http_script){.body = body});
    free(body);
}

static void redirects(struct notice_fixture *f)
{
    notice_answers(f, (struct http_script){.status = 302, .headers = "Location: /elsewhere\r\n"});
}

static void announces_slowly(struct notice_fixture *f)
{
    notice_answers(f, (struct http_script){.body = f->service->announcement(IN_S), .slow_ms = 5});
}

static void announces_by_http_1_0(struct notice_fixture *f)
{
    notice_answers(f, (struct http_script){.body = f->service->announcement(IN_S),
                                           .http_1_0 = true,
                                           .no_length = true});
}

/* Everything that is asked for is a page, with status 200: a captive proxy. */
static void is_another_server(struct notice_fixture *f)
{
    static const char *const paths[] = {"/latest/api/token",
                                        "/latest/meta-data/instance-id",
                                        "/latest/meta-data/spot/instance-action",
                                        "/latest/meta-data/spot/termination-time",
                                        "/latest/meta-data/events/recommendations/rebalance",
                                        "/latest/meta-data/events/maintenance/scheduled",
                                        "/latest/meta-data/autoscaling/target-lifecycle-state",
                                        "/metadata/instance/compute/name",
                                        "/computeMetadata/v1/instance/preempted",
                                        "/computeMetadata/v1/instance/maintenance-event",
                                        "/computeMetadata/v1/instance/machine-type",
                                        "/computeMetadata/v1/instance/upcoming-maintenance"};

    http_server_reset(f->server, NULL);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (int put = 0; put < 2; put++)
            http_server_on(f->server, put ? "PUT" : "GET", paths[i],
                           (struct http_script){.body = "<html>Sign in</html>"});
}

static void knows_nothing(struct notice_fixture *f)
{
    http_server_reset(f->server, NULL); /* 404 to everything, as another cloud's */
}

static void is_not_there(struct notice_fixture *f)
{
    http_server_pause(f->server);
}

static void comes_and_announces(struct notice_fixture *f)
{
    http_server_resume(f->server);
    f->service->ready(f);
    announces(f);
}

static void tells_of_another_machine(struct notice_fixture *f)
{
    notice_answers(f, (struct http_script){.body = notice_azure_events("Reboot", "Scheduled",
                                                                       "\"vmss_4\",\"vmss_33\"",
                                                                       notice_rfc1123(100))});
}

static void moves_it_later(struct notice_fixture *f)
{
    notice_announces(f, IN_S + 150);
}

static void moves_it_nearer(struct notice_fixture *f)
{
    notice_announces(f, IN_S / 2);
}

static void announces_what_has_passed(struct notice_fixture *f)
{
    notice_announces(f, -600);
}

static void announces_a_freeze(struct notice_fixture *f)
{
    if (f->service == &notice_service_azure)
        notice_answers(
            f, (struct http_script){.body = notice_azure_events("Freeze", "Scheduled", "\"vmss_3\"",
                                                                notice_rfc1123(IN_S))});
    else
        http_server_replace(f->server, "GET", "/computeMetadata/v1/instance/maintenance-event",
                            (struct http_script){.headers = f->service->headers,
                                                 .body = "MIGRATE_ON_HOST_MAINTENANCE"});
}

static void withdraws_it(struct notice_fixture *f)
{
    f->service->ready(f);
    notice_says_nothing(f);
}

/* --- the table -------------------------------------------------------------------------------- */

#define AHEAD .left_least_ms = LEFT_MS - LATE_MS, .left_most_ms = LEFT_MS
#define TOLD .announce = announces, AHEAD

static const struct stage_trap traps[] = {
    {"nothing is announced", CLOUDS_ALL, is_well, SOURCE_HEALTHY, "", RETRY_SOON, TOLD},
    {"404 where a key is filtered", CLOUD(CLOUD_GCE), says_404_with_its_mark, SOURCE_DEGRADED,
     "404", RETRY_RARELY, .announce = NULL},
    {"404 where the list of events is filtered", CLOUD(CLOUD_AZURE), says_404_with_its_mark,
     SOURCE_DEGRADED, "404", RETRY_RARELY, .announce = NULL},
    {"401, a new token, and then", TOKENS, gives_an_old_token_first, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_with_its_token, AHEAD},
    {"401 for ever", CLOUDS_ALL, says_401, SOURCE_DEGRADED, "401", RETRY_BACKOFF, TOLD},
    {"403 from the start", CLOUDS_ALL, says_403, SOURCE_DEGRADED, "403", RETRY_RARELY,
     .announce = NULL},
    {"403 after it worked", CLOUDS_ALL, is_well_then_403, SOURCE_DEGRADED, "403", RETRY_BACKOFF,
     TOLD},
    {"410", CLOUDS_ALL, says_410, SOURCE_DEGRADED, "410", RETRY_BACKOFF, TOLD},
    {"429", CLOUDS_ALL, says_429, SOURCE_DEGRADED, "429", RETRY_BACKOFF, TOLD},
    {"500", CLOUDS_ALL, says_500, SOURCE_DEGRADED, "500", RETRY_BACKOFF, TOLD},
    {"503", CLOUDS_ALL, says_503, SOURCE_DEGRADED, "503", RETRY_BACKOFF, TOLD},
    {"a redirect", CLOUDS_ALL, redirects, SOURCE_DEGRADED, "302", RETRY_RARELY, .announce = NULL},
    {"a hang", CLOUDS_ALL, hangs, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"a reset", CLOUDS_ALL, resets, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"a silent close", CLOUDS_ALL, closes, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"no HTTP", CLOUDS_ALL, speaks_no_http, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"garbage", CLOUDS_ALL, says_garbage, SOURCE_DEGRADED, "", RETRY_SOON, TOLD},
    {"half a body", CLOUDS_ALL, says_half, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"bytes too slow", CLOUDS_ALL, is_too_slow, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"a body beyond the cap", CLOUDS_ALL, says_too_much, SOURCE_DEGRADED, "", RETRY_BACKOFF, TOLD},
    {"slow bytes", CLOUDS_ALL, is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_slowly, AHEAD},
    {"HTTP/1.0", CLOUDS_ALL, is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_by_http_1_0, AHEAD},
    {"pages instead of answers", CLOUDS_ALL & ~CLOUD(CLOUD_EC2), is_another_server, SOURCE_ABSENT,
     "another service", RETRY_RARELY, .announce = NULL},
    /* a token that is not there within 2 s is done without: then it is the other paths' pages that
       are garbage */
    {"pages instead of answers", CLOUD(CLOUD_EC2), is_another_server, SOURCE_ABSENT,
     "another service", RETRY_RARELY, .or_degraded = true, .announce = NULL},
    {"404 to everything, as another cloud", CLOUDS_ALL & ~CLOUD(CLOUD_EC2) & ~CLOUD(CLOUD_GCE),
     knows_nothing, SOURCE_ABSENT, "404", RETRY_RARELY, .announce = NULL},
    {"404 without Google's mark", CLOUD(CLOUD_GCE), knows_nothing, SOURCE_ABSENT, "another service",
     RETRY_RARELY, .announce = NULL},
    {"404 to everything, and no token", CLOUD(CLOUD_EC2), knows_nothing, SOURCE_DEGRADED,
     "gives no token", RETRY_SOON, .announce = NULL},
    {"nobody there", CLOUDS_ALL & ~CLOUD(CLOUD_GCE), is_not_there, SOURCE_ABSENT, "", RETRY_BACKOFF,
     .announce = comes_and_announces, AHEAD},
    {"nobody there", CLOUD(CLOUD_GCE), is_not_there, SOURCE_ABSENT, "", RETRY_BACKOFF,
     .announce = comes_and_announces, AHEAD},
    {"another machine's event", CLOUD(CLOUD_AZURE), tells_of_another_machine, SOURCE_HEALTHY, "",
     RETRY_SOON, .announce = NULL},
    {"a deadline that moves later", TIMED, is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces, .announce_again = moves_it_later, AHEAD},
    {"a deadline that moves nearer", TIMED, is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces, .announce_again = moves_it_nearer, .records = 2,
     .left_least_ms = LEFT_MS / 2 - LATE_MS, .left_most_ms = LEFT_MS / 2},
    {"a deadline that has passed", TIMED, is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_what_has_passed,
     .left_least_ms = GRACE_DEFAULT_MS, /* as if none was told */
     .left_most_ms = GRACE_DEFAULT_MS},
    {"a withdrawal", CLOUD(CLOUD_AZURE), is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_a_freeze, .announce_again = withdraws_it, .kind = "freeze",
     .notice_state = "cancelled"},
    {"a withdrawn migration", CLOUD(CLOUD_GCE), is_well, SOURCE_HEALTHY, "", RETRY_SOON,
     .announce = announces_a_freeze, .announce_again = withdraws_it, .kind = "migrate",
     .notice_state = "cancelled"},
};
#define TRAP_COUNT (sizeof traps / sizeof *traps)

static struct notice_stage stage;

static void is_as_documented(void **state)
{
    const struct stage_place *place = *state;
    const char *problem = stage_source_problem(place);

    if (problem != NULL)
        fail_msg("muster nodes: expected %s", problem);
    problem = stage_notice_problem(place);
    if (problem != NULL)
        fail_msg("notice: expected %s", problem);
}

static int play(void **state)
{
    (void)state;
    notice_stage_play(&stage, traps, TRAP_COUNT);
    return 0;
}

static int end(void **state)
{
    (void)state;
    notice_stage_end(&stage);
    return 0;
}

int main(void)
{
    static struct CMUnitTest tests[TRAP_COUNT * CLOUD_COUNT];
    static char names[TRAP_COUNT * CLOUD_COUNT][96];
    static const char *const clouds[CLOUD_COUNT] = {"GCE", "EC2", "Azure", "Alibaba", "Tencent"};
    struct rlimit files;
    size_t count = 0;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a thousand sockets */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    for (size_t i = 0; i < TRAP_COUNT; i++)
        for (size_t cloud = 0; cloud < CLOUD_COUNT; cloud++)
            if ((traps[i].clouds & CLOUD(cloud)) != 0) {
                snprintf(names[count], sizeof names[count], "%s: %s", clouds[cloud], traps[i].name);
                tests[count] = (struct CMUnitTest){.name = names[count],
                                                   .test_func = is_as_documented,
                                                   .initial_state = &stage.jobs[i].places[cloud]};
                count++;
            }
    return _cmocka_run_group_tests("slow_notice_nodes", tests, count, play, end);
}
