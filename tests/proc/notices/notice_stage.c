/* notice_stage - see notice_stage.h. */
#include "tests/proc/notices/notice_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000 /* more than the longest backing off */
#define LOOK_MS 100
#define ANSWER_MAX 65536

static const struct notice_service *const services[CLOUD_COUNT] = {
    [CLOUD_GCE] = &notice_service_gce,
    [CLOUD_EC2] = &notice_service_ec2,
    [CLOUD_AZURE] = &notice_service_azure,
    [CLOUD_ALIBABA] = &notice_service_alibaba,
    [CLOUD_TENCENT] = &notice_service_tencent};

static bool takes_part(const struct stage_place *place)
{
    return place->trap != NULL;
}

/* --- what is not as it should be -------------------------------------------------------------- */

static const char *problem(const char *what, const json_t *seen)
{
    static char text[4096];
    char *json = seen != NULL ? json_dumps(seen, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    snprintf(text, sizeof text, "%s; seen: %s", what, json != NULL ? json : "nothing");
    free(json);
    return text;
}

static bool is(const json_t *object, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL && strcmp(text, value) == 0;
}

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* -1: it is being asked, or woken by what happens. */
static bool retry_is_right(const struct stage_place *place)
{
    /* 30 s may be all that is left; but where nobody ever was, asking becomes rarer */
    bool quick = (place->cloud == CLOUD_GCE || place->cloud == CLOUD_AZURE) &&
                 place->trap->state == SOURCE_DEGRADED;
    int64_t retry_ms = number(place->source, "retry_ms"), most_ms = 6000;

    if (place->trap->retry == RETRY_RARELY)
        return retry_ms >= PROVIDER_RARELY_MS * 8 / 10 - LIMIT_MS &&
               retry_ms <= PROVIDER_RARELY_MS * 12 / 10;
    if (place->trap->retry == RETRY_BACKOFF)
        most_ms = (quick ? 1000 : PROVIDER_BACKOFF_MAX_MS) * 12 / 10;
    return retry_ms >= -1 && retry_ms <= most_ms;
}

const char *stage_source_problem(const struct stage_place *place)
{
    const char *text = json_string_value(json_object_get(place->source, "text"));
    bool well_once = place->trap->state == SOURCE_HEALTHY;

    if (place->trap->or_degraded && is(place->source, "state", source_state_name(SOURCE_DEGRADED)))
        return text != NULL && text[0] != '\0' ? NULL : problem("no text", place->source);
    if (!is(place->source, "state", source_state_name(place->trap->state)))
        return problem(source_state_name(place->trap->state), place->source);
    if (text == NULL || strstr(text, place->trap->text) == NULL)
        return problem(place->trap->text, place->source);
    if (!retry_is_right(place))
        return problem("its next try is at another time", place->source);
    if (well_once && number(place->source, "ok_unix_ms") < notice_clocks().unix_ms - 4 * LIMIT_MS)
        return problem("no last success", place->source);
    return NULL;
}

static bool left_is_right(const struct stage_place *place)
{
    int64_t left_ms = number(place->notice, "left_ms");

    if (place->cloud == CLOUD_GCE)
        return left_ms > 30000 - LIMIT_MS && left_ms <= 30000;
    return left_ms >= place->trap->left_least_ms && left_ms <= place->trap->left_most_ms;
}

const char *stage_notice_problem(const struct stage_place *place)
{
    const struct notice_service *service = place->f.service;
    const char *kind =
        place->trap->kind != NULL ? place->trap->kind : wire_notice_kind_name(service->kind);
    const char *state = place->trap->notice_state;

    if (place->trap->announce == NULL)
        return place->notice == NULL ? NULL : problem("a notice that nobody gave", place->notice);
    if (place->notice == NULL)
        return problem("no notice", NULL);
    if (number(place->notice, "rows") != (place->trap->records > 0 ? place->trap->records : 1))
        return problem("another number of notices", place->notice);
    if (!is(place->notice, "kind", kind))
        return problem(kind, place->notice);
    if (state != NULL && !is(place->notice, "state", state))
        return problem(state, place->notice);
    if (place->trap->kind == NULL &&
        json_is_true(json_object_get(place->notice, "cancellable")) != service->cancellable)
        return problem("whether it can be withdrawn", place->notice);
    if (place->trap->kind == NULL && !left_is_right(place))
        return problem("the time left", place->notice);
    if (is(place->notice, "text", ""))
        return problem("the service's own words", place->notice);
    return place->journaled ? NULL : problem("it is not in the events", place->notice);
}

/* --- what the tool says ----------------------------------------------------------------------- */

static json_t *ask(const struct notice_stage *stage, const char *verb, const char *job)
{
    char *answer = malloc(ANSWER_MAX);
    char command[512];
    size_t size = 0;
    json_t *json;
    FILE *pipe;

    snprintf(command, sizeof command, "'%s' %s --json --db '%s/muster.db' --job %s",
             getenv("MUSTER"), verb, stage->directory, job);
    pipe = popen(command, "re");
    if (pipe != NULL && answer != NULL)
        size = fread(answer, 1, ANSWER_MAX, pipe);
    if (pipe != NULL)
        pclose(pipe);
    json = answer != NULL ? json_loadb(answer, size, 0, NULL) : NULL;
    free(answer);
    return json;
}

static const json_t *source_of(const json_t *sources, const char *name)
{
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (is(json_array_get(sources, i), "name", name))
            return json_array_get(sources, i);
    return NULL;
}

static void see_sources(struct stage_job *job, const json_t *sources)
{
    for (size_t i = 0; i < CLOUD_COUNT; i++) {
        struct stage_place *place = &job->places[i];

        if (!takes_part(place))
            continue;
        json_decref(place->source);
        place->source = json_deep_copy(source_of(sources, place->f.service->name));
    }
}

static bool sources_are_right(const struct stage_job *job)
{
    for (size_t i = 0; i < CLOUD_COUNT; i++)
        if (takes_part(&job->places[i]) && stage_source_problem(&job->places[i]) != NULL)
            return false;
    return true;
}

/* First by the library, which costs little; when that is right, by `muster nodes` itself. */
static bool look_at_sources(struct notice_stage *stage, struct stage_job *job)
{
    muster_rows_t *rows = NULL;
    json_t *json = NULL;

    if (muster_client_nodes(stage->client, job->name, 0, &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) == 1)
        json = json_loads(muster_rows_nodes(rows)[0].sources, 0, NULL);
    muster_rows_destroy(&rows);
    see_sources(job, json);
    json_decref(json);
    if (!sources_are_right(job))
        return false;
    json = ask(stage, "nodes", job->name);
    see_sources(job, json_object_get(json_array_get(json_object_get(json, "nodes"), 0), "sources"));
    json_decref(json);
    return sources_are_right(job);
}

static json_t *notice_json(const struct muster_notice_row *row, size_t rows)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:b,s:I,s:I,s:s}", "id", row->id, "kind", row->kind,
                     "source", row->source, "state", row->state, "cancellable", row->cancellable,
                     "left_ms", (json_int_t)row->left_ms, "rows", (json_int_t)rows, "text",
                     row->text);
}

