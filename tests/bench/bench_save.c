/* The cost of a save and a restore of a state beside a plain write + fsync and a plain read of as
 * many bytes, by one process, on the same disk, in the same run: interleaved, medians, and memory
 * over what the state itself has. A disk whose pace is rationed, or a machine that others use,
 * needs many rounds. One JSON object on stdout; exit code 0 if each ratio is at least 0.9 and no
 * overhead reaches 64 MiB. Sizes in MiB may be given; the files go to $TMPDIR, else to the build's
 * folder. Warm: the file is in the page cache; cold: it was dropped from it. A save that takes the
 * sums which a signature needs is measured beside one that does not; that ratio has no limit.
 * save_direct: the limit writes past the cache while another thread takes the file's sum.
 * save_by_4: four threads have a quarter and a file each, plain and muster's.
 * hold: how long a save behind the training holds it, beside a copy of as many bytes by all cores
 * into memory that was written before. first_ms: the first hold of all, whose memory is new. */
#include "node/shard/fs.h"
#include "node/shard/safetensors.h"
#include "node/shard/snapshot.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ROUNDS_MAX 16 /* even: in half of them the one comes first, in half the other */
#define TENSORS 16
#define WRITERS 4
#define DIRECT_BYTES ((size_t)4 << 20)
#define RATIO_MIN 0.9
#define OVERHEAD_MAX_KIB (64 * 1024)
#define MIB ((uint64_t)1 << 20)
#define CORES_MAX 64
#define HOLD_RATIO_MIN (1 / 1.2)

/* Each with its neighbour: the limit, then muster. SIGNED: as below a broker with --sign. */
enum what {
    PLAIN_WRITE,
    SAVE,
    DIRECT_WRITE,
    SAVE_DIRECT,
    PLAIN_BY_4,
    SAVE_BY_4,
    UNSIGNED,
    SIGNED,
    READ_WARM,
    RESTORE_WARM,
    READ_COLD,
    RESTORE_COLD,
    COPY,
    HOLD,
    WHAT_COUNT
};

struct bench {
    char plain[FS_PATH_MAX], shard[FS_PATH_MAX];
    char unsigned_shard[FS_PATH_MAX], signed_shard[FS_PATH_MAX];
    char direct[FS_PATH_MAX], direct_shard[FS_PATH_MAX];
    char by_4[2 * WRITERS][FS_PATH_MAX]; /* plain ones, then shards */
    struct muster_state *quarters[WRITERS];
    uint64_t size;
    char *memory;
    struct muster_state *state;
    struct snapshot snapshot; /* its memory is COPY's, too */
    double first_s;
    uint64_t bytes; /* of the shard */
    char checksum[MANIFEST_CHECKSUM_SIZE];
    double seconds[WHAT_COUNT][ROUNDS_MAX];
    long overhead_kib[WHAT_COUNT]; /* the most */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_save: %s\n", what);
    exit(EXIT_FAILURE);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long status_kib(const char *key)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib;
}

static void reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");

    if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0)
        fail("cannot reset the peak of memory in use");
}

static void drop_from_cache(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        fail("cannot drop a file from the cache");
    close(fd);
}

/* A file that goes is told to the disk behind our back (discard); whoever is measured next would
 * pay for it. A pause on purpose: sync() awaits what the file system writes, and nothing tells when
 * the disk is through with the discard. Were it too short, the figures would be worse for both
 * sides alike: half of the rounds begin with the one, half with the other. */
static void remove_files(const struct bench *b)
{
    const uint64_t pause_ms = 100 + b->size / MIB / 10;
    const struct timespec pause = {.tv_sec = (time_t)(pause_ms / 1000),
                                   .tv_nsec = (long)(pause_ms % 1000) * 1000000};

    unlink(b->plain);
    unlink(b->shard);
    unlink(b->unsigned_shard);
    unlink(b->signed_shard);
    unlink(b->direct);
    unlink(b->direct_shard);
    for (int i = 0; i < 2 * WRITERS; i++)
        unlink(b->by_4[i]);
    sync();
    nanosleep(&pause, NULL);
}

/* A large shard is written past the cache. */
static void take_into_cache(const char *path)
{
    static char piece[MIB];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && read(fd, piece, sizeof piece) > 0)
        continue;
    if (fd < 0 || close(fd) != 0)
        fail("cannot read a file into the cache");
}

