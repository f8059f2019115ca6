/* test_shard_dir - the checkpoint directory and the shards in it, on a real file system: who may
 * write, what a crash between any two steps of a commit leaves, and what is restored from where. */
#include <muster/checkpoint.h>

#include "node/shard/dir.h"
#include "node/shard/shard.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOB "words"
#define NONCE 0xfeedu
#define WORLD 3

/* A sharded job of three ranks at step 12, in one process: rank r's state is the number r. */
struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char root[SCRATCH_PATH_MAX];
    char round_dir[FS_PATH_MAX];
    struct shard_files files[WORLD];
    struct manifest_shard shards[WORLD];
    struct manifest manifest;
    struct muster_state *state;
    int64_t value;
    char *text;
    size_t text_size;
    char path[FS_PATH_MAX];
};

static uint64_t incarnation_of(uint64_t rank)
{
    return 0xabc0 + rank;
}

static void must(enum muster_status status, const struct muster_error *err)
{
    if (status != MUSTER_OK)
        fail_msg("%s: %s", muster_status_name(status), err->text);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct muster_error err = {0};

    assert_non_null(f);
    scratch_make(f->dir);
    snprintf(f->root, sizeof f->root, "%s", scratch_path(f->dir, "a/b/checkpoints"));
    must(dir_prepare(f->root, JOB, &err), &err);
    must(muster_state_create(&f->state, &err), &err);
    must(muster_state_add_i64(f->state, "value", &f->value, &err), &err);
    f->manifest = (struct manifest){.job = JOB,
                                    .generation = 1,
                                    .round = 4,
                                    .step = 12,
                                    .layout = LAYOUT_SHARDED,
                                    .world_size = WORLD,
                                    .epoch = 1,
                                    .step_in_epoch = 2,
                                    .data_position = -1,
                                    .total_run_calls = 12,
                                    .created_unix_ms = 1,
                                    .cause = "operator",
                                    .shards = f->shards,
                                    .shard_count = WORLD};
    *state = f;
    return 0;
}

static int drop(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < WORLD; i++)
        shard_files_clear(&f->files[i]);
    muster_state_destroy(&f->state);
    free(f->text);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void save_rank(struct fixture *f, uint64_t rank)
{
    struct muster_error err = {0};
    struct shard_facts facts = {.job = JOB,
                                .generation = f->manifest.generation,
                                .round = f->manifest.round,
                                .step = f->manifest.step,
                                .layout = f->manifest.layout,
                                .rank = rank,
                                .incarnation = incarnation_of(rank),
                                .world_size = WORLD,
                                .total_run_calls = 12,
                                .epoch = 1,
                                .step_in_epoch = 2,
                                .data_position = -1};

    f->value = (int64_t)rank;
    shard_files_clear(&f->files[rank]);
    must(shard_save_state(f->round_dir, &facts, f->state, &f->files[rank], &err), &err);
}

static void render(struct fixture *f)
{
    struct muster_error err = {0};

    for (uint64_t i = 0; i < f->manifest.shard_count; i++)
        f->shards[i] =
            (struct manifest_shard){i, incarnation_of(i), f->files[i].files, f->files[i].count};
    free(f->text);
    must(manifest_render(&f->manifest, &f->text, &f->text_size, &err), &err);
}

/* The whole way to a round that only wants its commit. */
static void write_round(struct fixture *f)
{
    struct muster_error err = {0};

    for (uint64_t rank = 0; rank < f->manifest.shard_count; rank++) {
        must(dir_round_open(f->root, JOB, f->manifest.generation, f->manifest.round, NONCE,
                            f->round_dir, &err),
             &err);
        save_rank(f, rank);
    }
    render(f);
}

static enum muster_status commit(struct fixture *f, struct muster_error *err)
{
    return dir_commit(f->root, f->text, f->text_size, f->path, err);
}

static struct shard_restore request(struct fixture *f, uint64_t rank)
{
    return (struct shard_restore){.checkpoint_path = f->path,
                                  .job = JOB,
                                  .layout = f->manifest.layout,
                                  .rank = rank,
                                  .world_size = WORLD,
                                  .step = f->manifest.step,
                                  .round = f->manifest.round,
                                  .state = f->state};
}

