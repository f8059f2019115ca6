/* The checkpoint directory, on a real file system: who may write, and whose a round's directory and
 * its shards are. */
#include "node/shard/dir_left.h"
#include "tests/unit/node/shard/shard_job.h"

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

/* --- owning -------------------------------------------------------------------------------- */

static void prepare_makes_the_directory_and_may_be_called_by_every_rank(void **state)
{
    struct shard_job *f = *state;
    char *text;

    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    text = scratch_read(scratch_path(f->root, ".muster/JOB"), NULL);
    assert_string_equal(text, JOB "\n"); /* and nothing else: older libraries compare all of it */
    free(text);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")),
                     2); /* and NUMBER, no temporary file */
}

static void each_directory_has_a_number_of_its_own(void **state)
{
    struct shard_job *f = *state;
    char other[FS_PATH_MAX];
    uint64_t number = dir_number(f->root);

    assert_int_equal(fs_path(other, NULL, "%s/other", f->root), MUSTER_OK);
    assert_int_equal(dir_number(other), 0);
    assert_int_equal(dir_prepare(other, JOB, NULL, NULL), MUSTER_OK);
    assert_int_not_equal(number, 0);
    assert_int_not_equal(dir_number(other), 0);
    assert_int_not_equal(dir_number(other), number);
    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    assert_int_equal(dir_number(f->root), number);
    assert_int_equal(unlink(scratch_path(other, ".muster/NUMBER")), 0); /* an older one */
    assert_int_equal(dir_number(other), 0);
    assert_int_equal(dir_prepare(other, JOB, NULL, NULL), MUSTER_OK);
    number = dir_number(other);
    assert_int_not_equal(number, 0);
    assert_int_equal(dir_prepare(other, JOB, NULL, NULL), MUSTER_OK);
    assert_int_equal(dir_number(other), number);
    assert_int_equal(unlink(scratch_path(other, ".muster/NUMBER")), 0);
    scratch_write(scratch_path(other, ".muster/JOB"), JOB "\n0\n", strlen(JOB "\n0\n"));
    assert_int_equal(dir_prepare(other, "word", NULL, NULL),
                     MUSTER_E_JOB); /* another job's: untouched */
    assert_int_equal(dir_number(other), 0);
    assert_int_equal(dir_prepare(other, JOB, NULL, NULL),
                     MUSTER_OK); /* its number stood in JOB once */
    assert_int_not_equal(dir_number(other), 0);
}

static void what_was_made_is_taken_back_while_nothing_else_is_in_it(void **state)
{
    struct shard_job *f = *state;
    char root[FS_PATH_MAX];
    struct dir_made made;

    assert_int_equal(fs_path(root, NULL, "%s/new", f->root), MUSTER_OK);
    assert_int_equal(dir_prepare(root, JOB, &made, NULL), MUSTER_OK);
    scratch_write(scratch_path(root, ".muster/other"), "", 0); /* somebody writes */
    dir_take_back(root, &made);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
    assert_int_equal(unlink(scratch_path(root, ".muster/other")), 0);
    assert_int_equal(mkdir(scratch_path(root, "7"), 0700), 0);
    dir_take_back(root, &made);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
    assert_int_equal(rmdir(scratch_path(root, "7")), 0);
    dir_take_back(root, &made);
    assert_false(scratch_exists(root));
    assert_int_equal(mkdir(root, 0700), 0); /* a mount point, say: it is not ours to remove */
    assert_int_equal(dir_prepare(root, JOB, &made, NULL), MUSTER_OK);
    dir_take_back(root, &made);
    assert_int_equal(scratch_count(root), 0);
    assert_int_equal(dir_prepare(root, JOB, NULL, NULL), MUSTER_OK);
    assert_int_equal(dir_prepare(root, JOB, &made, NULL), MUSTER_OK); /* it was there */
    dir_take_back(root, &made);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
}

/* One rank may have made root, and another .muster in it before the first came to that. */
static void what_two_ranks_made_is_taken_back_in_any_order(void **state)
{
    struct dir_made made[2] = {{.root = true}, {.muster = true}};
    struct shard_job *f = *state;
    char root[FS_PATH_MAX];

    assert_int_equal(fs_path(root, NULL, "%s/new", f->root), MUSTER_OK);
    for (int first = 0; first < 2; first++) {
        assert_int_equal(dir_prepare(root, JOB, NULL, NULL), MUSTER_OK);
        made[0].number = made[1].number = dir_number(root);
        dir_take_back(root, &made[first]);
        dir_take_back(root, &made[1 - first]);
        assert_false(scratch_exists(root));
    }
}

