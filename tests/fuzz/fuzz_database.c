/* A broker started on a database that says anything which SQLite lets it say. The input is lines of
 * "TABLE ROW COLUMN=VALUE", or "TABLE ROW -" to take the row away, against the database of two
 * jobs: one in the middle of a round under a notice, with a checkpoint behind it, one that is
 * joining. Either the start is refused with a reason, or the broker can go on: what it writes can
 * be stored, nodes are answered, all of it can be read by an event's, manifest's or query's reader,
 * and silence ends it. */
#include "broker/store/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/core_fixture.h"

#include <sqlite3.h>
#include <unistd.h>

#define LINES_MAX 32
#define SILENCE_PASSES_MAX 700 /* of a second each: JOIN_TIMEOUT_MS and what follows */

struct image { /* of the database that inputs change */
    uint8_t *bytes;
    size_t size;
};

static const char *path_of(const char *suffix)
{
    static char path[8][96];
    static unsigned next;
    char *text = path[next++ % 8];

    snprintf(text, sizeof path[0], "%s/muster-fuzz-%d.db%s",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid(), suffix);
    return text;
}

static void remove_files(void)
{
    unlink(path_of(""));
    unlink(path_of("-wal"));
    unlink(path_of("-shm"));
    unlink(path_of("-journal"));
    unlink(path_of(".lock"));
}

/* --- the database that inputs change ---------------------------------------------------------- */

static void keep(struct store *store, struct core_fixture *f)
{
    struct muster_error err;

    must(store_apply(store, &f->out, f->now, &err) == MUSTER_OK);
}

static void play(struct store *store, struct core_fixture *f)
{
    struct wire_msg hello;

    core_fixture_open(f, 2, LAYOUT_REPLICATED);
    core_restart(f, false); /* its first actions were cleared */
    keep(store, f);
    for (int n = 0; n < 3; n++, keep(store, f)) /* rank 2 is refused */
        core_hello(f, n);
    for (int n = 0; n < 2; n++, keep(store, f))
        core_restored(f, n, 0, 0);
    f->nodes[0].begun = f->nodes[0].done = 5;
    core_pass(f, 1500);
    keep(store, f);
    core_save_now(f, "wish");
    keep(store, f);
    for (int n = 0; n < 2; n++, keep(store, f))
        core_report(f, n, 1, 5, 5);
    core_at_step(f, 1, 1, 5, true);
    keep(store, f);
    core_at_step(f, 0, 1, 5, false);
    keep(store, f);
    core_files(f, 0, 1, 5, 2);
    keep(store, f);
    core_saved(f, 0, 1, 5, 2);
    keep(store, f);
    core_notice(f, 1, "n1", 600000);
    keep(store, f);
    core_pass(f, 1000);
    keep(store, f);
    core_save_now(f, "wish 2");
    keep(store, f);
    for (int n = 0; n < 2; n++, keep(store, f))
        core_report(f, n, 2, 9, 8 + n);
    core_at_step(f, 0, 2, 9, false);
    keep(store, f);
    core_files(f, 0, 2, 9, 1);
    keep(store, f);
    hello = core_msg(f, 3, WIRE_HELLO);
    hello.up.job = "other";
    hello.up.rank = 1;
    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .world_size = 3,
                                        .host = "h",
                                        .pid = 1,
                                        .layout = LAYOUT_SHARDED,
                                        .checkpoint_dir = "/o"};
    core_feed(f, f->nodes[3].route, &hello);
    keep(store, f);
}

static struct image make_image(void)
{
    static struct core_fixture f;
    struct image image = {NULL, 0};
    struct store *store = NULL;
    struct muster_error err;
    FILE *file;

    remove_files();
    must(store_open(path_of(""), NULL, &store, &err) == MUSTER_OK);
    play(store, &f);
    core_fixture_close(&f);
    store_close(&store);
    file = fopen(path_of(""), "rb");
    must(file != NULL && fseek(file, 0, SEEK_END) == 0);
    image.size = (size_t)ftell(file);
    image.bytes = malloc(image.size);
    rewind(file);
    must(image.bytes != NULL && fread(image.bytes, 1, image.size, file) == image.size);
    fclose(file);
    remove_files();
    return image;
}

/* --- the input -------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_95") == strlen(text) && strlen(text) < 40;
}

/* Foreign keys are off: a damaged file does not keep them either. */
static void change(sqlite3 *db, char *line)
{
    char *save = NULL;
    const char *table = strtok_r(line, " ", &save);
    const char *row = strtok_r(NULL, " ", &save);
    const char *column = strtok_r(NULL, "=", &save);
    const char *value = strtok_r(NULL, "", &save);
    sqlite3_stmt *statement = NULL;
    const char *key;
    char sql[512];

    if (column == NULL || !is_name(table) || (strcmp(column, "-") != 0 && !is_name(column)))
        return;
    key = strcmp(table, "event") == 0        ? "seq"
          : strcmp(table, "shard_file") == 0 ? "path"
                                             : "rowid"; /* the first two have none */
    if (strcmp(column, "-") == 0)
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %d)",
                 table, key, key, table, atoi(row) & 63);
    else
        snprintf(
            sql, sizeof sql,
            "UPDATE OR REPLACE %s SET %s = ?1 WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %d)",
            table, column, key, key, table, atoi(row) & 63);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return;
    if (sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_text(statement, 1, value != NULL ? value : "", -1, SQLITE_STATIC);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
}