static void assert_restores(struct fixture *f, uint64_t rank, int64_t value)
{
    struct shard_restore r = request(f, rank);
    struct muster_error err = {0};

    f->value = -1;
    must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(f->value, value);
}

/* --- owning -------------------------------------------------------------------------------- */

static void prepare_makes_the_directory_and_may_be_called_by_every_rank(void **state)
{
    struct fixture *f = *state;
    char *text;

    assert_int_equal(dir_prepare(f->root, JOB, NULL), MUSTER_OK);
    assert_int_equal(dir_prepare(f->root, JOB, NULL), MUSTER_OK);
    text = scratch_read(scratch_path(f->root, ".muster/JOB"), NULL);
    assert_string_equal(text, JOB "\n");
    free(text);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1); /* no temporary file */
}

static void directory_of_another_job_is_refused_naming_both(void **state)
{
    struct fixture *f = *state;
    struct muster_error err;

    assert_int_equal(dir_prepare(f->root, "word", &err), MUSTER_E_JOB);
    assert_non_null(strstr(err.text, "\"words\""));
    assert_non_null(strstr(err.text, "\"word\""));
    assert_non_null(strstr(err.text, f->root));
    scratch_write(scratch_path(f->root, ".muster/JOB"), "", 0);
    assert_int_equal(dir_prepare(f->root, JOB, &err), MUSTER_E_CORRUPT);
}

/* Several processes at once, two jobs: at each directory one job wins for all its processes, and
 * the other is refused. Many directories, because the moment that matters is short. */
static void one_job_wins_each_race_for_a_directory(void **state)
{
    enum { RACERS = 4, RACES = 64 };
    struct fixture *f = *state;
    pid_t pids[RACERS];
    int go[2];
    int result[RACERS][2];
    char won[RACERS][RACES];

    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < RACES; i++)
        assert_int_equal(mkdir(scratch_path(f->dir, "race%d", i), 0700), 0);
    for (int p = 0; p < RACERS; p++) {
        assert_int_equal(pipe(result[p]), 0);
        pids[p] = fork();
        assert_true(pids[p] >= 0);
        if (pids[p] == 0) {
            char mine[RACES];

            close(go[1]);
            while (read(go[0], mine, 1) > 0) /* until all were started */
                ;
            for (int i = 0; i < RACES; i++)
                mine[i] = (char)dir_prepare(scratch_path(f->dir, "race%d", i),
                                            p % 2 == 0 ? "even" : "odd", NULL);
            _exit(write(result[p][1], mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 1);
        }
    }
    close(go[0]);
    close(go[1]);
    for (int p = 0; p < RACERS; p++) {
        int status;

        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(read(result[p][0], won[p], RACES), RACES);
        close(result[p][0]);
        close(result[p][1]);
    }
    for (int i = 0; i < RACES; i++) {
        assert_true((won[0][i] == MUSTER_OK) != (won[1][i] == MUSTER_OK));
        for (int p = 0; p < RACERS; p++)
            assert_int_equal(won[p][i], won[p % 2][i]);
        assert_int_equal(won[won[0][i] == MUSTER_OK][i], MUSTER_E_JOB);
    }
}

static void directory_that_cannot_be_written_is_named(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    const char *file = scratch_path(f->dir, "file");
    const char *closed = scratch_path(f->dir, "closed");
    enum muster_status status;

    scratch_write(file, "", 0);
    assert_int_equal(dir_prepare(scratch_path(file, "x"), JOB, &err), MUSTER_E_IO);
    assert_non_null(strstr(err.text, "/file"));
    assert_int_equal(dir_prepare(file, JOB, &err), MUSTER_E_IO);
    assert_int_equal(dir_prepare("/proc/muster", JOB, &err), MUSTER_E_IO);
    assert_non_null(strstr(err.text, "/proc/muster"));
    assert_int_equal(dir_prepare("", JOB, &err), MUSTER_E_ARGUMENT);

    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(mkdir(closed, 0555), 0);
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0); /* root may write anywhere */
    status = dir_prepare(closed, JOB, &err);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, MUSTER_E_IO);
    assert_int_equal(err.code, EACCES);
    assert_non_null(strstr(err.text, closed));
    assert_non_null(strstr(err.text, "give this user the right"));
}

