/* store_manifest - the manifest of a committed checkpoint, rendered from its rows.
 *
 * A checkpoint may have 131,072 files. They are read and written in slices, one for each question
 * and one for each pass of the loop, so that nobody else waits for them. Rows of a committed
 * checkpoint do not change, so slices of different times belong together, and what was rendered
 * once stays true. */
#include "broker/store/store_internal.h"

#include "schema/error.h"
#include "schema/manifest/manifest_text.h"
#include "schema/room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANIFESTS_KEPT 4 /* so many jobs may fetch large ones side by side */

struct kept {
    char job[JOB_NAME_MAX + 1];
    uint64_t round; /* 0 = none */
    uint64_t generation;
    int64_t step;
    char *text; /* NULL: it cannot be rendered, and why */
    size_t size;
    struct muster_error why;
    uint64_t used; /* when, as a count */
};

struct store_manifests {
    struct kept kept[MANIFESTS_KEPT];
    uint64_t uses;
    struct { /* under way */
        char job[JOB_NAME_MAX + 1];
        uint64_t round; /* 0 = none */
        uint64_t generation;
        int64_t step;
        struct manifest_text *text;
        struct manifest_shard *shards;
        size_t shard_count, shard_capacity, at;
        int64_t rank; /* of the last file that was read, and its path */
        char path[FILE_PATH_MAX + 1];
    } now;
};

static const char *store_manifest_text_of(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);

    return text == NULL ? "" : (const char *)text;
}

static enum muster_status store_manifest_no_memory(const char *job, struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory for the manifest of job %s", job);
}

/* --- rows ------------------------------------------------------------------------------------- */

static enum muster_status manifest_prepare_of_round(struct store *store, const char *sql,
                                                    const char *job, uint64_t round,
                                                    sqlite3_stmt **ret_statement,
                                                    struct muster_error *err)
{
    enum muster_status status = store_prepare(store, sql, ret_statement, err);

    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_text(*ret_statement, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(*ret_statement, 2, (int64_t)round);
    return MUSTER_OK;
}

static enum muster_status store_manifest_read_checkpoint(struct store *store, const char *job,
                                                         uint64_t round,
                                                         struct manifest *ret_manifest,
                                                         struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    enum muster_status status = manifest_prepare_of_round(
        store,
        "SELECT generation, step, layout, world_size, epoch, step_in_epoch, data_position, "
        "committed_unix_ms, cause, metrics, COALESCE((SELECT custom FROM checkpoint_custom u "
        "WHERE u.job = ?1 AND u.round = ?2), ''), (SELECT resume_step FROM generation g "
        "WHERE g.job = ?1 AND g.generation = checkpoint.generation AND g.opened_unix_ms > 0), "
        "(SELECT value FROM meta WHERE key = 'database') "
        "FROM checkpoint WHERE job = ?1 AND round = ?2 AND state IN ('committed', 'superseded')",
        job, round, &statement, err);
    int result;

    if (status != MUSTER_OK)
        return status;
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        ret_manifest->generation = (uint64_t)sqlite3_column_int64(statement, 0);
        ret_manifest->step = sqlite3_column_int64(statement, 1);
        ret_manifest->layout =
            strcmp(store_manifest_text_of(statement, 2), wire_layout_name(LAYOUT_SHARDED)) == 0
                ? LAYOUT_SHARDED
                : LAYOUT_REPLICATED;
        ret_manifest->world_size = (uint64_t)sqlite3_column_int64(statement, 3);
        ret_manifest->epoch = sqlite3_column_int64(statement, 4);
        ret_manifest->step_in_epoch = sqlite3_column_int64(statement, 5);
        ret_manifest->data_position = sqlite3_column_int64(statement, 6);
        ret_manifest->total_run_calls = ret_manifest->step;
        ret_manifest->created_unix_ms = sqlite3_column_int64(statement, 7);
        ret_manifest->cause = arena_strdup(&store->arena, store_manifest_text_of(statement, 8));
        ret_manifest->metrics = arena_strdup(&store->arena, store_manifest_text_of(statement, 9));
        ret_manifest->custom = arena_strdup(&store->arena, store_manifest_text_of(statement, 10));
        ret_manifest->resumed_step = sqlite3_column_int64(statement, 11);
        ret_manifest->resumed_known = sqlite3_column_type(statement, 11) == SQLITE_INTEGER &&
                                      ret_manifest->resumed_step <= ret_manifest->step;
        ret_manifest->database = strtoull(store_manifest_text_of(statement, 12), NULL, 16);
        ret_manifest->job = job;
        ret_manifest->round = round;
    } else if (result == SQLITE_DONE) {
        status = error_set(err, MUSTER_E_NOT_FOUND,
                           "job %s has no committed checkpoint of round %" PRIu64, job, round);
    } else {
        status = store_failed(store, result, "read a checkpoint", err);
    }
    sqlite3_finalize(statement);
    return status;
}