static void write_plainly(const char *path, const char *from, uint64_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        fail("cannot create the plain file");
    for (uint64_t at = 0; at < bytes; at += MIB)
        if (fs_write_all(fd, from + at, bytes - at < MIB ? (size_t)(bytes - at) : MIB) != 0)
            fail("cannot write the plain file");
    if (fsync(fd) != 0 || close(fd) != 0)
        fail("cannot write the plain file");
}

static void plain_write(struct bench *b)
{
    write_plainly(b->plain, b->memory, b->size);
}

static void *take_sum(void *arg)
{
    const struct bench *b = arg;
    XXH128_hash_t sum = XXH3_128bits(b->memory, b->size);

    return sum.low64 == 0 ? arg : NULL; /* so that it is taken */
}

/* Without O_DIRECT where the file system has none. */
static void direct_write(struct bench *b)
{
    int fd = open(b->direct, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0666);
    pthread_t thread;

    if (fd < 0)
        fd = open(b->direct, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)b->size) != 0 ||
        pthread_create(&thread, NULL, take_sum, b) != 0)
        fail("cannot create the direct file");
    for (uint64_t at = 0; at < b->size; at += DIRECT_BYTES) {
        uint64_t left = b->size - at;

        if (fs_write_all(fd, b->memory + at, left < DIRECT_BYTES ? (size_t)left : DIRECT_BYTES) !=
            0)
            fail("cannot write the direct file");
    }
    pthread_join(thread, NULL);
    if (fsync(fd) != 0 || close(fd) != 0)
        fail("cannot write the direct file");
}

struct writer {
    struct bench *b;
    int number;
};

static void *write_quarter(void *arg)
{
    const struct writer *writer = arg;
    const struct bench *b = writer->b;
    const uint64_t bytes = b->size / WRITERS;

    write_plainly(b->by_4[writer->number], b->memory + bytes * (uint64_t)writer->number, bytes);
    return NULL;
}

static void *save_quarter(void *arg)
{
    const struct writer *writer = arg;
    char checksum[MANIFEST_CHECKSUM_SIZE];
    struct muster_error err;
    uint64_t bytes;

    if (safetensors_save(writer->b->by_4[WRITERS + writer->number],
                         writer->b->quarters[writer->number], NULL, 0, NULL, CHECKSUM_XXH3, &bytes,
                         checksum, &err) != MUSTER_OK)
        fail(err.text);
    return NULL;
}

static void by_4(struct bench *b, void *(*quarter_fn)(void *))
{
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];

    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){b, i};
        if (pthread_create(&threads[i], NULL, quarter_fn, &writers[i]) != 0)
            fail("cannot start a thread");
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

static void plain_by_4(struct bench *b)
{
    by_4(b, write_quarter);
}

static void save_by_4(struct bench *b)
{
    by_4(b, save_quarter);
}

