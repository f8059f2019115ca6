/* shard_tiles - see shard_tiles.h. */
#include "node/shard/shard_tiles.h"

#include "node/shard/fs.h"
#include "node/shard/safetensors_file.h"
#include "schema/arena.h"
#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tile { /* one rank's part of one tensor */
    const char *name;
    struct state_split split;
    int64_t end;
    uint64_t rank;
};

struct tiles {
    struct arena arena;
    struct tile *items;
    size_t count, capacity;
};

static bool tiles_is_split(const struct muster_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->items[i].split.is)
            return true;
    return false;
}

/* --- the shards ------------------------------------------------------------------------------ */

/* False: the name is of something else. */
static bool tiles_read_name(const char *found, uint64_t *ret_rank, uint64_t *ret_incarnation)
{
    static const char prefix[] = "shard-";
    char name[DIR_NAME_SIZE + sizeof DIR_SHARD_SUFFIX], *end;

    if (strncmp(found, prefix, sizeof prefix - 1) != 0)
        return false;
    *ret_rank = strtoull(found + sizeof prefix - 1, &end, 10);
    if (*end != '-')
        return false;
    *ret_incarnation = strtoull(end + 1, NULL, 16);
    dir_shard_name(*ret_rank, *ret_incarnation, name);
    memcpy(name + strlen(name), DIR_SHARD_SUFFIX, sizeof DIR_SHARD_SUFFIX);
    return strcmp(found, name) == 0;
}

/* The incarnation that wrote each rank's shard. False: some rank's is not there, or there are two.
 */
static bool tiles_find_shards(const char *round_dir, uint64_t world_size,
                              uint64_t *ret_incarnations)
{
    DIR *dir = fs_opendir(round_dir);
    const struct dirent *entry;
    uint64_t found = 0;
    bool twice = false;

    while (dir != NULL && (entry = fs_readdir(dir)) != NULL) {
        uint64_t rank, incarnation;

        if (!tiles_read_name(entry->d_name, &rank, &incarnation) || rank >= world_size)
            continue;
        twice |= ret_incarnations[rank] != 0; /* which of the two counts is not known here */
        ret_incarnations[rank] = incarnation;
        found++;
    }
    if (dir != NULL)
        closedir(dir);
    return found == world_size && !twice;
}

static bool shard_tiles_take(struct tiles *tiles, const struct safetensors_tensor *tensor,
                             uint64_t rank)
{
    struct tile *tile;

    if (tiles->count == tiles->capacity) {
        size_t capacity = tiles->capacity > 0 ? 2 * tiles->capacity : 64;
        struct tile *items = capacity > SHARD_TILES_MAX
                                 ? NULL
                                 : realloc(tiles->items, capacity * sizeof *tiles->items);
        if (items == NULL)
            return false;
        tiles->items = items;
        tiles->capacity = capacity;
    }
    tile = &tiles->items[tiles->count++];
    *tile = (struct tile){.name = arena_strdup(&tiles->arena, tensor->name),
                          .split = tensor->split,
                          .end = tensor->split.begin + tensor->shape[tensor->split.axis],
                          .rank = rank};
    return tile->name != NULL;
}