static void prepare_clears_what_a_crash_left_under_way(void **state)
{
    struct fixture *f = *state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    assert_int_equal(fs_make_dirs(scratch_path(f->root, ".muster/trash-1-1-ff/x/y"), NULL), 0);
    scratch_write(scratch_path(f->root, ".muster/trash-1-1-ff/x/file"), "x", 1);
    scratch_write(scratch_path(f->root, ".muster/tmp-old"), "x", 1);
    scratch_write(scratch_path(f->root, ".muster/tmp-new"), "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, scratch_path(f->root, ".muster/tmp-old"), old, 0), 0);
    assert_int_equal(dir_prepare(f->root, JOB, NULL), MUSTER_OK);
    assert_false(scratch_exists(scratch_path(f->root, ".muster/trash-1-1-ff")));
    assert_false(scratch_exists(scratch_path(f->root, ".muster/tmp-old")));
    assert_true(scratch_exists(scratch_path(f->root, ".muster/tmp-new"))); /* another rank's */
}

static void round_directory_is_shared_by_its_ranks_and_by_no_other_life(void **state)
{
    struct fixture *f = *state;
    struct muster_error err;
    char a[FS_PATH_MAX];
    char b[FS_PATH_MAX] = "untouched";

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, a, NULL), MUSTER_OK);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE + 1, b, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, a));
    assert_int_equal(dir_round_open(f->root, "other", 1, 4, NONCE, b, &err), MUSTER_E_JOB);
    assert_non_null(strstr(err.text, "\"other\""));
    assert_string_equal(b, "untouched");
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, b, NULL), MUSTER_OK);
    assert_string_equal(a, b);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 5, NONCE + 1, b, NULL), MUSTER_OK);
}

static void round_directory_whose_maker_died_before_its_claim_is_taken_over(void **state)
{
    struct fixture *f = *state;
    char path[FS_PATH_MAX];

    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-4"), 0700), 0);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, path, NULL), MUSTER_OK);
}

/* --- shards -------------------------------------------------------------------------------- */

static void shard_is_reported_with_path_size_and_checksum(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    save_rank(f, 2);
    assert_int_equal(f->files[2].count, 1);
    assert_string_equal(f->files[2].files[0].path, "shard-00002-000000000000abc2.safetensors");
    assert_true(manifest_checksum_ok(f->files[2].files[0].checksum));
    assert_int_equal(stat(scratch_path(f->round_dir, "%s", f->files[2].files[0].path), &st), 0);
    assert_int_equal(st.st_size, f->files[2].bytes);
    assert_int_equal(f->files[2].files[0].bytes, f->files[2].bytes);
}

static void second_shard_of_one_incarnation_is_refused(void **state)
{
    struct fixture *f = *state;
    struct shard_files files = {0};
    struct shard_facts facts = {
        .job = JOB, .layout = LAYOUT_SHARDED, .rank = 0, .incarnation = incarnation_of(0)};
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    save_rank(f, 0);
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, &files, NULL),
                     MUSTER_E_EXISTS);
    assert_true(scratch_exists(scratch_path(f->round_dir, "%s", f->files[0].files[0].path)));
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_E_EXISTS);
    facts.incarnation++; /* another life of the same rank has its own name */
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, &files, NULL), MUSTER_OK);
    shard_files_clear(&files);
}

static void save_into_a_removed_round_fails_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct shard_files files = {0};
    struct muster_error err;
    const struct shard_facts facts = {.job = JOB, .layout = LAYOUT_SHARDED};
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, NULL), MUSTER_OK);
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, &files, &err), MUSTER_E_SAVE);
    assert_int_equal(err.status, MUSTER_E_SAVE);
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 7, &files, &err), MUSTER_E_SAVE);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, &err), MUSTER_E_SAVE);
    assert_int_equal(files.count, 0);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1); /* JOB */
}

