/* sim_store - broker/store as the simulated broker's disk, beside the rows in memory that the checker
 * reads. A crash is the copy of the files as they are: what was not committed is not in it. What the
 * store hands out at a start is compared with the rows in memory. */
#include "tests/sim/sim_world.h"

#include "broker/store_internal.h" /* boot_id: machines reboot here */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_SIZE 2048

struct sim_store {
    char dir[128];
    unsigned number; /* of the files in use */
    unsigned last;   /* used for any */
    unsigned copy;   /* of an operator's copy, 0 = none */
    bool put_back;
    struct store *store;
};

struct texts {
    char **items;
    size_t count;
    struct core *core; /* NULL: rows are only told */
};

static const char *file_name(const struct sim_store *s, unsigned number, const char *suffix,
                             char *name, size_t size)
{
    snprintf(name, size, "%s/%u.db%s", s->dir, number, suffix);
    return name;
}

static void copy_file(const struct sim_store *s, unsigned number, const char *suffix)
{
    char name[160], buffer[65536];
    FILE *from = fopen(file_name(s, s->number, suffix, name, sizeof name), "rb");
    FILE *to = fopen(file_name(s, number, suffix, name, sizeof name), "wb");
    size_t size;

    while (from != NULL && to != NULL && (size = fread(buffer, 1, sizeof buffer, from)) > 0)
        fwrite(buffer, 1, size, to);
    if (from != NULL)
        fclose(from);
    if (to != NULL)
        fclose(to);
}

static void remove_files(const struct sim_store *s, unsigned number)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    char name[160];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        unlink(file_name(s, number, suffixes[i], name, sizeof name));
}

static void open_store(struct sim *sim)
{
    struct sim_store *s = sim->store;
    char name[160];
    struct muster_error err = {0};
    struct store_options options = {.journal_events_max = sim->journal_max};

    if (store_open(file_name(s, s->number, "", name, sizeof name), &options, &s->store, &err) !=
        MUSTER_OK)
        sim_broken(sim, "store", "it does not open: %s", err.text);
    else
        snprintf(s->store->boot_id, sizeof s->store->boot_id, "boot-%" PRIu64, sim->broker.boot);
}

void sim_store_open(struct sim *sim)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    if (!sim->options.sqlite)
        return;
    sim->store = calloc(1, sizeof *sim->store);
    snprintf(sim->store->dir, sizeof sim->store->dir, "%s/muster-sim-XXXXXX", root);
    if (mkdtemp(sim->store->dir) == NULL)
        sim_broken(sim, "store", "no directory for the database under %s", root);
    else
        open_store(sim);
}

void sim_store_apply(struct sim *sim, const struct actions *batch)
{
    struct muster_error err = {0};

    if (sim->store != NULL && sim->store->store != NULL &&
        store_apply(sim->store->store, batch, broker_boot_ms(sim), &err) != MUSTER_OK)
        sim_broken(sim, "store", "a batch is not written: %s", err.text);
}

/* --- what is read is what was written --------------------------------------------------------------- */

static void tell_round(const struct record_round *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "round %s %" PRIu64 " gen %" PRIu64 " att %" PRIu64 " cause %d state %d step %" PRId64
             " ab %d culprit %" PRId64 " code %u '%s' final %d deadline %" PRId64 " opened %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " margin %" PRId64,
             r->job, r->round, r->generation, r->attempt, (int)r->cause, (int)r->state, r->step,
             r->aborted_steps, r->culprit_rank, r->reason_code, r->reason, r->final,
             r->deadline_boot_ms, r->opened_boot_ms, r->opened_unix_ms, r->decided_unix_ms,
             r->captured_unix_ms, r->ended_unix_ms, r->margin_ms);
}

static void tell_generation(const struct record_generation *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "generation %s %" PRIu64 " state %d world %" PRIu64 " layout %d dir %s resume %" PRIu64
             " step %" PRId64 " ready %d fallback %d end %u '%s' error %" PRId64 " %" PRId64
             " '%s' times %" PRId64 " %" PRId64 " %" PRId64,
             r->job, r->generation, (int)r->state, r->world_size, (int)r->layout, r->checkpoint_dir,
             r->resume_checkpoint, r->resume_step, r->resume_ready, r->fallback, r->end_status,
             r->end_text, r->error_rank, r->error_code, r->error_text, r->opened_unix_ms,
             r->started_unix_ms, r->ended_unix_ms);
}

