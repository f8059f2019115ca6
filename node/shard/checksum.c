/* checksum - see checksum.h. */
#include "node/shard/checksum.h"

#include "node/shard/fs.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MUSTER_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#define STRONG_BYTES 32
#define STRONG_ALIGN 64

struct checksum { /* one of both */
    XXH3_state_t *state;
    crypto_generichash_state *strong;
};

enum checksum_kind checksum_kind_of(const char *text)
{
    return manifest_checksum_is_strong(text) ? CHECKSUM_STRONG : CHECKSUM_XXH3;
}

static crypto_generichash_state *checksum_strong_create(void)
{
    const size_t size = (sizeof(crypto_generichash_state) + STRONG_ALIGN - 1) / STRONG_ALIGN;

    /* finds the fastest code for this processor */
    return sodium_init() < 0 ? NULL : aligned_alloc(STRONG_ALIGN, size * STRONG_ALIGN);
}

struct checksum *checksum_create(enum checksum_kind kind)
{
    struct checksum *sum = calloc(1, sizeof *sum);

    if (sum == NULL)
        return NULL;
    if (kind == CHECKSUM_STRONG)
        sum->strong = checksum_strong_create();
    else
        sum->state = XXH3_createState();
    if (sum->state == NULL && sum->strong == NULL) {
        free(sum);
        return NULL;
    }
    checksum_reset(sum);
    return sum;
}

void checksum_destroy(struct checksum **sum)
{
    if (sum == NULL || *sum == NULL)
        return;
    XXH3_freeState((*sum)->state);
    free((*sum)->strong);
    free(*sum);
    *sum = NULL;
}

void checksum_reset(struct checksum *sum)
{
    if (sum->strong != NULL)
        crypto_generichash_init(sum->strong, NULL, 0, STRONG_BYTES);
    else
        XXH3_128bits_reset(sum->state);
}

void checksum_update(struct checksum *sum, const void *data, size_t size)
{
    if (size == 0) /* data may be NULL with nothing to read */
        return;
    if (sum->strong != NULL)
        crypto_generichash_update(sum->strong, data, size);
    else
        XXH3_128bits_update(sum->state, data, size);
}

void checksum_text(const struct checksum *sum, char ret_text[MANIFEST_CHECKSUM_SIZE])
{
    unsigned char bytes[STRONG_BYTES];
    crypto_generichash_state strong;

    if (sum->strong == NULL) {
        checksum_bytes(sum, bytes);
        manifest_checksum_text(bytes, ret_text);
        return;
    }
    strong = *sum->strong; /* more may follow */
    crypto_generichash_final(&strong, bytes, sizeof bytes);
    manifest_strong_text(bytes, ret_text);
}

void checksum_bytes(const struct checksum *sum, unsigned char ret_sum[CHECKSUM_RAW_BYTES])
{
    XXH128_canonical_t bytes;

    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(sum->state));
    memcpy(ret_sum, bytes.digest, sizeof bytes.digest);
}

void checksum_raw(const void *data, size_t size, unsigned char ret_sum[CHECKSUM_RAW_BYTES])
{
    XXH128_canonical_t bytes;

    XXH128_canonicalFromHash(&bytes, XXH3_128bits(size > 0 ? data : "", size));
    memcpy(ret_sum, bytes.digest, sizeof bytes.digest);
}

/* Returns 0 or an errno value. */
static int checksum_sum_all(int fd, const struct fs_watcher *watcher, struct checksum *sum,
                            char *buffer, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;

    for (;;) {
        ssize_t n = pread(fd, buffer, FS_CHUNK_BYTES, (off_t)bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        checksum_update(sum, buffer, (size_t)n);
        bytes += (uint64_t)n;
        if (watcher != NULL && !watcher->went((uint64_t)n, watcher->arg))
            return ECANCELED;
    }
    *ret_bytes = bytes;
    return 0;
}

enum muster_status checksum_fd(int fd, const char *path, enum checksum_kind kind,
                               const struct fs_watcher *watcher, uint64_t *ret_bytes,
                               char ret_text[MANIFEST_CHECKSUM_SIZE], struct muster_error *err)
{
    struct checksum *sum = checksum_create(kind);
    char *buffer = malloc(FS_CHUNK_BYTES);
    int code = sum == NULL || buffer == NULL ? ENOMEM : 0;

    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint; its failure changes nothing */
    if (code == 0)
        code = checksum_sum_all(fd, watcher, sum, buffer, ret_bytes);
    if (code == 0)
        checksum_text(sum, ret_text);
    free(buffer);
    checksum_destroy(&sum);
    if (code == 0)
        return MUSTER_OK;
    return fs_fail(err, code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_IO, code, "read", path);
}

enum muster_status checksum_file(const char *path, enum checksum_kind kind,
                                 const struct fs_watcher *watcher, uint64_t *ret_bytes,
                                 char ret_text[MANIFEST_CHECKSUM_SIZE], struct muster_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    enum muster_status status = fs_open_regular(path, &fd, &size, err);

    if (status != MUSTER_OK)
        return status;
    status = checksum_fd(fd, path, kind, watcher, ret_bytes, ret_text, err);
    close(fd);
    return status;
}