/* False: it cannot be read, and whoever verifies checkpoints will say so. */
static bool shard_tiles_take_shard(struct tiles *tiles, const char *round_dir, uint64_t rank,
                                   uint64_t incarnation)
{
    char path[FS_PATH_MAX], name[DIR_NAME_SIZE];
    struct safetensors_file file;
    bool ok;

    dir_shard_name(rank, incarnation, name);
    if (fs_path(path, NULL, "%s/%s%s", round_dir, name, DIR_SHARD_SUFFIX) != MUSTER_OK ||
        safetensors_file_open(path, &file, NULL) != MUSTER_OK)
        return false;
    ok = safetensors_file_read_header(&file, NULL) == MUSTER_OK;
    for (size_t i = 0; ok && i < safetensors_index_count(file.index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(file.index, i);

        if (tensor->split.is && tensor->shape[tensor->split.axis] > 0)
            ok = shard_tiles_take(tiles, tensor, rank);
    }
    safetensors_file_close(&file);
    return ok;
}

/* --- do they tile? --------------------------------------------------------------------------- */

static int shard_tiles_by_place(const void *a, const void *b)
{
    const struct tile *left = a, *right = b;
    int names = strcmp(left->name, right->name);

    if (names != 0)
        return names;
    if (left->split.begin != right->split.begin)
        return left->split.begin < right->split.begin ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

#define ADVICE                                                                               \
    "; the checkpoint is not committed: give each rank the range of muster_split_range, or " \
    "ranges that make the tensor whole"

static enum muster_status tiles_hole(const struct tile *behind, int64_t from, int64_t to,
                                     struct muster_error *err)
{
    return error_set(err, MUSTER_E_SAVE,
                     "tensor \"%s\": slices %" PRId64 " to %" PRId64 " of %" PRId64
                     " along axis %zu are saved by no rank (rank %" PRIu64 " has %" PRId64
                     " to %" PRId64 ")" ADVICE,
                     behind->name, from, to, behind->split.global_count, behind->split.axis,
                     behind->rank, behind->split.begin, behind->end);
}

static enum muster_status shard_tiles_overlap(const struct tile *one, const struct tile *other,
                                              struct muster_error *err)
{
    return error_set(err, MUSTER_E_SAVE,
                     "tensor \"%s\": ranks %" PRIu64 " and %" PRIu64 " both save slice %" PRId64
                     " along axis %zu (rank %" PRIu64 " has %" PRId64 " to %" PRId64
                     ", rank %" PRIu64 " has %" PRId64 " to %" PRId64 ")" ADVICE,
                     one->name, one->rank, other->rank, other->split.begin, one->split.axis,
                     one->rank, one->split.begin, one->end, other->rank, other->split.begin,
                     other->end);
}

/* The tiles of one tensor, by their place. */
static enum muster_status tiles_check_tensor(const struct tile *tiles, size_t count,
                                             struct muster_error *err)
{
    const struct tile *last = &tiles[count - 1];

    for (size_t i = 1; i < count; i++)
        if (tiles[i].split.axis != tiles->split.axis ||
            tiles[i].split.global_count != tiles->split.global_count)
            return error_set(err, MUSTER_E_SAVE,
                             "tensor \"%s\": rank %" PRIu64 " splits %" PRId64
                             " slices along axis %zu, and rank %" PRIu64 " %" PRId64
                             " along axis %zu" ADVICE,
                             tiles->name, tiles->rank, tiles->split.global_count, tiles->split.axis,
                             tiles[i].rank, tiles[i].split.global_count, tiles[i].split.axis);
    if (tiles->split.begin > 0)
        return tiles_hole(tiles, 0, tiles->split.begin, err);
    for (size_t i = 1; i < count; i++) {
        if (tiles[i].split.begin < tiles[i - 1].end)
            return shard_tiles_overlap(&tiles[i - 1], &tiles[i], err);
        if (tiles[i].split.begin > tiles[i - 1].end)
            return tiles_hole(&tiles[i], tiles[i - 1].end, tiles[i].split.begin, err);
    }
    return last->end < last->split.global_count
               ? tiles_hole(last, last->end, last->split.global_count, err)
               : MUSTER_OK;
}

static enum muster_status tiles_check_all(struct tiles *tiles, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    qsort(tiles->items, tiles->count, sizeof *tiles->items, shard_tiles_by_place);
    for (size_t from = 0, to; from < tiles->count && status == MUSTER_OK; from = to) {
        to = from + 1;
        while (to < tiles->count && strcmp(tiles->items[to].name, tiles->items[from].name) == 0)
            to++;
        status = tiles_check_tensor(&tiles->items[from], to - from, err);
    }
    return status;
}

enum muster_status shard_tiles_check(const char *round_dir, uint64_t world_size,
                                     const struct muster_state *state,
                                     struct safetensors_watch *watch, struct muster_error *err)
{
    uint64_t *incarnations;
    struct tiles tiles = {.items = NULL};
    bool all, stopped = false;
    enum muster_status status = MUSTER_OK;

    if (!tiles_is_split(state))
        return MUSTER_OK;
    incarnations = calloc(world_size, sizeof *incarnations);
    all = incarnations != NULL && tiles_find_shards(round_dir, world_size, incarnations);
    arena_init(&tiles.arena, 0);
    for (uint64_t rank = 0; all && rank < world_size && !stopped; rank++) {
        all = shard_tiles_take_shard(&tiles, round_dir, rank, incarnations[rank]);
        stopped = safetensors_is_stopped(watch); /* there may be thousands */
    }
    if (stopped)
        status = error_set_code(err, MUSTER_E_SAVE, ECANCELED, "the save in %.600s was broken off",
                                round_dir);
    else if (all)
        status = tiles_check_all(&tiles, err);
    arena_free(&tiles.arena);
    free(tiles.items);
    free(incarnations);
    return status;
}