static void files_of_a_save_fn_are_walked_in_order_and_summed(void **state)
{
    struct fixture *f = *state;
    struct shard_files files = {0};
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    assert_string_equal(dir + strlen(f->round_dir), "/shard-00001-0000000000000007");
    assert_int_equal(fs_make_dirs(scratch_path(dir, "m/n"), NULL), MUSTER_OK);
    assert_int_equal(fs_make_dirs(scratch_path(dir, "empty"), NULL), MUSTER_OK);
    scratch_write(scratch_path(dir, "z"), "12345", 5);
    scratch_write(scratch_path(dir, "m/n/b ä"), "", 0);
    scratch_write(scratch_path(dir, "m/a"), "1", 1);
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 7, &files, NULL), MUSTER_OK);
    assert_int_equal(files.count, 3);
    assert_int_equal(files.bytes, 6);
    assert_string_equal(files.files[0].path, "shard-00001-0000000000000007/m/a");
    assert_string_equal(files.files[1].path, "shard-00001-0000000000000007/m/n/b ä");
    assert_string_equal(files.files[2].path, "shard-00001-0000000000000007/z");
    assert_string_equal(files.files[1].checksum, "xxh3-128:99aa06d3014798d86001c324468d497f");
    shard_files_clear(&files);
    shard_files_clear(&files);
    assert_int_equal(shard_dir_begin(f->round_dir, 2, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_seal(f->round_dir, 2, 7, &files, NULL), MUSTER_OK); /* no file */
    assert_int_equal(files.count, 0);
    shard_files_clear(&files);
}

static void put_link(const char *dir)
{
    assert_int_equal(symlink("/etc/hostname", scratch_path(dir, "link")), 0);
}
static void put_link_to_a_directory(const char *dir)
{
    assert_int_equal(symlink("/etc", scratch_path(dir, "link")), 0);
}
static void put_fifo(const char *dir)
{
    assert_int_equal(mkfifo(scratch_path(dir, "fifo"), 0600), 0);
}
static void put_newline(const char *dir)
{
    scratch_write(scratch_path(dir, "a\nb"), "", 0);
}
static void put_bad_utf8(const char *dir)
{
    scratch_write(scratch_path(dir, "\xff"), "", 0);
}
static void put_long_path(const char *dir)
{
    char name[241];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    scratch_write(scratch_path(dir, "%s", name), "", 0);
}
static void put_deep(const char *dir)
{
    char path[FS_PATH_MAX];
    size_t used = (size_t)snprintf(path, sizeof path, "%s", dir);

    for (int i = 0; i < FS_DEPTH_MAX + 2; i++)
        used += (size_t)snprintf(path + used, sizeof path - used, "/d");
    assert_int_equal(fs_make_dirs(path, NULL), MUSTER_OK);
}

static void what_no_manifest_can_hold_is_refused_and_removed(void **state)
{
    static void (*const rows[])(const char *) = {
        put_link,     put_link_to_a_directory, put_fifo, put_newline,
        put_bad_utf8, put_long_path,           put_deep,
    };
    struct fixture *f = *state;
    struct shard_files files = {0};
    struct muster_error err;
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(shard_dir_begin(f->round_dir, 1, i, dir, NULL), MUSTER_OK);
        scratch_write(scratch_path(dir, "good"), "1", 1);
        rows[i](dir);
        assert_int_equal(shard_dir_seal(f->round_dir, 1, i, &files, &err), MUSTER_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, dir));
        assert_false(scratch_exists(dir));
        assert_int_equal(files.count, 0);
    }
    assert_true(scratch_exists("/etc/hostname"));
}

/* --- commit -------------------------------------------------------------------------------- */

static void commit_names_the_directory_after_its_step(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    size_t size;
    char *text;

    write_round(f);
    must(commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12"));
    text = scratch_read(scratch_path(f->path, "manifest.json"), &size);
    assert_int_equal(size, f->text_size);
    assert_memory_equal(text, f->text, size);
    free(text);
    assert_int_equal(scratch_count(f->path), WORLD + 2); /* ROUND, manifest.json */
    assert_int_equal(scratch_count(f->root), 2);         /* .muster, 12 */
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1);
    for (uint64_t rank = 0; rank < WORLD; rank++)
        assert_restores(f, rank, (int64_t)rank);
}

