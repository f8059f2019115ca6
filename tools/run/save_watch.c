/* save_watch - see save_watch.h. */
#include "tools/run/save_watch.h"

#include "client/query/query_link.h"
#include "node/clock.h"
#include "node/shard/fs.h"
#include "tools/tool.h"

#include <muster/client.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_IDLE_MS 1000 /* between questions; a save that is shorter is not told */
#define WATCH_SAVE_MS 500
#define WATCH_AWAY_MS 5000 /* when no broker answers */
#define WATCH_ASK_MS 2000
#define WATCH_DEPTH 4
#define WATCH_FILES 20000
#define WATCH_STOP_MS 200
#define WATCH_BAR_MS 2000   /* a shorter save has none */
#define WATCH_LINE_MS 10000 /* in a log: before the first, and between two */

/* --- the small process ------------------------------------------------------------------------ */

struct watcher {
    int fd;
    const char *job;
    muster_client_t *client;
    struct save_news news;
    int64_t begun_ms;
};

/* The bytes on the disk. A file's length may be set before its bytes are written. */
static int64_t save_watch_bytes_in(const char *directory, int depth, int *files)
{
    DIR *dir = fs_opendir(directory);
    const struct dirent *entry;
    int64_t sum = 0;

    if (dir == NULL)
        return 0;
    while (*files < WATCH_FILES && (entry = fs_readdir(dir)) != NULL) {
        char path[FS_PATH_MAX];
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fs_path(path, NULL, "%s/%s", directory, entry->d_name) != MUSTER_OK ||
            lstat(path, &st) != 0)
            continue;
        (*files)++;
        if (S_ISDIR(st.st_mode) && depth < WATCH_DEPTH)
            sum += save_watch_bytes_in(path, depth + 1, files);
        else if (S_ISREG(st.st_mode))
            sum += st.st_size < st.st_blocks * 512 ? st.st_size : st.st_blocks * 512;
    }
    closedir(dir);
    return sum;
}

static int64_t save_watch_bytes_of_newest(const struct watcher *w)
{
    muster_rows_t *rows = NULL;
    int64_t bytes = 0;

    if (muster_client_latest(w->client, w->job, &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) > 0)
        bytes = muster_rows_checkpoints(rows)[0].bytes;
    muster_rows_destroy(&rows);
    return bytes;
}

static void save_watch_watcher_measure(struct watcher *w)
{
    muster_rows_t *rows = NULL;
    int files = 0;

    if (muster_client_checkpoint(w->client, w->job, w->news.round, &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) > 0 && muster_rows_checkpoints(rows)[0].path[0] == '/')
        w->news.bytes = save_watch_bytes_in(muster_rows_checkpoints(rows)[0].path, 0, &files);
    muster_rows_destroy(&rows);
}

static void save_watch_watcher_begin(struct watcher *w, const struct muster_round_row *round)
{
    w->news = (struct save_news){.writes = true, .round = round->round};
    w->begun_ms = clock_ms(CLOCK_MONOTONIC);
    w->news.of = save_watch_bytes_of_newest(w);
}

static bool save_watch_is_under_way(const struct muster_round_row *round)
{
    return strcmp(round->state, "decided") == 0 || strcmp(round->state, "writing") == 0;
}

static void save_watch_watcher_take(struct watcher *w, const struct muster_round_row *round)
{
    const bool begins = save_watch_is_under_way(round) && w->news.round != round->round;

    if (!save_watch_is_under_way(round) && !w->news.writes)
        return;
    if (begins)
        save_watch_watcher_begin(w, round);
    w->news.writes = save_watch_is_under_way(round);
    w->news.passed_ms = clock_ms(CLOCK_MONOTONIC) - w->begun_ms;
    if (round->round == w->news.round) {
        w->news.step = round->step;
        w->news.saved = round->saved;
        w->news.writers = round->writers;
    }
    snprintf(w->news.state, sizeof w->news.state, "%s",
             round->round == w->news.round ? round->state : "over");
    if (w->news.writes)
        save_watch_watcher_measure(w);
    if (write(w->fd, &w->news, sizeof w->news) < 0)
        _exit(0); /* nobody is left to read it */
}