static void tell_node(const struct record_node *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "node %s %" PRIu64 " gen %" PRIu64 " role %d rank %" PRIu64 " host %s pid %" PRIu64
             " state %d last %" PRIu64 " %u %" PRIu64 " why %d exit %" PRId64 " times %" PRId64
             " %" PRId64,
             r->job, r->incarnation, r->generation, (int)r->role, r->rank, r->host, r->pid,
             (int)r->state, r->last_request, r->last_code, r->last_value, (int)r->leave_why,
             r->exit_code, r->joined_unix_ms, r->ended_unix_ms);
}

static void tell_participant(const struct record_participant *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "participant %s %" PRIu64 " rank %" PRIu64 " inc %" PRIu64 " writer %d at %" PRId64
             " %" PRId64 " times %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
             r->job, r->round, r->rank, r->incarnation, r->writer, r->begun, r->done,
             r->reported_ms, r->at_step_ms, r->captured_ms, r->saved_ms, r->save_ms);
}

static void tell_checkpoint(const struct record_checkpoint *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "checkpoint %s %" PRIu64 " gen %" PRIu64 " step %" PRId64
             " state %d cause %d layout %d world %" PRIu64 " shards %" PRIu64 " bytes %" PRIu64
             " path '%s' %" PRId64 " %" PRId64 " %" PRId64 " pinned %d '%s' %" PRId64,
             r->job, r->round, r->generation, r->step, (int)r->state, (int)r->cause, (int)r->layout,
             r->world_size, r->shards_required, r->bytes, r->path, r->epoch, r->step_in_epoch,
             r->data_position, r->pinned, r->metrics, r->committed_unix_ms);
}

static bool tell_row(const struct record *r, char *text)
{
    switch (r->kind) {
    case RECORD_BROKER:
        snprintf(text, TEXT_SIZE, "broker %" PRIu64, r->u.broker.epoch);
        return true;
    case RECORD_JOB:
        snprintf(text, TEXT_SIZE,
                 "job %s state %d gen %" PRIu64 " seq %" PRIu64 " round %" PRIu64 " '%s'",
                 r->u.job.job, (int)r->u.job.state, r->u.job.generation, r->u.job.seq,
                 r->u.job.round, r->u.job.save_now_id);
        return true;
    case RECORD_GENERATION:
        tell_generation(&r->u.generation, text);
        return true;
    case RECORD_NODE:
        tell_node(&r->u.node, text);
        return true;
    case RECORD_NOTICE:
        snprintf(text, TEXT_SIZE,
                 "notice %s %s rank %" PRId64 " kind %d state %d left %" PRId64 " deadline %" PRId64
                 " round %" PRIu64 " '%s' '%s'",
                 r->u.notice.job, r->u.notice.id, r->u.notice.rank, (int)r->u.notice.kind,
                 (int)r->u.notice.state, r->u.notice.left_ms, r->u.notice.deadline_boot_ms,
                 r->u.notice.round, r->u.notice.source, r->u.notice.text);
        return true;
    case RECORD_ROUND:
        tell_round(&r->u.round, text);
        return true;
    case RECORD_PARTICIPANT:
        tell_participant(&r->u.participant, text);
        return true;
    case RECORD_CHECKPOINT:
        tell_checkpoint(&r->u.checkpoint, text);
        return true;
    case RECORD_FILE:
        snprintf(text, TEXT_SIZE, "file %s %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %s",
                 r->u.file.job, r->u.file.round, r->u.file.rank, r->u.file.path, r->u.file.bytes,
                 r->u.file.checksum);
        return true;
    default:
        return false; /* progress may be held; shards are not asked for */
    }
}

