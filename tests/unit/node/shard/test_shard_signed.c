/* Checkpoints with a signature: who asks for one restores what the broker signed, and nothing that
 * somebody made of it who can write the directory. */
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sign_key own, foreign;

static struct shard_job *committed(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};

    own = signed_key(1);
    foreign = signed_key(2);
    f->checksum = CHECKSUM_STRONG;
    f->key = &own;
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    return f;
}

/* As `rank` of the three that saved, or of another number, for which all files are looked at. */
static enum muster_status restored(struct shard_job *f, const struct sign_key *key,
                                   struct muster_error *err)
{
    struct shard_restore r = shard_job_request(f, 1);

    r.signer = key->public_text;
    f->value = -1;
    return shard_restore(&r, NULL, err);
}

static void put(const struct shard_job *f, const char *name, const char *text, size_t size)
{
    char path[FS_PATH_MAX];
    FILE *file;

    assert_int_equal(fs_path(path, NULL, "%s/%s", f->path, name), MUSTER_OK);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void what_was_signed_is_restored(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};

    assert_true(manifest_checksum_is_strong(f->files[1].files[0].checksum));
    shard_job_must(restored(f, &own, &err), &err);
    assert_int_equal(f->value, 1);
    shard_job_assert_restores(f, 2, 2); /* who asks for no signature */
    for (int i = 0; i < WORLD; i++)
        shard_job_must(shard_verify(f->path, &f->shards[i], &err), &err);
}

static void nothing_is_restored_for_another_key(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};

    assert_int_equal(restored(f, &foreign, &err), MUSTER_E_SIGNATURE);
    assert_non_null(strstr(err.text, f->path));
    assert_int_equal(f->value, -1);
}

static void a_manifest_without_a_signature_is_not_used(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    size_t size;
    char *bare = signed_text_without(f->text, &size);

    put(f, "manifest.json", bare, size);
    assert_int_equal(restored(f, &own, &err), MUSTER_E_SIGNATURE);
    assert_int_equal(f->value, -1);
    shard_job_assert_restores(f, 1, 1);
    free(bare);
}

static void a_manifest_whose_signature_was_cut_is_damage(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    size_t size;
    char *cut = signed_text_cut(f->text, 2, &size);

    put(f, "manifest.json", cut, size);
    assert_int_equal(restored(f, &own, &err), MUSTER_E_CORRUPT);
    assert_int_equal(f->value, -1);
    free(cut);
}

/* Signed by the same broker, for another job, or earlier for this one. */
static void a_manifest_of_another_job_or_step_does_not_take_its_place(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    struct manifest other = f->manifest;
    size_t size;
    char *text;

    other.job = "other";
    text = signed_text(&other, &own, &size);
    put(f, "manifest.json", text, size);
    free(text);
    assert_int_equal(restored(f, &own, &err), MUSTER_E_JOB);
    other = f->manifest;
    other.step--;
    other.round--;
    text = signed_text(&other, &own, &size);
    put(f, "manifest.json", text, size);
    free(text);
    assert_int_equal(restored(f, &own, &err), MUSTER_E_RESTORE);
    assert_int_equal(f->value, -1);
}

/* Another state, written as muster would: all that the file itself tells of it fits. */
static void forge(struct shard_job *f, uint64_t rank, int64_t value)
{
    char path[FS_PATH_MAX];
    struct shard_facts facts = {.job = JOB,
                                .generation = f->manifest.generation,
                                .round = f->manifest.round,
                                .step = f->manifest.step,
                                .layout = f->manifest.layout,
                                .rank = rank,
                                .incarnation = shard_job_incarnation(rank),
                                .world_size = WORLD,
                                .total_run_calls = 12,
                                .epoch = 1,
                                .step_in_epoch = 2,
                                .data_position = -1};
    struct shard_files files = {0};
    struct muster_error err = {0};

    assert_int_equal(fs_path(path, NULL, "%s/%s", f->path, f->files[rank].files[0].path),
                     MUSTER_OK);
    assert_int_equal(remove(path), 0);
    f->value = value;
    shard_job_must(shard_save_state(f->path, &facts, f->state, NULL, &files, &err), &err);
    assert_int_equal(files.bytes, f->files[rank].bytes);
    shard_files_clear(&files);
}

static void a_forged_shard_is_not_restored(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};

    forge(f, 1, 666);
    assert_int_equal(restored(f, &own, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "blake2b-256:"));
}

/* There each part is checked by the file's own table, which a forger writes as well. */
static void a_forged_shard_is_not_restored_by_another_number_of_ranks(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    struct shard_restore r;

    for (uint64_t rank = 0; rank < WORLD; rank++)
        forge(f, rank, 666);
    r = shard_job_request(f, 0);
    r.world_size = 2;
    f->value = -1;
    shard_job_must(shard_restore(&r, NULL, &err), &err); /* nobody asked */
    assert_int_equal(f->value, 666);
    r.signer = own.public_text;
    f->value = -1;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "changed since it was saved"));
    assert_int_equal(f->value, -1);
}

static void another_number_of_ranks_restores_what_was_signed(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    f->same = true; /* an entry that is not split has to be */
    committed(state);
    r = shard_job_request(f, 0);
    r.world_size = 2;
    r.signer = own.public_text;
    f->value = -1;
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(f->value, 5);
}

static enum muster_status watched_save(struct shard_job *f, uint64_t rank, enum checksum_kind kind,
                                       struct safetensors_watch *watch, uint64_t *ret_bytes,
                                       struct muster_error *err)
{
    const struct shard_facts facts = {.job = JOB,
                                      .generation = 1,
                                      .round = 4,
                                      .step = 12,
                                      .layout = LAYOUT_SHARDED,
                                      .rank = rank,
                                      .incarnation = shard_job_incarnation(rank),
                                      .world_size = WORLD,
                                      .checksum = kind};
    struct shard_files files = {0};
    enum muster_status status =
        shard_save_state(f->round_dir, &facts, f->state, watch, &files, err);

    *ret_bytes = files.bytes;
    shard_files_clear(&files);
    return status;
}

/* It may take longer than the disk: then the broker must not think that the save hangs. */
static void strong_hashing_is_progress_and_can_be_broken_off(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct safetensors_watch plain = {0}, strong = {0}, stopped = {.stop = true};
    uint64_t bytes = 0;

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    shard_job_must(watched_save(f, 0, CHECKSUM_XXH3, &plain, &bytes, &err), &err);
    shard_job_must(watched_save(f, 1, CHECKSUM_STRONG, &strong, &bytes, &err), &err);
    assert_int_equal(atomic_load(&strong.bytes), atomic_load(&plain.bytes) + bytes);
    assert_int_equal(watched_save(f, 2, CHECKSUM_STRONG, &stopped, &bytes, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(what_was_signed_is_restored),
        T(nothing_is_restored_for_another_key),
        T(a_manifest_without_a_signature_is_not_used),
        T(a_manifest_whose_signature_was_cut_is_damage),
        T(a_manifest_of_another_job_or_step_does_not_take_its_place),
        T(a_forged_shard_is_not_restored),
        T(a_forged_shard_is_not_restored_by_another_number_of_ranks),
        T(another_number_of_ranks_restores_what_was_signed),
        T(strong_hashing_is_progress_and_can_be_broken_off),
    };

    return cmocka_run_group_tests_name("shard_signed", tests, NULL, NULL);
}