/* A rank made .muster again in the root of another, which leaves before it: however long it stays,
 * it takes root with it. */
static void who_leaves_last_takes_back_what_another_made_first(void **state)
{
    struct shard_job *f = *state;
    struct dir_made first, late;
    char root[FS_PATH_MAX];

    assert_int_equal(fs_path(root, NULL, "%s/new", f->root), MUSTER_OK);
    assert_int_equal(dir_prepare(root, JOB, &first, NULL), MUSTER_OK);
    assert_true(first.root);
    assert_int_equal(fs_remove_tree(scratch_path(root, ".muster"), NULL), MUSTER_OK);
    assert_int_equal(dir_prepare(root, JOB, &late, NULL), MUSTER_OK);
    assert_true(late.muster && !late.root && late.number != first.number);
    dir_take_back(root, &first);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB"))); /* the late one's */
    dir_take_back(root, &late);
    assert_false(scratch_exists(root));
}

/* A rank that stood still meanwhile. */
static void what_another_launch_made_is_not_taken_back(void **state)
{
    struct shard_job *f = *state;
    char root[FS_PATH_MAX];
    struct dir_made made;

    assert_int_equal(fs_path(root, NULL, "%s/new", f->root), MUSTER_OK);
    assert_int_equal(dir_prepare(root, JOB, &made, NULL), MUSTER_OK);
    assert_true(made.root && made.muster && made.number == dir_number(root));
    dir_take_back(root, &made);
    assert_false(scratch_exists(root));
    assert_int_equal(dir_prepare(root, "another", NULL, NULL), MUSTER_OK);
    dir_take_back(root, &made);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
    assert_int_not_equal(dir_number(root), 0);
    assert_int_equal(unlink(scratch_path(root, ".muster/NUMBER")), 0); /* it is about to have one */
    dir_take_back(root, &made);
    assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
}

/* Another job comes for the place just then: what it was told that it has stays. */
static int take_back_or_come(const char *root, int which)
{
    struct dir_made made;

    if (which > 0) {
        if (dir_prepare(root, JOB, &made, NULL) == MUSTER_OK)
            dir_take_back(root, &made);
        return 0;
    }
    for (int i = 0; i < 200; i++)
        if (dir_prepare(root, "another", NULL, NULL) == MUSTER_OK)
            return 1;
    return 0;
}

static void who_comes_while_it_is_taken_back_keeps_it(void **state)
{
    struct shard_job *f = *state;
    int had = 0;

    for (int n = 0; n < 40; n++) {
        char root[FS_PATH_MAX];
        pid_t pids[3];
        int code = 0;

        assert_int_equal(fs_path(root, NULL, "%s/race-%d", f->root, n), MUSTER_OK);
        for (int which = 0; which < 3; which++) {
            pids[which] = fork();
            if (pids[which] == 0)
                _exit(take_back_or_come(root, which));
        }
        for (int which = 2; which >= 0; which--)
            assert_int_equal(waitpid(pids[which], &code, 0), pids[which]);
        if (WEXITSTATUS(code) == 1) {
            had++;
            assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
            assert_int_equal(dir_prepare(root, "another", NULL, NULL), MUSTER_OK);
        }
    }
    assert_true(had > 0);
}