/* Every state in which a crash can leave a commit; dir_commit must come to the same end from each. */
static void commit_is_finished_from_every_crash_point(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    const char *final;

    for (int point = 0; point < 7; point++) {
        f->manifest.round = 10 + (uint64_t)point;
        f->manifest.step = 100 + point;
        write_round(f);
        final = scratch_path(f->root, "%d", 100 + point);
        if (point == 1) /* died while writing the temporary file */
            scratch_write(scratch_path(f->root, ".muster/tmp-00"), f->text, 3);
        if (point >= 2) /* died after the manifest was in place */
            must(dir_commit_manifest(f->root, &f->manifest, f->text, f->text_size, &err), &err);
        if (point == 3) /* a disk that lost the tail of a file it had not been told to sync */
            scratch_cut(scratch_path(f->round_dir, "manifest.json"), 10);
        if (point >= 4) /* died after the rename */
            must(dir_commit_rename(f->root, &f->manifest, f->path, &err), &err);
        if (point == 5) /* and the manifest did not survive */
            assert_int_equal(unlink(scratch_path(final, "manifest.json")), 0);
        if (point == 6) /* a straggler opened the round once more, too late */
            assert_int_equal(dir_round_open(f->root, JOB, 1, 16, NONCE, f->round_dir, NULL), 0);
        memset(f->path, 0, sizeof f->path);
        must(commit(f, &err), &err);
        assert_string_equal(f->path, final);
        must(commit(f, &err), &err); /* and again */
        assert_string_equal(f->path, final);
        assert_restores(f, 1, 1);
    }
}

static void two_processes_that_repair_one_round_both_succeed(void **state)
{
    enum { RACERS = 8 };
    struct fixture *f = *state;
    pid_t pids[RACERS];
    struct muster_error err = {0};

    write_round(f);
    for (int i = 0; i < RACERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(commit(f, NULL) == MUSTER_OK ? 0 : 1);
    }
    for (int i = 0; i < RACERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    must(commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12"));
    assert_restores(f, 2, 2);
}

static void step_that_another_round_has_gets_the_second_name(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    char first[FS_PATH_MAX];

    write_round(f);
    must(commit(f, &err), &err);
    strcpy(first, f->path);
    f->manifest.round = 5;
    write_round(f);
    must(commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12.1-5"));
    must(commit(f, &err), &err); /* found again under its second name */
    assert_string_equal(f->path, scratch_path(f->root, "12.1-5"));
    assert_restores(f, 0, 0);
    strcpy(f->path, first);
    f->manifest.round = 4;
    assert_restores(f, 0, 0); /* the first is as it was */
}

static void directory_of_the_user_with_the_steps_name_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    assert_int_equal(fs_make_dirs(scratch_path(f->root, "12"), NULL), MUSTER_OK);
    write_round(f);
    must(commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12.1-4"));
    assert_int_equal(scratch_count(scratch_path(f->root, "12")), 0);
    f->manifest.round = 5;
    write_round(f);
    scratch_write(scratch_path(f->root, "12.1-5"), "a file", 6);
    assert_int_equal(commit(f, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, "12.1-5"));
    assert_true(scratch_exists(f->round_dir)); /* nothing is lost */
}

static void missing_or_short_shard_stops_the_commit_and_is_named(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    const char *shard;

    write_round(f);
    shard = scratch_path(f->round_dir, "%s", f->files[1].files[0].path);
    scratch_cut(shard, 10);
    assert_int_equal(commit(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(unlink(shard), 0);
    assert_int_equal(commit(f, &err), MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(scratch_count(f->root), 1); /* only .muster */
    assert_int_equal(dir_commit(f->root, "{}", 2, f->path, &err), MUSTER_E_CORRUPT);
}

static void round_is_found_before_and_after_its_commit(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    enum dir_place place = DIR_PLACE_NONE;
    char path[FS_PATH_MAX];

    assert_int_equal(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(place, DIR_PLACE_NONE);
    write_round(f);
    must(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), &err);
    assert_int_equal(place, DIR_PLACE_ROUND);
    assert_string_equal(path, f->round_dir);
    must(commit(f, &err), &err);
    must(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), &err);
    assert_int_equal(place, DIR_PLACE_FINAL);
    assert_string_equal(path, f->path);
    assert_int_equal(dir_find(f->root, JOB, 1, 44, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(dir_find(f->root, "word", 1, 4, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
}

static void nonce_is_that_of_the_members_in_any_order(void **state)
{
    static const struct wire_member a[] = {{0, 10, MEMBER_FLAG_WRITER}, {1, 11, 0}};
    static const struct wire_member b[] = {{1, 11, 0}, {0, 10, 0}};
    static const struct wire_member c[] = {{0, 11, 0}, {1, 10, 0}};

    (void)state;
    assert_true(wire_round_nonce(a, 2) == wire_round_nonce(b, 2));
    assert_true(wire_round_nonce(a, 2) != wire_round_nonce(c, 2));
    assert_true(wire_round_nonce(a, 2) != wire_round_nonce(a, 1));
    assert_true(wire_round_nonce(a, 0) != 0);
}

static void aborted_round_is_removed_and_a_committed_one_is_not(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, NULL), MUSTER_OK); /* none */
    write_round(f);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE + 1, &err), MUSTER_E_EXISTS);
    assert_int_equal(dir_remove_round(f->root, "other", 1, 4, NONCE, &err), MUSTER_E_EXISTS);
    assert_true(scratch_exists(f->round_dir));
    must(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err), &err);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1); /* JOB, no trash */
    write_round(f);
    must(dir_commit_manifest(f->root, &f->manifest, f->text, f->text_size, &err), &err);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, "manifest"));
    must(commit(f, &err), &err);
    must(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err), &err); /* nothing in .muster */
    assert_restores(f, 0, 0);
    f->manifest.round = 5;
    write_round(f);
    must(dir_remove_round(f->root, JOB, 1, 5, 0, &err), &err); /* of whatever life */
    assert_false(scratch_exists(f->round_dir));
    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-9"), 0700), 0); /* died unclaimed */
    must(dir_remove_round(f->root, JOB, 1, 9, NONCE, &err), &err);
    assert_false(scratch_exists(scratch_path(f->root, ".muster/1-9")));
}

