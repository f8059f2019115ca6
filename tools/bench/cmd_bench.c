/* cmd_bench - `muster bench`: its options, the broker and the job that it starts, the answer.
 * Owns: a directory in --dir with all that the run writes, and one for the broker's socket. Both
 * are removed at the end. SIGINT ends the job first. */
#include "tools/bench/bench.h"

#include "node/shard/fs.h"
#include "tools/render.h"
#include "tools/setup/setup.h"
#include "tools/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define BROKER_TIMEOUT_MS 10000 /* until it answers at all */
#define BROKER_ASK_MS 1000
#define SIZE_DEFAULT ((int64_t)64 << 20)
#define RANKS_DEFAULT 4
#define ROUNDS_DEFAULT 3
#define GRACE_MS 30000.0 /* what most launchers give */

struct bench {
    struct tool *tool;
    const char *place; /* --dir */
    int64_t ranks, rounds, size_bytes;
    struct bench_plan *plan;
    char exe[PATH_MAX], musterd[PATH_MAX];
    char dir[PATH_MAX + 32];       /* "" = not made; so the next */
    char socket_dir[64];           /* short: a socket's path has 107 bytes */
    char plan_path[PATH_MAX + 40]; /* so the next */
    char log_path[PATH_MAX + 40];
    char script_path[PATH_MAX + 40];
    char broker[96];
    pid_t broker_pid;
    double plain_write_ms[BENCH_ROUNDS_MAX], plain_read_ms[BENCH_ROUNDS_MAX];
};

/* --- options ---------------------------------------------------------------------------------- */

/* A whole number with K, M or G, of 1024. */
static int bench_size(const char *text, int64_t *ret_bytes)
{
    static const char units[] = "KMG";
    size_t length = strlen(text);
    const char *unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
    char number[24];

    if (unit != NULL && length <= sizeof number) {
        snprintf(number, sizeof number, "%.*s", (int)length - 1, text);
        if (tool_number(number, "--size", 1, (int64_t)1 << 20, ret_bytes) != TOOL_DONE)
            return TOOL_USAGE;
        *ret_bytes <<= 10 * (unit - units + 1);
        return TOOL_DONE;
    }
    return tool_fail(TOOL_USAGE, "--size is \"%s\"; give a number with K, M or G, as in 512M",
                     text);
}

static int bench_take_number(const struct tool *tool, enum tool_option_id id, const char *what,
                             int64_t max, int64_t *number)
{
    const char *text = tool->values[id];

    return text == NULL ? TOOL_DONE : tool_number(text, what, 1, max, number);
}