static void plain_read(struct bench *b)
{
    int fd = open(b->plain, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        fail("cannot open the plain file");
    for (uint64_t at = 0; at < b->size; at += MIB)
        if (fs_pread_all(fd, b->memory + at, MIB, at) != 0)
            fail("cannot read the plain file");
    close(fd);
}

static void save_as(struct bench *b, const char *path, enum checksum_kind kind,
                    char ret_checksum[MANIFEST_CHECKSUM_SIZE])
{
    struct muster_error err;

    if (safetensors_save(path, b->state, NULL, 0, NULL, kind, &b->bytes, ret_checksum, &err) !=
        MUSTER_OK)
        fail(err.text);
}

static void save(struct bench *b)
{
    save_as(b, b->shard, CHECKSUM_XXH3, b->checksum);
}

static void save_direct(struct bench *b)
{
    char checksum[MANIFEST_CHECKSUM_SIZE];

    save_as(b, b->direct_shard, CHECKSUM_XXH3, checksum);
}

static void save_unsigned(struct bench *b)
{
    char checksum[MANIFEST_CHECKSUM_SIZE];

    save_as(b, b->unsigned_shard, CHECKSUM_XXH3, checksum);
}

static void save_signed(struct bench *b)
{
    char checksum[MANIFEST_CHECKSUM_SIZE];

    save_as(b, b->signed_shard, CHECKSUM_STRONG, checksum);
}

static void restore(struct bench *b)
{
    struct muster_error err;

    if (safetensors_restore(b->shard, b->bytes, b->checksum, b->state, NULL, &err) != MUSTER_OK)
        fail(err.text);
}

struct part {
    char *to;
    const char *from;
    uint64_t bytes;
};

/* Past the caches, where the machine can: nobody reads the copy soon. */
static void *copy_part(void *arg)
{
    const struct part *part = arg;
    uint64_t at = 0;

#ifdef __SSE2__
    for (; at + 64 <= part->bytes; at += 64)
        for (uint64_t word = at; word < at + 64; word += 16)
            _mm_stream_si128((__m128i *)(void *)(part->to + word),
                             _mm_loadu_si128((const __m128i *)(const void *)(part->from + word)));
    _mm_sfence();
#endif
    memcpy(part->to + at, part->from + at, part->bytes - at);
    return NULL;
}

static void copy(struct bench *b)
{
    pthread_t threads[CORES_MAX];
    struct part parts[CORES_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = cores < 1 ? 1 : cores > CORES_MAX ? CORES_MAX : (uint64_t)cores;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = b->size / count * i / 64 * 64;
        uint64_t to = i + 1 < count ? b->size / count * (i + 1) / 64 * 64 : b->size;

        parts[i] = (struct part){b->snapshot.memory + from, b->memory + from, to - from};
        if (pthread_create(&threads[i], NULL, copy_part, &parts[i]) != 0)
            fail("cannot start a thread");
    }
    for (uint64_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void hold(struct bench *b)
{
    struct muster_error err;

    if (snapshot_take(&b->snapshot, b->state, NULL, NULL, &err) != MUSTER_OK)
        fail(err.text);
}

static void measure(struct bench *b, enum what what, int round)
{
    static void (*const calls[])(struct bench *) = {
        plain_write, save,       direct_write, save_direct, plain_by_4, save_by_4, save_unsigned,
        save_signed, plain_read, restore,      plain_read,  restore,    copy,      hold};
    double began;
    long before, over;

    if (what == READ_WARM)
        take_into_cache(b->plain);
    if (what == RESTORE_WARM)
        take_into_cache(b->shard);
    if (what == READ_COLD)
        drop_from_cache(b->plain);
    if (what == RESTORE_COLD)
        drop_from_cache(b->shard);
    reset_peak();
    before = status_kib("VmRSS:");
    began = now_s();
    calls[what](b);
    b->seconds[what][round] = now_s() - began;
    over = status_kib("VmHWM:") - before;
    if (over > b->overhead_kib[what])
        b->overhead_kib[what] = over;
}

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void fill(struct bench *b)
{
    uint64_t x = 88172645463325252U;

    for (uint64_t i = 0; i < b->size / sizeof x; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(b->memory + i * sizeof x, &x, sizeof x);
    }
}

static void make(struct bench *b, uint64_t mib)
{
    struct muster_error err;
    char name[32];

    b->size = mib * MIB;
    b->memory = aligned_alloc(4096, b->size);
    if (b->memory == NULL || state_create(&b->state, &err) != MUSTER_OK)
        fail("no memory for the state");
    fill(b);
    for (int i = 0; i < TENSORS; i++) {
        struct state_item item = {.name = name,
                                  .kind = STATE_KIND_TENSOR,
                                  .dtype = STATE_DTYPE_F32,
                                  .dim_count = 2,
                                  .shape = {1024, (int64_t)(b->size / TENSORS / 4096)},
                                  .data = b->memory + b->size / TENSORS * (uint64_t)i};

        snprintf(name, sizeof name, "layer.%d.weight", i);
        if (state_add(b->state, &item, &err) != MUSTER_OK)
            fail(err.text);
        if (i % (TENSORS / WRITERS) == 0 &&
            state_create(&b->quarters[i / (TENSORS / WRITERS)], &err) != MUSTER_OK)
            fail(err.text);
        if (state_add(b->quarters[i / (TENSORS / WRITERS)], &item, &err) != MUSTER_OK)
            fail(err.text);
    }
}

/* Prints it; false: it is not what FIGURES.md promises. */
static bool print_side(struct bench *b, const char *name, enum what plain, enum what ours,
                       int rounds)
{
    const double mib = (double)b->size / (double)MIB;
    double ratios[ROUNDS_MAX], ratio, plain_s, ours_s;

    /* Each beside its neighbours, since the disk's pace changes, and once before it and once
     * behind: on a disk with a ration the first of two is the faster one. */
    for (int i = 0; i + 1 < rounds; i += 2)
        ratios[i / 2] = (b->seconds[plain][i] + b->seconds[plain][i + 1]) /
                        (b->seconds[ours][i] + b->seconds[ours][i + 1]);
    ratio = median(ratios, rounds / 2); /* sorts */
    plain_s = median(b->seconds[plain], rounds);
    ours_s = median(b->seconds[ours], rounds);
    printf("\"%s\": {\"plain_mib_s\": %.0f, \"muster_mib_s\": %.0f, \"ratio\": %.3f, "
           "\"ratio_min\": %.3f, \"overhead_mib\": %.1f}",
           name, mib / plain_s, mib / ours_s, ratio, ratios[0],
           (double)b->overhead_kib[ours] / 1024);
    if (ours == HOLD) /* its memory is the copy's */
        return ratio >= HOLD_RATIO_MIN;
    return ratio >= RATIO_MIN && b->overhead_kib[ours] < OVERHEAD_MAX_KIB;
}

static bool run(const char *dir, uint64_t mib, int rounds, bool last)
{
    struct bench *b = calloc(1, sizeof *b);
    bool good;

    if (b == NULL)
        fail("no memory");
    snprintf(b->plain, sizeof b->plain, "%s/muster-bench-%d.plain", dir, (int)getpid());
    snprintf(b->shard, sizeof b->shard, "%s/muster-bench-%d.safetensors", dir, (int)getpid());
    snprintf(b->unsigned_shard, sizeof b->shard, "%s/muster-bench-%d.u", dir, (int)getpid());
    snprintf(b->signed_shard, sizeof b->shard, "%s/muster-bench-%d.s", dir, (int)getpid());
    snprintf(b->direct, sizeof b->direct, "%s/muster-bench-%d.d", dir, (int)getpid());
    snprintf(b->direct_shard, sizeof b->direct, "%s/muster-bench-%d.e", dir, (int)getpid());
    for (int i = 0; i < 2 * WRITERS; i++)
        snprintf(b->by_4[i], sizeof b->by_4[i], "%s/muster-bench-%d.%d", dir, (int)getpid(), i);
    make(b, mib);
    b->first_s = now_s();
    hold(b);
    b->first_s = now_s() - b->first_s;
    for (int round = -1; round < rounds; round++) { /* the first is not counted */
        for (int what = 0; what < WHAT_COUNT; what++) {
            int at = round < 0 ? 0 : round;
            bool swap = round % 2 != 0; /* neither is always the one after the other */

            measure(b, (enum what)(swap ? what ^ 1 : what), at);
        }
        remove_files(b);
    }
    printf("  {\"mib\": %" PRIu64 ", ", mib);
    good = print_side(b, "save", PLAIN_WRITE, SAVE, rounds);
    printf(", ");
    good = print_side(b, "save_direct", DIRECT_WRITE, SAVE_DIRECT, rounds) && good;
    printf(", ");
    good = print_side(b, "save_by_4", PLAIN_BY_4, SAVE_BY_4, rounds) && good;
    printf(", ");
    print_side(b, "save_signed", UNSIGNED, SIGNED, rounds); /* "plain" is the unsigned one */
    printf(", ");
    good = print_side(b, "restore_warm", READ_WARM, RESTORE_WARM, rounds) && good;
    printf(", ");
    good = print_side(b, "restore_cold", READ_COLD, RESTORE_COLD, rounds) && good;
    printf(", ");
    good = print_side(b, "hold", COPY, HOLD, rounds) && good;
    printf(", \"first_hold_ms\": %.0f}%s\n", b->first_s * 1000, last ? "" : ",");
    fflush(stdout);
    snapshot_clear(&b->snapshot);
    state_destroy(&b->state);
    for (int i = 0; i < WRITERS; i++)
        state_destroy(&b->quarters[i]);
    free(b->memory);
    free(b);
    return good;
}

int main(int argc, char **argv)
{
    static const uint64_t usual[] = {64, 1024, 4096};
    const char *dir = getenv("TMPDIR") != NULL      ? getenv("TMPDIR")
                      : getenv("BUILD_DIR") != NULL ? getenv("BUILD_DIR")
                                                    : ".";
    bool good = true;
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);

    printf("{\"bench\": \"save\", \"sizes\": [\n");
    for (int i = 0; i < count; i++) {
        uint64_t mib = argc > 1 ? strtoull(argv[i + 1], NULL, 10) : usual[i];

        good = run(dir, mib, mib < 512 ? 16 : mib < 2048 ? 10 : 6, i + 1 == count) && good;
    }
    printf("]}\n");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