static void make_database(const struct image *image, struct bytes *in)
{
    FILE *file = fopen(path_of(""), "wb");
    sqlite3 *db = NULL;
    char *line;

    must(file != NULL && fwrite(image->bytes, 1, image->size, file) == image->size);
    fclose(file);
    must(sqlite3_open(path_of(""), &db) == SQLITE_OK);
    sqlite3_exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL);
    for (int i = 0; i < LINES_MAX && (line = take_line(in)) != NULL; i++) {
        change(db, line);
        free(line);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
}

/* --- the broker ------------------------------------------------------------------------------- */

struct broker {
    struct store *store;
    struct core *core;
    struct actions out;
    int64_t now;
};

static void load_row(void *arg, const struct record *row)
{
    core_load(arg, row);
}

/* False: a refusal. After the start nothing may be refused. */
static bool write_out(struct broker *b)
{
    struct muster_error err = {0};
    enum muster_status status = store_apply(b->store, &b->out, b->now, &err);

    if (status != MUSTER_OK)
        fprintf(stderr, "not written: %s\n", err.text);
    actions_clear(&b->out);
    return status == MUSTER_OK;
}

static void give(struct broker *b, enum input_kind kind, const struct wire_msg *message)
{
    struct input input = {.kind = kind,
                          .now_boot_ms = b->now,
                          .now_unix_ms = 1700000000000 + b->now,
                          .route = 100,
                          .message = message};

    core_step(b->core, &input, &b->out);
    must(b->out.count == 0 || write_out(b));
}

static void read_event(void *arg, const struct wire_event *event)
{
    (void)arg;
    must(event->text != NULL);
}

static void read_all(struct broker *b)
{
    static struct store_rows rows;
    static const char *const names[] = {"jobs",        "nodes",  "rounds", "participants",
                                        "checkpoints", "events", "notices"};
    struct store_manifest manifest;
    struct muster_error err;

    store_send_events(b->store, "train", 1, EVENTS_PAGE_MAX, b->now, read_event, NULL, &err);
    store_manifest(b->store, "train", 1, 0, &manifest, &err);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct store_query query = {.name = names[i], .job = "train", .text = ""};

        store_query(b->store, &query, &rows, &err);
    }
}

static bool all_ended(const struct core *core)
{
    for (const struct job *job = core->jobs; job != NULL; job = job->next)
        if (job->gen.state != GENERATION_ENDED && job->peers_count > 0)
            return false;
    return true;
}

static void go_on(struct broker *b)
{
    struct wire_msg hello = {.type = WIRE_HELLO};

    give(b, INPUT_START, NULL);
    read_all(b);
    hello.up = (struct wire_up){
        .job = "train", .role = ROLE_CHIEF, .rank = 0, .incarnation = 50, .generation = 1};
    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .nonce = 1,
                                        .world_size = 2,
                                        .host = "host",
                                        .pid = 4000,
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt",
                                        .begun = 9,
                                        .done = 9};
    give(b, INPUT_MESSAGE, &hello);
    for (int i = 0; i < SILENCE_PASSES_MAX && !all_ended(b->core); i++) {
        b->now += 1000;
        give(b, INPUT_TICK, NULL);
    }
    must(all_ended(b->core));
    hello.up.incarnation = 777;
    hello.up.generation = 0;
    give(b, INPUT_MESSAGE, &hello);
}

static void start(struct broker *b)
{
    const struct core_options options = {.start_id = 7, .events_endpoint = "ipc:///e"};
    struct muster_error err = {0};
    enum muster_status status = store_open(path_of(""), NULL, &b->store, &err);

    if (status != MUSTER_OK) {
        must(err.status == status && err.text[0] != '\0');
        return;
    }
    b->core = core_create(&options);
    must(b->core != NULL);
    status = store_load(b->store, load_row, b->core, &err);
    if (status == MUSTER_OK)
        go_on(b);
    else
        must(status == MUSTER_E_CORRUPT && err.text[0] != '\0');
    core_destroy(&b->core);
    store_close(&b->store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct image image;
    struct broker b = {.now = 2000000};
    struct bytes in = {data, size};

    if (image.bytes == NULL)
        image = make_image();
    remove_files();
    make_database(&image, &in);
    actions_init(&b.out);
    start(&b);
    actions_free(&b.out);
    remove_files();
    return 0;
}