static int64_t bench_free_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    int64_t kib = INT64_MAX >> 11;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoll(line + 13, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

/* One checkpoint a round, and the plain files beside them. */
static int bench_check_room(const struct bench *b)
{
    const int64_t memory = b->ranks * b->size_bytes, disk = memory * (b->rounds + 1);
    struct statvfs fs;

    if (memory > bench_free_memory() / 2)
        return tool_fail(TOOL_NO,
                         "%" PRId64 " ranks of %s need more than half of this machine's free "
                         "memory; give a smaller --size or fewer --ranks",
                         b->ranks, render_bytes(b->size_bytes).text);
    if (statvfs(b->place, &fs) != 0)
        return tool_fail(TOOL_USAGE, "cannot use %s: %s; name another place with --dir", b->place,
                         strerror(errno));
    if ((uint64_t)disk > (uint64_t)fs.f_bavail * fs.f_frsize)
        return tool_fail(TOOL_NO,
                         "the files of this run take %s, and %s has less room; give a smaller "
                         "--size, fewer --ranks or --rounds, or another --dir",
                         render_bytes(disk).text, b->place);
    return TOOL_DONE;
}

static int bench_read_options(struct bench *b)
{
    const struct tool *tool = b->tool;
    const char *size = tool->values[OPTION_SIZE];

    b->place = tool->values[OPTION_DIR] != NULL ? tool->values[OPTION_DIR] : ".";
    b->ranks = RANKS_DEFAULT;
    b->rounds = ROUNDS_DEFAULT;
    b->size_bytes = SIZE_DEFAULT;
    if (bench_take_number(tool, OPTION_RANKS, "--ranks", BENCH_RANKS_MAX, &b->ranks) != TOOL_DONE ||
        bench_take_number(tool, OPTION_ROUNDS, "--rounds", BENCH_ROUNDS_MAX, &b->rounds) !=
            TOOL_DONE ||
        (size != NULL && bench_size(size, &b->size_bytes) != TOOL_DONE))
        return TOOL_USAGE;
    if (tool->values[OPTION_PLOT] != NULL) {
        int code = bench_plot_check(tool->values[OPTION_PLOT]);

        if (code != TOOL_DONE)
            return code;
    }
    return bench_check_room(b);
}

static int bench_make_places(struct bench *b)
{
    char full[PATH_MAX];

    setup_self(b->exe);
    if (realpath(b->place, full) == NULL)
        return tool_fail(TOOL_NO, "cannot use %s: %s; name another place with --dir", b->place,
                         strerror(errno));
    snprintf(b->dir, sizeof b->dir, "%s/muster-bench-XXXXXX", full);
    if (mkdtemp(b->dir) == NULL) {
        b->dir[0] = '\0';
        return tool_fail(TOOL_NO, "cannot write to %s: %s; name another place with --dir", full,
                         strerror(errno));
    }
    snprintf(b->socket_dir, sizeof b->socket_dir, "/tmp/muster-bench-XXXXXX");
    if (mkdtemp(b->socket_dir) == NULL) {
        b->socket_dir[0] = '\0';
        return tool_fail(TOOL_NO, "cannot write to /tmp: %s", strerror(errno));
    }
    snprintf(b->broker, sizeof b->broker, "ipc://%s/broker", b->socket_dir);
    snprintf(b->plan_path, sizeof b->plan_path, "%s/plan", b->dir);
    snprintf(b->log_path, sizeof b->log_path, "%s/log", b->dir);
    snprintf(b->script_path, sizeof b->script_path, "%s/script", b->dir);
    b->plan = bench_plan_map(b->plan_path);
    if (b->plan == NULL)
        return tool_fail(TOOL_NO, "cannot write to %s: %s", b->dir, strerror(errno));
    b->plan->ranks = b->ranks;
    b->plan->rounds = b->rounds;
    b->plan->size_bytes = b->size_bytes;
    return TOOL_DONE;
}

/* --- the processes ---------------------------------------------------------------------------- */

static bool bench_broker_answers(const struct bench *b, struct muster_error *ret_error)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    bool answers = muster_client_open(b->broker, BROKER_ASK_MS, &client, ret_error) == MUSTER_OK &&
                   muster_client_broker(client, &rows, ret_error) == MUSTER_OK;

    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
    return answers;
}

static int bench_start_broker(struct bench *b)
{
    struct muster_error err = {0};
    int status = 0;

    if (trial_find_broker(b->musterd) != TOOL_DONE)
        return TOOL_NO;
    b->broker_pid = trial_start_broker(b->log_path, b->musterd, b->broker, b->dir);
    if (b->broker_pid < 0)
        return tool_fail(TOOL_NO, "cannot start a broker: %s", strerror(errno));
    for (double until = bench_clock_ms() + BROKER_TIMEOUT_MS;;) {
        if (waitpid(b->broker_pid, &status, WNOHANG) == b->broker_pid) {
            b->broker_pid = 0;
            return tool_fail(TOOL_NO, "the broker of this run ended at its start; its log is %s",
                             b->log_path);
        }
        if (bench_broker_answers(b, &err))
            return TOOL_DONE;
        if (bench_clock_ms() > until)
            return tool_fail_status(err.status, &err);
    }
}

static int bench_run_job(const struct bench *b)
{
    char ranks[16], checkpoints[PATH_MAX + 48];
    pid_t pid;

    snprintf(ranks, sizeof ranks, "%" PRId64, b->ranks);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", b->dir);
    setenv("MUSTER_CHECKPOINT_DIR", checkpoints, 1);
    setenv(BENCH_PLAN_ENV, b->plan_path, 1);
    pid = trial_start(b->log_path, (const char *const[]){
                                       b->exe, "run", "-n", ranks, "-j", BENCH_JOB, "-b", b->broker,
                                       "--max-failures", "0", "--", b->exe, "bench", NULL});
    if (pid < 0)
        return tool_fail(TOOL_NO, "cannot start the ranks: %s", strerror(errno));
    return trial_wait(pid) == 0 ? TOOL_DONE : tool_fail(TOOL_NO, "the ranks of this run failed");
}