static enum muster_status manifest_read_shards(struct store *store, struct muster_error *err)
{
    struct store_manifests *m = store->manifests;
    sqlite3_stmt *statement = NULL;
    int result = SQLITE_DONE;
    enum muster_status status = manifest_prepare_of_round(
        store, "SELECT rank, incarnation FROM shard WHERE job = ?1 AND round = ?2 ORDER BY rank",
        m->now.job, m->now.round, &statement, err);

    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        struct manifest_shard *shards = room_for_one(m->now.shards, m->now.shard_count,
                                                     &m->now.shard_capacity, 16, sizeof *shards);

        if (shards == NULL) {
            status = store_manifest_no_memory(m->now.job, err);
            break;
        }
        m->now.shards = shards;
        shards[m->now.shard_count++] =
            (struct manifest_shard){.rank = (uint64_t)sqlite3_column_int64(statement, 0),
                                    .incarnation = (uint64_t)sqlite3_column_int64(statement, 1)};
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the shards", err);
    sqlite3_finalize(statement);
    return status;
}

/* Every shard up to that rank, also those that have no file. */
static enum muster_status manifest_open_shards(struct store_manifests *m, uint64_t rank,
                                               struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    while (status == MUSTER_OK && m->now.at < m->now.shard_count &&
           m->now.shards[m->now.at].rank <= rank) {
        status = manifest_text_shard(m->now.text, m->now.shards[m->now.at].rank,
                                     m->now.shards[m->now.at].incarnation, err);
        m->now.at++;
    }
    return status;
}

/* Files of a rank whose shard did not come are left out. */
static enum muster_status store_manifest_add_file(struct store_manifests *m,
                                                  sqlite3_stmt *statement, struct muster_error *err)
{
    const struct wire_file file = {.path = store_manifest_text_of(statement, 1),
                                   .bytes = (uint64_t)sqlite3_column_int64(statement, 2),
                                   .checksum = store_manifest_text_of(statement, 3)};
    const uint64_t rank = (uint64_t)sqlite3_column_int64(statement, 0);
    enum muster_status status = manifest_open_shards(m, rank, err);

    m->now.rank = (int64_t)rank;
    snprintf(m->now.path, sizeof m->now.path, "%s", file.path);
    if (status != MUSTER_OK || m->now.at == 0 || m->now.shards[m->now.at - 1].rank != rank)
        return status;
    return manifest_text_file(m->now.text, &file, err);
}

/* *ret_last: those were the last. */
static enum muster_status store_manifest_read_files(struct store *store, bool *ret_last,
                                                    struct muster_error *err)
{
    struct store_manifests *m = store->manifests;
    sqlite3_stmt *statement = NULL;
    int result = SQLITE_DONE;
    int count = 0;
    enum muster_status status = manifest_prepare_of_round(
        store,
        "SELECT rank, path, bytes, checksum FROM shard_file WHERE job = ?1 AND "
        "round = ?2 AND (rank, path) > (?3, ?4) ORDER BY rank, path LIMIT ?5",
        m->now.job, m->now.round, &statement, err);

    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_int64(statement, 3, m->now.rank);
    sqlite3_bind_text(statement, 4, m->now.path, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(statement, 5, STORE_MANIFEST_SLICE);
    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        status = store_manifest_add_file(m, statement, err);
        count++;
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the shards", err);
    sqlite3_finalize(statement);
    *ret_last = count < STORE_MANIFEST_SLICE;
    return status;
}

/* --- one after another ------------------------------------------------------------------------ */

static void store_manifest_drop(struct store_manifests *m)
{
    manifest_text_destroy(&m->now.text);
    free(m->now.shards);
    memset(&m->now, 0, sizeof m->now);
}

static enum muster_status store_manifest_begin(struct store *store, const char *job, uint64_t round,
                                               struct muster_error *err)
{
    struct store_manifests *m = store->manifests;
    struct manifest head = {.cause = ""};
    enum muster_status status;