/* --- restore ------------------------------------------------------------------------------- */

static void replicated_checkpoint_restores_at_every_rank_of_any_world(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct manifest *manifest = NULL;
    struct shard_restore r;

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    write_round(f);
    must(commit(f, &err), &err);
    r = request(f, 77);
    r.world_size = 100;
    f->value = -1;
    must(shard_restore(&r, &manifest, &err), &err);
    assert_int_equal(f->value, 0);
    assert_int_equal(manifest->total_run_calls, 12);
    assert_int_equal(manifest->epoch, 1);
    assert_int_equal(manifest->step_in_epoch, 2);
    manifest_destroy(&manifest);
}

static void restore_refuses_what_was_not_asked_for(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    write_round(f);
    must(commit(f, &err), &err);
#define REFUSED(change, status, words)                            \
    do {                                                          \
        struct manifest *none = NULL;                             \
        r = request(f, 1);                                        \
        f->value = -1;                                            \
        change;                                                   \
        assert_int_equal(shard_restore(&r, &none, &err), status); \
        if (strstr(err.text, words) == NULL)                      \
            fail_msg("%s", err.text);                             \
        assert_int_equal(f->value, -1);                           \
        assert_null(none);                                        \
    } while (0)
    REFUSED(r.job = "other", MUSTER_E_JOB, "\"other\"");
    REFUSED(r.layout = LAYOUT_REPLICATED, MUSTER_E_LAYOUT, "sharded");
    REFUSED(r.step = 13, MUSTER_E_RESTORE, "step 12");
    REFUSED(r.round = 3, MUSTER_E_RESTORE, "round 4");
    REFUSED(r.world_size = 4, MUSTER_E_RESTORE, "3 ranks");
    REFUSED(r.rank = 3, MUSTER_E_RESTORE, "rank 3");
    REFUSED(r.state = NULL, MUSTER_E_ARGUMENT, "restore_fn");
    REFUSED(r.checkpoint_path = scratch_path(f->root, "13"), MUSTER_E_NOT_FOUND, "/13");
    REFUSED((assert_int_equal(unlink(scratch_path(f->path, "%s", f->files[1].files[0].path)), 0)),
            MUSTER_E_CORRUPT, "missing");
    REFUSED((scratch_flip_bit(scratch_path(f->path, "manifest.json"), 0, 0)), MUSTER_E_CORRUPT,
            "manifest.json");
    REFUSED((assert_int_equal(unlink(scratch_path(f->path, "manifest.json")), 0)), MUSTER_E_RESTORE,
            "unfinished");
#undef REFUSED
}

static void damage_of_one_rank_is_found_at_that_rank_alone(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    write_round(f);
    must(commit(f, &err), &err);
    scratch_flip_bit(scratch_path(f->path, "%s", f->files[1].files[0].path), f->files[1].bytes - 1,
                     3);
    assert_restores(f, 0, 0);
    assert_restores(f, 2, 2);
    r = request(f, 1);
    f->value = -1;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(f->value, -1);
}