static void look_at_notices(struct notice_stage *stage, struct stage_job *job)
{
    muster_rows_t *rows = NULL;

    if (muster_client_notices(stage->client, job->name, NULL, 0, &rows, NULL) != MUSTER_OK)
        return;
    for (size_t i = 0; i < CLOUD_COUNT; i++) {
        struct stage_place *place = &job->places[i];
        const struct muster_notice_row *found = NULL;
        size_t count = 0;

        for (size_t k = 0; takes_part(place) && k < muster_rows_count(rows); k++)
            if (strcmp(muster_rows_notices(rows)[k].source, place->f.service->name) == 0) {
                if (found == NULL || muster_rows_notices(rows)[k].left_ms < found->left_ms)
                    found = &muster_rows_notices(rows)[k];
                count++;
            }
        json_decref(place->notice);
        place->notice = found != NULL ? notice_json(found, count) : NULL;
    }
    muster_rows_destroy(&rows);
}

/* A notice that ends the job is a "termination"; a notice that ends nobody is told by its kind. */
static bool is_event_of(const json_t *event, const json_t *notice)
{
    const char *kind = json_string_value(json_object_get(notice, "kind"));
    char words[64] = "termination";

    if (kind != NULL && !wire_notice_ends(wire_notice_kind_from_name(kind)))
        snprintf(words, sizeof words, "%s notice", kind);
    return is(event, "kind", words) &&
           is(event, "text", json_string_value(json_object_get(notice, "id")));
}