    arena_reset(&store->arena);
    status = store_manifest_read_checkpoint(store, job, round, &head, err);
    if (status == MUSTER_OK)
        status = manifest_text_begin(&head, &m->now.text, err);
    if (status == MUSTER_OK && store->sign != NULL)
        status = manifest_text_sign(m->now.text, store->sign, err);
    arena_reset(&store->arena);
    if (status != MUSTER_OK)
        return status;
    snprintf(m->now.job, sizeof m->now.job, "%s", job);
    m->now.round = round;
    m->now.generation = head.generation;
    m->now.step = head.step;
    m->now.rank = -1;
    return manifest_read_shards(store, err);
}

/* In the place of the one that was asked for longest ago. */
static void store_manifest_keep(struct store_manifests *m, char *text, size_t size,
                                const struct muster_error *why)
{
    struct kept *kept = &m->kept[0];

    for (size_t i = 1; i < MANIFESTS_KEPT; i++)
        if (m->kept[i].used < kept->used)
            kept = &m->kept[i];
    free(kept->text);
    *kept = (struct kept){.round = m->now.round,
                          .generation = m->now.generation,
                          .step = m->now.step,
                          .text = text,
                          .size = size,
                          .used = ++m->uses};
    snprintf(kept->job, sizeof kept->job, "%s", m->now.job);
    if (why != NULL)
        kept->why = *why;
}

/* The next slice. A manifest that cannot be rendered is kept as that: nobody tries it again and
 * again. */
static enum muster_status manifest_go_on(struct store *store, struct muster_error *err)
{
    struct store_manifests *m = store->manifests;
    struct muster_error why = {.status = MUSTER_OK};
    bool last = false;
    char *text = NULL;
    size_t size = 0;
    enum muster_status status = store_manifest_read_files(store, &last, &why);

    if (status == MUSTER_OK && !last)
        return MUSTER_OK;
    if (status == MUSTER_OK)
        status = manifest_open_shards(m, UINT64_MAX, &why);
    if (status == MUSTER_OK)
        status = manifest_text_end(m->now.text, &text, &size, &why);
    if (status == MUSTER_OK)
        store_manifest_keep(m, text, size, NULL);
    else if (status == MUSTER_E_ARGUMENT)
        store_manifest_keep(m, NULL, 0, &why);
    store_manifest_drop(m);
    return error_pass(err, status, &why);
}

static struct kept *store_manifest_find(struct store_manifests *m, const char *job, uint64_t round)
{
    for (size_t i = 0; i < MANIFESTS_KEPT; i++)
        if (m->kept[i].round == round && strcmp(m->kept[i].job, job) == 0)
            return &m->kept[i];
    return NULL;
}

/* Makes it as far as one slice goes. *ret_kept: it is there. */
static enum muster_status store_manifest_make(struct store *store, const char *job, uint64_t round,
                                              struct kept **ret_kept, struct muster_error *err)
{
    struct store_manifests *m = store->manifests;
    enum muster_status status = MUSTER_OK;

    if (m->now.round == 0) {
        status = store_manifest_begin(store, job, round, err);
        if (status != MUSTER_OK)
            store_manifest_drop(m);
    }
    if (status == MUSTER_OK)
        status = manifest_go_on(store, err);
    *ret_kept = store_manifest_find(m, job, round);
    if (status == MUSTER_OK && *ret_kept == NULL)
        return error_set(err, MUSTER_E_BUSY,
                         "the manifest of job %s, round %" PRIu64
                         " is being made from many rows; ask again",
                         job, round);
    return status;
}

enum muster_status store_manifest(struct store *store, const char *job, uint64_t round,
                                  uint64_t offset, struct store_manifest *ret_manifest,
                                  struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    struct kept *kept;
    size_t left;

    if (store->manifests == NULL)
        store->manifests = calloc(1, sizeof *store->manifests);
    if (store->manifests == NULL)
        return store_manifest_no_memory(job, err);
    kept = round != 0 ? store_manifest_find(store->manifests, job, round) : NULL;
    if (kept == NULL)
        status = store_manifest_make(store, job, round, &kept, err);
    if (status != MUSTER_OK)
        return status;
    kept->used = ++store->manifests->uses;
    if (kept->text == NULL)
        return error_pass(err, kept->why.status, &kept->why);
    if (offset > kept->size)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the manifest of job %s, round %" PRIu64 " has %zu bytes, not %" PRIu64,
                         job, round, kept->size, offset);
    left = kept->size - (size_t)offset;
    *ret_manifest = (struct store_manifest){
        .generation = kept->generation,
        .step = kept->step,
        .offset = offset,
        .total = kept->size,
        .data = (const uint8_t *)kept->text + offset,
        .size = left < MANIFEST_CHUNK_MAX ? left : MANIFEST_CHUNK_MAX,
    };
    return MUSTER_OK;
}

bool store_manifest_is_due(const struct store *store)
{
    return store->manifests != NULL && store->manifests->now.round != 0;
}

enum muster_status store_manifest_work(struct store *store, struct muster_error *err)
{
    return store_manifest_is_due(store) ? manifest_go_on(store, err) : MUSTER_OK;
}

void store_manifests_free(struct store *store)
{
    if (store->manifests == NULL)
        return;
    store_manifest_drop(store->manifests);
    for (size_t i = 0; i < MANIFESTS_KEPT; i++)
        free(store->manifests->kept[i].text);
    free(store->manifests);
    store->manifests = NULL;
}