static void the_step_of_a_name_is_read_back(void **state)
{
    static const struct dir_names plain = {.padding = 0},
                                  named = {.prefix = "step_", .padding = 4, .offset = -1};
    static const struct {
        const struct dir_names *names;
        const char *name;
        int64_t step; /* -1: no name of a checkpoint */
    } cases[] = {
        {NULL, "0", 0},
        {NULL, "47", 47},
        {NULL, "47.3-12", 47},
        {&plain, "47", 47},
        {&named, "step_0046", 47},
        {&named, "step_0046.1-2", 47},
        {NULL, "047", -1},
        {NULL, "47x", -1},
        {NULL, "47.3", -1},
        {NULL, "47.3-", -1},
        {NULL, "47.3-12x", -1},
        {NULL, "-4", -1},
        {NULL, " 4", -1},
        {NULL, "", -1},
        {NULL, "lost+found", -1},
        {&named, "step_46", -1},
        {&named, "0046", -1},
        {NULL, "99999999999999999999", -1},
        {NULL, "18446744073709551615", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t step = -1;
        bool is = dir_name_step(cases[i].name, cases[i].names, &step);

        if (is != (cases[i].step >= 0) || (is && step != cases[i].step))
            fail_msg("\"%s\" is step %lld", cases[i].name, is ? (long long)step : -1LL);
    }
}

static void directory_of_another_job_is_refused_naming_both(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err;

    assert_int_equal(dir_prepare(f->root, "word", NULL, &err), MUSTER_E_JOB);
    assert_non_null(strstr(err.text, "\"words\""));
    assert_non_null(strstr(err.text, "\"word\""));
    assert_non_null(strstr(err.text, f->root));
    scratch_write(scratch_path(f->root, ".muster/JOB"), "", 0);
    assert_int_equal(dir_prepare(f->root, JOB, NULL, &err), MUSTER_E_CORRUPT);
}

/* A mistyped job name owned its directory for ever, and nobody said how to have it back. */
static void a_claim_alone_says_how_it_is_given_away(void **state)
{
    static const char *const used[] = {"7", ".muster/1-1"};
    struct shard_job *f = *state;
    struct muster_error err;
    char root[FS_PATH_MAX], way[FS_PATH_MAX + 16];

    assert_int_equal(fs_path(root, NULL, "%s/claimed", f->root), MUSTER_OK);
    snprintf(way, sizeof way, "remove %s/.muster", root);
    assert_int_equal(dir_prepare(root, "trian", NULL, NULL), MUSTER_OK);
    scratch_write(scratch_path(root, ".muster/tmp-0123"), "", 0); /* another rank comes just now */
    assert_int_equal(dir_prepare(root, "train", NULL, &err), MUSTER_E_JOB);
    assert_non_null(strstr(err.text, "\"trian\""));
    assert_non_null(strstr(err.text, way));
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        assert_int_equal(mkdir(scratch_path(root, "%s", used[i]), 0700), 0);
        assert_int_equal(dir_prepare(root, "train", NULL, &err), MUSTER_E_JOB);
        assert_null(strstr(err.text, "remove"));
        assert_int_equal(rmdir(scratch_path(root, "%s", used[i])), 0);
    }
}

/* Several processes at once, two jobs: at each directory one job wins for all its processes, and
 * the other is refused. Many directories, because the moment that matters is short. */
static void one_job_wins_each_race_for_a_directory(void **state)
{
    enum { RACERS = 4, RACES = 64 };
    struct shard_job *f = *state;
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
                                            p % 2 == 0 ? "even" : "odd", NULL, NULL);
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
    struct shard_job *f = *state;
    struct muster_error err = {0};
    const char *file = scratch_path(f->dir, "file");
    const char *closed = scratch_path(f->dir, "closed");
    enum muster_status status;

    scratch_write(file, "", 0);
    assert_int_equal(dir_prepare(scratch_path(file, "x"), JOB, NULL, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "/file"));
    assert_int_equal(dir_prepare(file, JOB, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(dir_prepare("/proc/muster", JOB, NULL, &err), MUSTER_E_IO);
    assert_non_null(strstr(err.text, "/proc/muster"));
    assert_int_equal(dir_prepare("", JOB, NULL, &err), MUSTER_E_ARGUMENT);

    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(mkdir(closed, 0555), 0);
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0); /* root may write anywhere */
    status = dir_prepare(closed, JOB, NULL, &err);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, MUSTER_E_IO);
    assert_int_equal(err.code, EACCES);
    assert_non_null(strstr(err.text, closed));
    assert_non_null(strstr(err.text, "give this user the right"));
}

static void prepare_clears_what_a_crash_left_under_way(void **state)
{
    struct shard_job *f = *state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    assert_int_equal(fs_make_dirs(scratch_path(f->root, ".muster/trash-1-1-ff/x/y"), NULL), 0);
    scratch_write(scratch_path(f->root, ".muster/trash-1-1-ff/x/file"), "x", 1);
    scratch_write(scratch_path(f->root, ".muster/tmp-old"), "x", 1);
    scratch_write(scratch_path(f->root, ".muster/tmp-new"), "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, scratch_path(f->root, ".muster/tmp-old"), old, 0), 0);
    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    assert_false(scratch_exists(scratch_path(f->root, ".muster/trash-1-1-ff")));
    assert_false(scratch_exists(scratch_path(f->root, ".muster/tmp-old")));
    assert_true(scratch_exists(scratch_path(f->root, ".muster/tmp-new"))); /* another rank's */
}

static void round_directory_is_shared_by_its_ranks_and_by_no_other_life(void **state)
{
    struct shard_job *f = *state;
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

static void round_directory_says_which_directory_is_away(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err;
    char away[FS_PATH_MAX + 16], a[FS_PATH_MAX], text[FS_PATH_MAX + 64];

    snprintf(away, sizeof away, "%s.away", f->root);
    assert_int_equal(rename(f->root, away), 0);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, a, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ENOENT);
    snprintf(text, sizeof text, ": %s is gone, and was there", f->root);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(mkdir(f->root, 0777), 0); /* where it was mounted */
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, a, &err), MUSTER_E_SAVE);
    snprintf(text, sizeof text, ": %s/.muster is gone, and was there", f->root);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(rmdir(f->root), 0);
    assert_int_equal(rename(away, f->root), 0);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, a, &err), MUSTER_OK);
}