static void bench_tell_log(const struct bench *b)
{
    FILE *log = fopen(b->log_path, "re");
    char line[512];

    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        fputs(line, stderr);
    if (log != NULL)
        fclose(log);
}

static void bench_clear(struct bench *b)
{
    trial_stop(b->broker_pid);
    if (b->plan != NULL)
        munmap(b->plan, sizeof *b->plan);
    if (b->dir[0] != '\0')
        (void)fs_remove_tree(b->dir, NULL);
    if (b->socket_dir[0] != '\0')
        (void)fs_remove_tree(b->socket_dir, NULL);
}

/* --- the figures ------------------------------------------------------------------------------ */

static int bench_ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double bench_median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, bench_ascending);
    return values[count / 2];
}

/* From the notice of a launch until its last rank has left. */
static double bench_gone_ms(const struct bench_plan *plan, int64_t launch)
{
    double last = 0;

    for (int64_t rank = 0; rank < plan->ranks; rank++)
        if (plan->launches[launch].ranks[rank].left_ms > last)
            last = plan->launches[launch].ranks[rank].left_ms;
    return last - plan->launches[launch].noticed_ms;
}

/* Until all ranks of a launch have joined and restored. */
static double bench_restart_ms(const struct bench_plan *plan, int64_t launch)
{
    double first = plan->launches[launch].ranks[0].opening_ms, last = 0;

    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        if (plan->launches[launch].ranks[rank].opening_ms < first)
            first = plan->launches[launch].ranks[rank].opening_ms;
        if (plan->launches[launch].ranks[rank].opened_ms > last)
            last = plan->launches[launch].ranks[rank].opened_ms;
    }
    return last - first;
}

static int bench_measure(struct bench *b, struct bench_figures *ret_figures)
{
    double agreement[BENCH_ROUNDS_MAX], save[BENCH_ROUNDS_MAX], gone[BENCH_ROUNDS_MAX],
        restart[BENCH_ROUNDS_MAX];
    const int64_t rounds = b->rounds;
    struct muster_error err = {0};
    muster_rows_t *rows = NULL;

    if (muster_client_open(b->broker, BROKER_TIMEOUT_MS, &b->tool->client, &err) != MUSTER_OK ||
        muster_client_rounds(b->tool->client, BENCH_JOB, 0, &rows, &err) != MUSTER_OK)
        return tool_fail_status(err.status, &err);
    if (muster_rows_count(rows) != (size_t)rounds) {
        muster_rows_destroy(&rows);
        return tool_fail(TOOL_NO, "not each notice of this run led to one save; this machine or "
                                  "disk is too busy to be measured");
    }
    for (int64_t i = 0; i < rounds; i++) {
        const struct muster_round_row *row = &muster_rows_rounds(rows)[i];

        agreement[i] = (double)(row->decided_unix_ms - row->opened_unix_ms);
        save[i] = (double)(row->ended_unix_ms - row->decided_unix_ms);
        gone[i] = bench_gone_ms(b->plan, i);
        restart[i] = bench_restart_ms(b->plan, i + 1);
    }
    muster_rows_destroy(&rows);
    *ret_figures = (struct bench_figures){.agreement = bench_median(agreement, rounds),
                                          .save = bench_median(save, rounds),
                                          .gone = bench_median(gone, rounds),
                                          .restart = bench_median(restart, rounds),
                                          .plain_write = bench_median(b->plain_write_ms, rounds),
                                          .plain_read = bench_median(b->plain_read_ms, rounds)};
    return TOOL_DONE;
}

