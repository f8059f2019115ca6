/* writer - see writer.h. */
#include "node/agent/writer.h"

#include "node/shard/dir_delete.h"
#include "node/thread.h"
#include "schema/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct job *next;
    enum { WRITE_MANIFEST, DISCARD_ROUND, CLEAR_LEFT, DELETE_CHECKPOINT } what;
    uint64_t generation;
    uint64_t round; /* or checkpoint */
    uint64_t nonce;
    int64_t step;
    size_t size;
    char bytes[]; /* a manifest; or path and trash, each with its NUL */
};

struct writer {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool started;
    bool stop, deletes_no_more;
    bool working;
    struct job *first, *last;
    struct job *deletions; /* the newest first: their order does not matter */
    writer_done_fn *done;
    void *arg;
    char *root, *job;
    struct dir_names names;
};

/* Manifests, and rounds that were aborted: in their order. Under the mutex. */
static struct job *writer_take_first(struct writer *writer)
{
    struct job *job = writer->first;

    if (job == NULL)
        return NULL;
    writer->first = job->next;
    if (writer->first == NULL)
        writer->last = NULL;
    return job;
}

static void writer_work(struct writer *writer, const struct job *job);

/* A deletion of many files takes long, and other work must not wait for it. */
static void writer_work_between(void *arg)
{
    struct writer *writer = arg;
    struct job *job;

    do {
        pthread_mutex_lock(&writer->mutex);
        job = writer_take_first(writer);
        pthread_mutex_unlock(&writer->mutex);
        if (job != NULL)
            writer_work(writer, job);
        free(job);
    } while (job != NULL);
}

static void writer_work(struct writer *writer, const struct job *job)
{
    char path[FS_PATH_MAX];
    struct muster_error err = {.status = MUSTER_OK};
    struct writer_result result = {.checkpoint = job->round, .path = path, .text = err.text};

    if (job->what == DELETE_CHECKPOINT) {
        result.deleted = true;
        result.status = dir_delete_checkpoint(
            &(struct dir_deletion){.root = writer->root,
                                   .job = writer->job,
                                   .generation = job->generation,
                                   .round = job->round,
                                   .step = job->step,
                                   .path = job->bytes,
                                   .trash = job->bytes + strlen(job->bytes) + 1,
                                   .between = writer_work_between,
                                   .arg = writer},
            &err);
        path[0] = '\0';
        writer->done(&result, writer->arg);
        return;
    }
    if (job->what !=
        WRITE_MANIFEST) { /* what cannot be removed stays: it is only room on the disk */
        dir_remove_round(writer->root, writer->job, job->generation, job->round, job->nonce, NULL);
        return;
    }
    result.status = dir_commit_as(writer->root, &writer->names, job->bytes, job->size, path, &err);
    writer->done(&result, writer->arg);
}

static struct job *writer_take(struct writer *writer)
{
    struct job *job = writer_take_first(writer);

    if (job != NULL)
        return job;
    job = writer->stop || writer->deletes_no_more ? NULL : writer->deletions;
    if (job != NULL)
        writer->deletions = job->next;
    return job;
}