static void round_directory_whose_maker_died_before_its_claim_is_taken_over(void **state)
{
    struct shard_job *f = *state;
    char path[FS_PATH_MAX];

    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-4"), 0700), 0);
    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, path, NULL), MUSTER_OK);
}

/* --- shards -------------------------------------------------------------------------------- */

static void shard_is_reported_with_path_size_and_checksum(void **state)
{
    struct shard_job *f = *state;
    struct stat st;

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    shard_job_save_rank(f, 2);
    assert_int_equal(f->files[2].count, 1);
    assert_string_equal(f->files[2].files[0].path, "shard-00002-000000000000abc2.safetensors");
    assert_true(manifest_checksum_ok(f->files[2].files[0].checksum));
    assert_int_equal(stat(scratch_path(f->round_dir, "%s", f->files[2].files[0].path), &st), 0);
    assert_int_equal(st.st_size, f->files[2].bytes);
    assert_int_equal(f->files[2].files[0].bytes, f->files[2].bytes);
}

static void second_shard_of_one_incarnation_is_refused(void **state)
{
    struct shard_job *f = *state;
    struct shard_files files = {0};
    struct shard_facts facts = {
        .job = JOB, .layout = LAYOUT_SHARDED, .rank = 0, .incarnation = shard_job_incarnation(0)};
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    shard_job_save_rank(f, 0);
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, NULL, &files, NULL),
                     MUSTER_E_EXISTS);
    assert_true(scratch_exists(scratch_path(f->round_dir, "%s", f->files[0].files[0].path)));
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_E_EXISTS);
    facts.incarnation++; /* another life of the same rank has its own name */
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, NULL, &files, NULL),
                     MUSTER_OK);
    shard_files_clear(&files);
}

static void save_into_a_removed_round_fails_and_leaves_nothing(void **state)
{
    struct shard_job *f = *state;
    struct shard_files files = {0};
    struct muster_error err;
    const struct shard_facts facts = {.job = JOB, .layout = LAYOUT_SHARDED};
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, NULL), MUSTER_OK);
    assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, NULL, &files, &err),
                     MUSTER_E_SAVE);
    assert_int_equal(err.status, MUSTER_E_SAVE);
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 7, NULL, CHECKSUM_XXH3, &files, &err),
                     MUSTER_E_SAVE);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, &err), MUSTER_E_SAVE);
    assert_int_equal(files.count, 0);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 2); /* JOB, NUMBER */
}

static void files_of_a_save_fn_are_walked_in_order_and_summed(void **state)
{
    struct shard_job *f = *state;
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
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 7, NULL, CHECKSUM_XXH3, &files, NULL),
                     MUSTER_OK);
    assert_int_equal(files.count, 3);
    assert_int_equal(files.bytes, 6);
    assert_string_equal(files.files[0].path, "shard-00001-0000000000000007/m/a");
    assert_string_equal(files.files[1].path, "shard-00001-0000000000000007/m/n/b ä");
    assert_string_equal(files.files[2].path, "shard-00001-0000000000000007/z");
    assert_string_equal(files.files[1].checksum, "xxh3-128:99aa06d3014798d86001c324468d497f");
    shard_files_clear(&files);
    shard_files_clear(&files);
    assert_int_equal(shard_dir_begin(f->round_dir, 2, 7, dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_seal(f->round_dir, 2, 7, NULL, CHECKSUM_XXH3, &files, NULL),
                     MUSTER_OK); /* no file */
    assert_int_equal(files.count, 0);
    shard_files_clear(&files);
}

/* Who waits for a save is told that it goes on while what save_fn wrote is made durable and summed,
 * and can break that off. */