static void take_row(void *arg, const struct record *row)
{
    struct texts *texts = arg;
    char text[TEXT_SIZE];

    if (texts->core != NULL)
        core_load(texts->core, row);
    if (!tell_row(row, text))
        return;
    texts->items = realloc(texts->items, (texts->count + 1) * sizeof *texts->items);
    texts->items[texts->count++] = strdup(text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void texts_free(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
}

static void compare(struct sim *sim, struct texts *wanted, struct texts *found)
{
    qsort(wanted->items, wanted->count, sizeof *wanted->items, by_text);
    qsort(found->items, found->count, sizeof *found->items, by_text);
    for (size_t i = 0; i < wanted->count || i < found->count; i++) {
        const char *want = i < wanted->count ? wanted->items[i] : "nothing";
        const char *have = i < found->count ? found->items[i] : "nothing";
        if (strcmp(want, have) == 0)
            continue;
        sim_broken(sim, "store", "written: %.280s; read: %.280s", want, have);
        return;
    }
}

/* The files as they are when the process dies. */
static unsigned keep_files(struct sim_store *s)
{
    s->last++;
    copy_file(s, s->last, "");
    copy_file(s, s->last, "-wal");
    return s->last;
}

void sim_store_copy(struct sim *sim)
{
    struct sim_store *s = sim->store;

    if (s->copy != 0)
        remove_files(s, s->copy);
    s->copy = keep_files(s);
}

void sim_store_put_back(struct sim *sim)
{
    sim->store->put_back = sim->store->copy != 0;
}

static void die_and_open(struct sim *sim)
{
    struct sim_store *s = sim->store;
    unsigned next = s->put_back ? s->copy : keep_files(s);

    store_close(&s->store);
    remove_files(s, s->number);
    if (s->put_back)
        s->copy = 0;
    s->put_back = false;
    s->number = next;
    open_store(sim);
}

void sim_store_load(struct sim *sim, struct core *core)
{
    struct sim_store *s = sim->store;
    struct texts wanted = {0}, found = {.core = core};
    struct muster_error err = {0};

    if (s->store == NULL)
        return;
    die_and_open(sim);
    if (s->store == NULL)
        return;
    if (store_load(s->store, take_row, &found, &err) != MUSTER_OK)
        sim_broken(sim, "store", "its rows cannot be read: %s", err.text);
    disk_rows(sim, take_row, &wanted);
    compare(sim, &wanted, &found);
    texts_free(&wanted);
    texts_free(&found);
}

/* --- events, manifests ------------------------------------------------------------------------------- */

enum muster_status sim_store_events(struct sim *sim, const struct action *action,
                                    sim_store_event_fn *fn, void *arg)
{
    struct muster_error err = {0};
    enum muster_status status =
        store_send_events(sim->store->store, action->job, action->number, action->count,
                          broker_boot_ms(sim), fn, arg, &err);

    if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND)
        sim_broken(sim, "store", "events cannot be read: %s", err.text);
    return status;
}

bool sim_store_manifest(struct sim *sim, const struct action *action,
                        struct wire_manifest_chunk *ret_chunk)
{
    struct store_manifest chunk;
    struct muster_error err = {0};

    if (store_manifest(sim->store->store, action->job, action->number, action->count, &chunk,
                       &err) != MUSTER_OK)
        return false;
    *ret_chunk = (struct wire_manifest_chunk){.checkpoint = action->number,
                                              .round_generation = chunk.generation,
                                              .step = chunk.step,
                                              .offset = chunk.offset,
                                              .total = chunk.total,
                                              .bytes = {chunk.data, chunk.size}};
    return true;
}

static struct store_rows answer;

void sim_store_query(struct sim *sim, const struct action *action, struct wire_rows *ret_rows)
{
    const struct wire_query *asked = &action->message.u.query;
    const struct store_query query = {.name = asked->name,
                                      .job = action->job,
                                      .text = asked->text_arg,
                                      .number = asked->number_arg,
                                      .after = asked->after};
    static struct muster_error err;

    ret_rows->code = store_query(sim->store->store, &query, &answer, &err);
    if (ret_rows->code != MUSTER_OK) {
        ret_rows->text = err.text;
        return;
    }
    ret_rows->more = answer.more;
    ret_rows->columns = answer.columns;
    ret_rows->rows = answer.rows;
    ret_rows->cells.data = answer.cells;
    ret_rows->cells.size = answer.size;
}

void sim_store_free(struct sim *sim)
{
    if (sim->store == NULL)
        return;
    store_close(&sim->store->store);
    remove_files(sim->store, sim->store->number);
    if (sim->store->copy != 0)
        remove_files(sim->store, sim->store->copy);
    rmdir(sim->store->dir);
    free(sim->store);
}