static void look_at_events(struct notice_stage *stage, struct stage_job *job)
{
    json_t *json = ask(stage, "events", job->name);
    const json_t *events = json_object_get(json, "events");

    for (size_t i = 0; i < CLOUD_COUNT; i++) {
        struct stage_place *place = &job->places[i];

        for (size_t k = 0; place->notice != NULL && k < json_array_size(events); k++)
            if (is_event_of(json_array_get(events, k), place->notice))
                place->journaled = true;
    }
    json_decref(json);
}

/* --- the play --------------------------------------------------------------------------------- */

static void start_broker(struct notice_stage *stage)
{
    char database[96], address[96], log[96];
    int64_t until = notice_clocks().boot_ms + LIMIT_MS;
    const char *musterd = getenv("MUSTERD");
    muster_rows_t *rows = NULL;
    int fd;

    snprintf(database, sizeof database, "%s/muster.db", stage->directory);
    snprintf(address, sizeof address, "ipc://%s/s", stage->directory);
    snprintf(log, sizeof log, "%s/log", stage->directory);
    assert_non_null(musterd);
    stage->broker = fork();
    assert_true(stage->broker >= 0);
    if (stage->broker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* ctest waits for whoever has its output */
        fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        dup2(fd, STDERR_FILENO);
        execl(musterd, musterd, "--db", database, "--listen", address, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(muster_client_open(address, 1000, &stage->client, NULL), MUSTER_OK);
    while (muster_client_jobs(stage->client, NULL, &rows, NULL) != MUSTER_OK)
        assert_true(notice_clocks().boot_ms < until);
    muster_rows_destroy(&rows);
}

static void open_place(struct stage_place *place, const struct stage_trap *trap, int cloud)
{
    struct notice_fixture *f = &place->f;
    char variable[64];

    place->cloud = cloud;
    f->service = services[cloud];
    f->server = http_server_start();
    snprintf(variable, sizeof variable, "MUSTER_%s_ENDPOINT", f->service->name);
    for (char *c = variable; *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    setenv(variable, http_server_url(f->server), 1);
    f->service->ready(f);
    notice_says_nothing(f);
    if ((trap->clouds & CLOUD(cloud)) == 0)
        return; /* is well, and nobody looks */
    place->trap = trap;
    trap->before(f);
}

static void open_job(struct notice_stage *stage, const struct stage_trap *trap)
{
    struct stage_job *job = &stage->jobs[stage->job_count];
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error err = {.text = ""};
    char address[96], directory[160];

    job->trap = trap;
    snprintf(job->name, sizeof job->name, "trap-%zu", stage->job_count++);
    for (int cloud = 0; cloud < CLOUD_COUNT; cloud++)
        open_place(&job->places[cloud], trap, cloud);
    snprintf(address, sizeof address, "ipc://%s/s", stage->directory);
    snprintf(directory, sizeof directory, "%s/%s", stage->directory, job->name);
    assert_int_equal(muster_state_create(&job->state, NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_i64(job->state, "weight", &job->weight, NULL), MUSTER_OK);
    options.broker = address;
    options.job = job->name;
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = directory;
    options.state = job->state;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    options.termination.signals[0] = -1;
    options.termination.sources = "gce,ec2,azure,alibaba,tencent";
    if (muster_node_open(&options, &job->node, &err) != MUSTER_OK)
        fail_msg("%s: %s", job->name, err.text);
}

static void await_sources(struct notice_stage *stage)
{
    int64_t until = notice_clocks().boot_ms + LIMIT_MS;
    bool right[STAGE_TRAPS_MAX] = {false}, all = false;

    while (!all && notice_clocks().boot_ms < until) {
        all = true;
        for (size_t i = 0; i < stage->job_count; i++) {
            right[i] = right[i] || look_at_sources(stage, &stage->jobs[i]);
            all = all && right[i];
        }
        poll(NULL, 0, all ? 0 : LOOK_MS);
    }
}

/* A node tells of four ends at once, and of a fifth that is the nearest of all: Compute Engine's 30
 * s. */
static bool is_its_turn(const struct stage_job *job, int cloud)
{
    for (size_t i = 0; i < CLOUD_COUNT && cloud == CLOUD_GCE; i++)
        if (i != CLOUD_GCE && takes_part(&job->places[i]) && job->places[i].notice == NULL)
            return false;
    return true;
}

static void announce(struct stage_job *job)
{
    for (int i = 0; i < CLOUD_COUNT && job->trap->announce != NULL; i++) {
        struct stage_place *place = &job->places[i];

        if (takes_part(place) && !place->announced && is_its_turn(job, i)) {
            place->announced = true;
            job->trap->announce(&place->f);
        }
    }
}

/* What comes after the first announcement was told; and then twice more asked for. */
static bool play_again(struct stage_place *place)
{
    struct notice_fixture *f = &place->f;

    if (place->trap->announce_again == NULL)
        return true;
    if (place->hits_again == 0 && place->notice != NULL) {
        place->trap->announce_again(f);
        place->hits_again = http_server_hits(f->server, f->service->path) + 1;
    }
    return place->hits_again > 0 &&
           http_server_hits(f->server, f->service->path) > place->hits_again;
}

static bool notices_are_right(struct stage_job *job)
{
    bool all = true;

    for (size_t i = 0; i < CLOUD_COUNT; i++) {
        struct stage_place *place = &job->places[i];

        if (!takes_part(place))
            continue;
        place->journaled = true; /* looked at later */
        all = play_again(place) && stage_notice_problem(place) == NULL && all;
    }
    return all;
}

static void await_notices(struct notice_stage *stage)
{
    int64_t until = notice_clocks().boot_ms + LIMIT_MS;
    bool all = false;

    while (!all && notice_clocks().boot_ms < until) {
        all = true;
        for (size_t i = 0; i < stage->job_count; i++) {
            announce(&stage->jobs[i]);
            look_at_notices(stage, &stage->jobs[i]);
            all = notices_are_right(&stage->jobs[i]) && all;
        }
        poll(NULL, 0, all ? 0 : LOOK_MS);
    }
    for (size_t i = 0; i < stage->job_count; i++) {
        for (size_t k = 0; k < CLOUD_COUNT; k++)
            stage->jobs[i].places[k].journaled = false;
        if (stage->jobs[i].trap->announce != NULL)
            look_at_events(stage, &stage->jobs[i]);
    }
}

void notice_stage_play(struct notice_stage *stage, const struct stage_trap *traps, size_t count)
{
    memset(stage, 0, sizeof *stage);
    assert_true(count <= STAGE_TRAPS_MAX);
    snprintf(stage->directory, sizeof stage->directory, "/tmp/notice-stage-XXXXXX");
    assert_non_null(mkdtemp(stage->directory));
    setenv("MUSTER_RUNTIME_DIR", "/proc/none", 1); /* each asks for itself */
    start_broker(stage);
    for (size_t i = 0; i < count; i++)
        open_job(stage, &traps[i]);
    await_sources(stage);
    await_notices(stage);
}

static void close_job(struct stage_job *job)
{
    muster_node_close(&job->node, 0, NULL);
    muster_state_destroy(&job->state);
    for (size_t i = 0; i < CLOUD_COUNT; i++) {
        http_server_stop(&job->places[i].f.server);
        json_decref(job->places[i].source);
        json_decref(job->places[i].notice);
    }
}

void notice_stage_end(struct notice_stage *stage)
{
    char command[128];

    for (size_t i = 0; i < stage->job_count; i++)
        close_job(&stage->jobs[i]);
    muster_client_close(&stage->client, NULL);
    if (stage->broker > 0) {
        kill(stage->broker, SIGKILL);
        waitpid(stage->broker, NULL, 0);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", stage->directory);
    assert_int_equal(system(command), 0);
}