static void sealing_is_watched(void **state)
{
    struct shard_job *f = *state;
    struct shard_files files = {0};
    struct safetensors_watch watch = {.bytes = 100};
    struct muster_error err;
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 7, dir, NULL), MUSTER_OK);
    scratch_write(scratch_path(dir, "a"), "12345", 5);
    scratch_write(scratch_path(dir, "b"), "678", 3);
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 7, &watch, CHECKSUM_XXH3, &files, NULL),
                     MUSTER_OK);
    assert_int_equal(atomic_load(&watch.bytes), 100 + 8 + 8);
    shard_files_clear(&files);
    assert_int_equal(shard_dir_begin(f->round_dir, 1, 8, dir, NULL), MUSTER_OK);
    scratch_write(scratch_path(dir, "a"), "12345", 5);
    atomic_store(&watch.stop, true);
    assert_int_equal(shard_dir_seal(f->round_dir, 1, 8, &watch, CHECKSUM_XXH3, &files, &err),
                     MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
    assert_false(fs_exists(dir));
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
    struct shard_job *f = *state;
    struct shard_files files = {0};
    struct muster_error err;
    char dir[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, NULL), MUSTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(shard_dir_begin(f->round_dir, 1, i, dir, NULL), MUSTER_OK);
        scratch_write(scratch_path(dir, "good"), "1", 1);
        rows[i](dir);
        assert_int_equal(shard_dir_seal(f->round_dir, 1, i, NULL, CHECKSUM_XXH3, &files, &err),
                         MUSTER_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, dir));
        assert_false(scratch_exists(dir));
        assert_int_equal(files.count, 0);
    }
    assert_true(scratch_exists("/etc/hostname"));
}

/* It is committed, and was not renamed yet: maybe the only copy. */
static void what_a_dead_launch_left_is_found_but_not_with_a_manifest(void **state)
{
    struct shard_job *f = *state;
    struct dir_left left[4];

    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-1"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-2"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(f->root, ".muster/2-3"), 0700), 0);
    assert_int_equal(dir_left_find(f->root, 2, left, 4), 2);
    scratch_write(scratch_path(f->root, ".muster/1-1/manifest.json"), "{}", 2);
    assert_int_equal(dir_left_find(f->root, 2, left, 4), 1);
    assert_int_equal(left[0].round, 2);
}

static void a_prefix_is_short_and_does_not_end_with_a_digit(void **state)
{
    static const struct {
        const char *prefix;
        bool ok;
    } table[] = {{"", true},
                 {"s", true},
                 {"step_1-", true},
                 {"s1", false},
                 {"a/", false},
                 {"é", false},
                 {"abcdefghijklmnopqrstuvwxyzabcde", true},
                 {"abcdefghijklmnopqrstuvwxyzabcdef", false}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(dir_prefix_ok(table[i].prefix), table[i].ok);
}

static void a_directory_without_a_round_file_is_of_no_round(void **state)
{
    struct shard_job *f = *state;
    uint64_t generation = 7, round = 8;

    assert_int_equal(dir_prepare(f->root, JOB, NULL, NULL), MUSTER_OK);
    assert_false(dir_round_of(f->root, JOB, &generation, &round));
    scratch_write(scratch_path(f->root, "ROUND"), "muster_round 1\njob another\n", 27);
    assert_false(dir_round_of(f->root, JOB, &generation, &round));
    assert_int_equal(generation, 7);
    assert_int_equal(round, 8);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(prepare_makes_the_directory_and_may_be_called_by_every_rank),
        T(each_directory_has_a_number_of_its_own),
        T(what_was_made_is_taken_back_while_nothing_else_is_in_it),
        T(what_two_ranks_made_is_taken_back_in_any_order),
        T(who_leaves_last_takes_back_what_another_made_first),
        T(what_another_launch_made_is_not_taken_back),
        T(who_comes_while_it_is_taken_back_keeps_it),
        T(the_step_of_a_name_is_read_back),
        T(a_prefix_is_short_and_does_not_end_with_a_digit),
        T(a_directory_without_a_round_file_is_of_no_round),
        T(directory_of_another_job_is_refused_naming_both),
        T(a_claim_alone_says_how_it_is_given_away),
        T(one_job_wins_each_race_for_a_directory),
        T(directory_that_cannot_be_written_is_named),
        T(prepare_clears_what_a_crash_left_under_way),
        T(round_directory_is_shared_by_its_ranks_and_by_no_other_life),
        T(round_directory_says_which_directory_is_away),
        T(round_directory_whose_maker_died_before_its_claim_is_taken_over),
        T(shard_is_reported_with_path_size_and_checksum),
        T(second_shard_of_one_incarnation_is_refused),
        T(save_into_a_removed_round_fails_and_leaves_nothing),
        T(files_of_a_save_fn_are_walked_in_order_and_summed),
        T(sealing_is_watched),
        T(what_no_manifest_can_hold_is_refused_and_removed),
        T(what_a_dead_launch_left_is_found_but_not_with_a_manifest),
    };

    return cmocka_run_group_tests_name("shard_dir", tests, NULL, NULL);
}