static int bench_plain(struct bench *b)
{
    for (int64_t i = 0; i < b->rounds; i++) {
        b->plain_write_ms[i] = bench_plain_write(b->dir, b->ranks, b->size_bytes);
        if (b->plain_write_ms[i] >= 0)
            b->plain_read_ms[i] = bench_plain_read(b->dir, b->ranks, b->size_bytes);
        if (b->plain_write_ms[i] < 0 || b->plain_read_ms[i] < 0)
            return tool_fail(TOOL_NO, "cannot write and read %s: %s", b->dir, strerror(errno));
    }
    return TOOL_DONE;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void bench_print(const struct bench *b, const struct bench_figures *f)
{
    const double bytes = (double)(b->ranks * b->size_bytes);
    FILE *out = b->tool->out;
    double spare_ms = GRACE_MS - (f->gone - f->save);

    fprintf(out, "%" PRId64 " rank%s of %s each, in %s; %s\n\n", b->ranks, b->ranks == 1 ? "" : "s",
            render_bytes(b->size_bytes).text, b->place, b->rounds == 1 ? "one round" : "medians");
    fprintf(out, "  %-40s %8.0f ms\n", "all ranks agree on a step", f->agreement);
    fprintf(out, "  %-40s %8.0f ms  %.0f MB/s\n", "they save, and the checkpoint is committed",
            f->save, bytes / 1e3 / (f->save > 0 ? f->save : 1));
    fprintf(out, "  %-40s %8.0f ms  %.0f MB/s\n", "  plain writes of as many bytes, synced",
            f->plain_write, bytes / 1e3 / f->plain_write);
    fprintf(out, "  %-40s %8.0f ms\n", "from the notice until the last rank left", f->gone);
    fprintf(out, "  %-40s %8.0f ms  %.0f MB/s\n", "the next launch joins and restores", f->restart,
            bytes / 1e3 / f->restart);
    fprintf(out, "  %-40s %8.0f ms  %.0f MB/s\n\n", "  plain reads of as many bytes", f->plain_read,
            bytes / 1e3 / f->plain_read);
    if (spare_ms > 0 && f->save > 0)
        fprintf(out, "At this speed, a grace period of %.0f s is enough for %s a rank.\n",
                GRACE_MS / 1e3,
                render_bytes((int64_t)((double)b->size_bytes * spare_ms / f->save)).text);
}

static int bench_print_json(const struct bench *b, const struct bench_figures *f)
{
    json_t *document = render_document();

    json_object_set_new(document, "ranks", json_integer(b->ranks));
    json_object_set_new(document, "size_bytes", json_integer(b->size_bytes));
    json_object_set_new(document, "rounds", json_integer(b->rounds));
    json_object_set_new(document, "agreement_ms", json_real(f->agreement));
    json_object_set_new(document, "save_ms", json_real(f->save));
    json_object_set_new(document, "plain_write_ms", json_real(f->plain_write));
    json_object_set_new(document, "left_ms", json_real(f->gone));
    json_object_set_new(document, "restart_ms", json_real(f->restart));
    json_object_set_new(document, "plain_read_ms", json_real(f->plain_read));
    return render_json(document, b->tool->out, false)
               ? TOOL_DONE
               : tool_fail(TOOL_NO, "no memory for the answer");
}

/* The picture comes last: the figures are told even if it cannot be drawn. */
static int bench_answer(const struct bench *b, const struct bench_figures *figures)
{
    const char *plot = b->tool->values[OPTION_PLOT];
    int code = TOOL_DONE;

    if (tool_json(b->tool))
        code = bench_print_json(b, figures);
    else
        bench_print(b, figures);
    if (code == TOOL_DONE && plot != NULL)
        code = bench_plot_draw(plot, b->script_path, b->log_path, b->plan, figures);
    if (code != TOOL_DONE)
        bench_tell_log(b);
    return code;
}

int cmd_bench(struct tool *tool)
{
    const char *plan = getenv(BENCH_PLAN_ENV);
    struct bench_figures figures = {0};
    struct bench *b;
    int code;

    if (plan != NULL)
        return bench_rank(plan);
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return tool_fail(TOOL_NO, "no memory");
    b->tool = tool;
    signal(SIGINT, SIG_IGN); /* the ranks end, and then this cleans up */
    code = bench_read_options(b);
    trial_clear_environment();
    if (code == TOOL_DONE)
        code = bench_make_places(b);
    if (code == TOOL_DONE)
        code = bench_plain(b);
    if (code == TOOL_DONE)
        code = bench_start_broker(b);
    if (code == TOOL_DONE) {
        code = bench_run_job(b);
        if (code != TOOL_DONE)
            bench_tell_log(b);
    }
    if (code == TOOL_DONE)
        code = bench_measure(b, &figures);
    if (code == TOOL_DONE)
        code = bench_answer(b, &figures);
    bench_clear(b);
    free(b);
    return code;
}