static bool save_watch_watcher_ask(struct watcher *w)
{
    muster_rows_t *rows = NULL;
    int64_t offset;
    bool good = muster_client_round(w->client, w->job, 0, &rows, NULL) == MUSTER_OK;

    if (good && muster_rows_count(rows) > 0 && save_watch_is_under_way(muster_rows_rounds(rows)) &&
        !w->news.writes) { /* once a save: rows tell steps as the program counts them */
        muster_rows_destroy(&rows);
        good = client_count_as(w->client, w->job, &offset, NULL) == MUSTER_OK &&
               muster_client_round(w->client, w->job, 0, &rows, NULL) == MUSTER_OK;
    }
    if (good && muster_rows_count(rows) > 0)
        save_watch_watcher_take(w, muster_rows_rounds(rows));
    muster_rows_destroy(&rows);
    return good;
}

static void save_watch_watcher_main(int fd, const char *broker, const char *job, pid_t parent)
    __attribute__((noreturn));

static void save_watch_watcher_main(int fd, const char *broker, const char *job, pid_t parent)
{
    struct watcher w = {.fd = fd, .job = job};
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "muster-saves");
    if (getppid() != parent)
        _exit(0);
    for (int std = STDIN_FILENO; null >= 0 && std <= STDERR_FILENO; std++)
        dup2(null, std); /* a reader of our output must see its end when the supervisor ends */
    if (muster_client_open(broker, WATCH_ASK_MS, &w.client, NULL) != MUSTER_OK)
        _exit(0);
    for (;;)
        poll(NULL, 0,
             !save_watch_watcher_ask(&w) ? WATCH_AWAY_MS
             : w.news.writes             ? WATCH_SAVE_MS
                                         : WATCH_IDLE_MS);
}

/* --- `muster run` ----------------------------------------------------------------------------- */

void save_watch_start(struct save_watch *ret, const char *broker, const char *job)
{
    static char address[BROKERS_TEXT_MAX + 1];
    pid_t parent = getpid();
    int fds[2];

    *ret = (struct save_watch){.fd = -1};
    broker = tool_broker_of(broker, address);
    if (broker == NULL || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    ret->pid = fork();
    if (ret->pid == 0) {
        close(fds[0]);
        save_watch_watcher_main(fds[1], broker, job, parent);
    }
    close(fds[1]);
    ret->fd = fds[0];
    if (ret->pid < 0)
        save_watch_stop(ret);
}

/* The small process may hang in a file system that does not answer: then it is left to the kernel.
 * If it ended by itself it may have been reaped, and its number may be another process's. */
void save_watch_stop(struct save_watch *watch)
{
    int64_t end_ms = clock_ms(CLOCK_MONOTONIC) + WATCH_STOP_MS;

    if (watch->pid == 0)
        return;
    while (watch->pid > 0 && waitpid(watch->pid, NULL, WNOHANG) == 0 &&
           clock_ms(CLOCK_MONOTONIC) < end_ms) {
        kill(watch->pid, SIGKILL);
        poll(NULL, 0, 1);
    }
    if (watch->fd >= 0)
        close(watch->fd);
    *watch = (struct save_watch){.fd = -1};
}

bool save_watch_read(struct save_watch *watch)
{
    struct save_news news;
    ssize_t size = 0;
    bool any = false;

    while (watch->fd >= 0 && (size = read(watch->fd, &news, sizeof news)) == (ssize_t)sizeof news) {
        watch->told = watch->told && news.round == watch->news.round;
        watch->news = news;
        any = true;
    }
    if (watch->fd >= 0 && size == 0) { /* it has ended: nothing more comes */
        close(watch->fd);
        watch->fd = -1;
    }
    return any;
}

bool save_watch_due(struct save_watch *watch, bool bar)
{
    const char *first = getenv("MUSTER_TEST_PROGRESS_MS"); /* so that tests need not last long */
    int64_t every_ms = bar ? WATCH_BAR_MS : WATCH_LINE_MS;
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);

    if (first != NULL && first[0] != '\0')
        every_ms = strtoll(first, NULL, 10);
    if (!watch->news.writes || watch->news.passed_ms < every_ms || now_ms < watch->next_ms)
        return false;
    watch->next_ms = bar ? now_ms : now_ms + every_ms;
    watch->told = true;
    return true;
}