static void manifest_cannot_send_a_rank_to_another_ranks_file(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    write_round(f);
    f->shards[1].files = f->files[0].files;
    free(f->text);
    must(manifest_render(&f->manifest, &f->text, &f->text_size, &err), &err);
    must(commit(f, &err), &err);
    r = request(f, 1);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_restores(f, 0, 0);
}

struct seen {
    int calls;
    int64_t step;
    char dir[FS_PATH_MAX];
    int answer;
};

static int see(void *arg, int64_t step, const char *dir)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->step = step;
    strcpy(seen->dir, dir);
    return seen->answer;
}

static void restore_fn_gets_the_directory_once_all_its_files_are_found_whole(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct seen seen = {0};
    struct shard_restore r;
    char dir[FS_PATH_MAX];

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    must(shard_dir_begin(f->round_dir, 0, incarnation_of(0), dir, &err), &err);
    scratch_write(scratch_path(dir, "a"), "abc", 3);
    scratch_write(scratch_path(dir, "b"), "def", 3);
    must(shard_dir_seal(f->round_dir, 0, incarnation_of(0), &f->files[0], &err), &err);
    render(f);
    must(commit(f, &err), &err);
    r = request(f, 2);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE); /* a state is not its kind */
    assert_non_null(strstr(err.text, "save_fn"));
    r.state = NULL;
    r.restore_fn = see;
    r.arg = &seen;
    must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(seen.step, 12);
    assert_string_equal(seen.dir, scratch_path(f->path, "shard-00000-000000000000abc0"));
    seen.answer = 5;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_int_equal(err.code, 5);
    assert_int_equal(seen.calls, 2);
    scratch_flip_bit(scratch_path(seen.dir, "b"), 1, 1);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "/b "));
    assert_int_equal(seen.calls, 2);
}

static void save_fn_that_wrote_no_file_commits_and_restores(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct seen seen = {0};
    struct shard_restore r;
    char dir[FS_PATH_MAX];

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    must(shard_dir_begin(f->round_dir, 0, incarnation_of(0), dir, &err), &err);
    must(shard_dir_seal(f->round_dir, 0, incarnation_of(0), &f->files[0], &err), &err);
    render(f);
    must(commit(f, &err), &err);
    must(commit(f, &err), &err);
    r = request(f, 0);
    r.state = NULL;
    r.restore_fn = see;
    r.arg = &seen;
    must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(seen.calls, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        T(prepare_makes_the_directory_and_may_be_called_by_every_rank),
        T(directory_of_another_job_is_refused_naming_both),
        T(one_job_wins_each_race_for_a_directory),
        T(directory_that_cannot_be_written_is_named),
        T(prepare_clears_what_a_crash_left_under_way),
        T(round_directory_is_shared_by_its_ranks_and_by_no_other_life),
        T(round_directory_whose_maker_died_before_its_claim_is_taken_over),
        T(shard_is_reported_with_path_size_and_checksum),
        T(second_shard_of_one_incarnation_is_refused),
        T(save_into_a_removed_round_fails_and_leaves_nothing),
        T(files_of_a_save_fn_are_walked_in_order_and_summed),
        T(what_no_manifest_can_hold_is_refused_and_removed),
        T(commit_names_the_directory_after_its_step),
        T(commit_is_finished_from_every_crash_point),
        T(two_processes_that_repair_one_round_both_succeed),
        T(step_that_another_round_has_gets_the_second_name),
        T(directory_of_the_user_with_the_steps_name_is_left_alone),
        T(missing_or_short_shard_stops_the_commit_and_is_named),
        T(round_is_found_before_and_after_its_commit),
        cmocka_unit_test(nonce_is_that_of_the_members_in_any_order),
        T(aborted_round_is_removed_and_a_committed_one_is_not),
        T(replicated_checkpoint_restores_at_every_rank_of_any_world),
        T(restore_refuses_what_was_not_asked_for),
        T(damage_of_one_rank_is_found_at_that_rank_alone),
        T(manifest_cannot_send_a_rank_to_another_ranks_file),
        T(restore_fn_gets_the_directory_once_all_its_files_are_found_whole),
        T(save_fn_that_wrote_no_file_commits_and_restores),
    };

    return cmocka_run_group_tests_name("shard_dir", tests, NULL, NULL);
}