static void *writer_run(void *arg)
{
    struct writer *writer = arg;

    pthread_mutex_lock(&writer->mutex);
    while (!writer->stop || writer->first != NULL) {
        struct job *job = writer_take(writer);

        if (job == NULL) {
            pthread_cond_wait(&writer->changed, &writer->mutex);
            continue;
        }
        writer->working = true;
        pthread_mutex_unlock(&writer->mutex);
        writer_work(writer, job);
        free(job);
        pthread_mutex_lock(&writer->mutex);
        writer->working = false;
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

enum muster_status writer_create(const char *root, const char *job, writer_done_fn *done, void *arg,
                                 struct writer **ret_writer, struct muster_error *err)
{
    struct writer *writer = calloc(1, sizeof *writer);

    if (writer != NULL) {
        writer->root = strdup(root);
        writer->job = strdup(job);
    }
    if (writer == NULL || writer->root == NULL || writer->job == NULL) {
        if (writer != NULL) {
            free(writer->root);
            free(writer->job);
        }
        free(writer);
        return error_set(err, MUSTER_E_NOMEM, "no memory for the manifest's writer; free some");
    }
    writer->done = done;
    writer->arg = arg;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    *ret_writer = writer;
    return MUSTER_OK;
}

void writer_set_names(struct writer *writer, const struct dir_names *names)
{
    writer->names = *names;
}

void writer_end_deletions(struct writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->deletes_no_more = true;
    pthread_mutex_unlock(&writer->mutex);
}

bool writer_destroy(struct writer **writer, int64_t limit_ms)
{
    struct writer *w = *writer;

    if (w == NULL)
        return true;
    *writer = NULL;
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    if (w->started && !thread_join(w->thread, limit_ms))
        return false;
    while (w->first != NULL) { /* a thread could never be started */
        struct job *next = w->first->next;

        free(w->first);
        w->first = next;
    }
    while (w->deletions != NULL) {
        struct job *next = w->deletions->next;

        free(w->deletions);
        w->deletions = next;
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w->root);
    free(w->job);
    free(w);
    return true;
}

/* Under the mutex. */
static bool writer_start(struct writer *writer)
{
    if (!writer->started)
        writer->started = thread_start(&writer->thread, writer_run, writer) == 0;
    return writer->started;
}

static enum muster_status writer_push(struct writer *writer, struct job *job,
                                      struct muster_error *err)
{
    pthread_mutex_lock(&writer->mutex);
    if (!writer_start(writer)) {
        pthread_mutex_unlock(&writer->mutex);
        free(job);
        return error_set(err, MUSTER_E_BUSY,
                         "no thread could be started to write the manifest; raise the limit of "
                         "processes (ulimit -u)");
    }
    if (job->what == DELETE_CHECKPOINT || job->what == CLEAR_LEFT) {
        job->next = writer->deletions;
        writer->deletions = job;
    } else {
        if (writer->last != NULL)
            writer->last->next = job;
        else
            writer->first = job;
        writer->last = job;
    }
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    return MUSTER_OK;
}

static struct job *writer_new_job(const void *bytes, size_t size, struct muster_error *err)
{
    struct job *job = calloc(1, sizeof *job + size + 1);

    if (job == NULL) {
        error_set(err, MUSTER_E_NOMEM, "no memory for a manifest of %zu bytes; free some", size);
        return NULL;
    }
    job->size = size;
    if (size > 0)
        memcpy(job->bytes, bytes, size);
    return job;
}

enum muster_status writer_manifest(struct writer *writer, uint64_t checkpoint, const void *bytes,
                                   size_t size, struct muster_error *err)
{
    struct job *job = writer_new_job(bytes, size, err);

    if (job == NULL)
        return MUSTER_E_NOMEM;
    job->round = checkpoint;
    return writer_push(writer, job, err);
}

static enum muster_status writer_remove_round(struct writer *writer, const struct job *what,
                                              struct muster_error *err)
{
    struct job *job = writer_new_job(NULL, 0, err);

    if (job == NULL)
        return MUSTER_E_NOMEM;
    *job = *what;
    return writer_push(writer, job, err);
}

enum muster_status writer_discard(struct writer *writer, uint64_t generation, uint64_t round,
                                  uint64_t nonce, struct muster_error *err)
{
    const struct job job = {
        .what = DISCARD_ROUND, .generation = generation, .round = round, .nonce = nonce};

    return writer_remove_round(writer, &job, err);
}

enum muster_status writer_clear_left(struct writer *writer, uint64_t generation, uint64_t round,
                                     struct muster_error *err)
{
    const struct job job = {.what = CLEAR_LEFT, .generation = generation, .round = round};

    return writer_remove_round(writer, &job, err);
}

enum muster_status writer_delete(struct writer *writer, uint64_t generation, uint64_t round,
                                 int64_t step, const char *path, const char *trash,
                                 struct muster_error *err)
{
    size_t size = strlen(path) + 1;
    struct job *job = calloc(1, sizeof *job + size + strlen(trash) + 1);

    if (job == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a deletion; free some");
    memcpy(job->bytes, path, size);
    memcpy(job->bytes + size, trash, strlen(trash) + 1);
    job->what = DELETE_CHECKPOINT;
    job->generation = generation;
    job->round = round;
    job->step = step;
    return writer_push(writer, job, err);
}

bool writer_is_busy(struct writer *writer)
{
    bool busy;

    pthread_mutex_lock(&writer->mutex);
    busy = writer->working || writer->first != NULL;
    pthread_mutex_unlock(&writer->mutex);
    return busy;
}
