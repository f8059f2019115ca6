/* share - see share.h. The state file is JSON, replaced as a whole by rename. */
#include "node/notice/base/share.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_BYTES_MAX 262144

struct share {
    int dir_fd, lock_fd;
    bool held;
    pid_t pid;
    char lock_name[96], state_name[96], new_name[128];
};

static bool share_ours(const char *path)
{
    struct stat info;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 022) == 0;
}

bool share_directory(char *ret_path, size_t size)
{
    const char *own = getenv("MUSTER_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
    int length;

    if (own != NULL && own[0] == '/')
        length = snprintf(ret_path, size, "%s", own);
    else if (xdg != NULL && xdg[0] == '/')
        length = snprintf(ret_path, size, "%s/muster", xdg);
    else if (geteuid() == 0)
        length = snprintf(ret_path, size, "/run/muster");
    else
        length = snprintf(ret_path, size, "/tmp/muster-%u", (unsigned)geteuid());
    return length > 0 && (size_t)length < size && share_ours(ret_path);
}

static uint64_t share_hash(const char *text) /* FNV-1a: names a file, protects nothing */
{
    uint64_t value = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return value;
}

struct share *share_open(const char *runtime_dir, const char *source, const char *key)
{
    struct share *share = runtime_dir != NULL ? calloc(1, sizeof *share) : NULL;
    uint64_t name = share_hash(key);

    if (share == NULL)
        return NULL;
    share->pid = getpid();
    share->dir_fd = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    share->lock_fd = -1;
    snprintf(share->lock_name, sizeof share->lock_name, "notice-%s-%016llx.lock", source,
             (unsigned long long)name);
    snprintf(share->state_name, sizeof share->state_name, "notice-%s-%016llx.json", source,
             (unsigned long long)name);
    snprintf(share->new_name, sizeof share->new_name, "%s.%d.%p", share->state_name,
             (int)share->pid, (void *)share);
    if (share->dir_fd >= 0)
        share->lock_fd = openat(share->dir_fd, share->lock_name,
                                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (share->lock_fd < 0)
        share_close(&share);
    return share;
}

static bool share_try_lock(struct share *share)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (!share->held)
        share->held = fcntl(share->lock_fd, F_SETLK, &lock) == 0;
    return share->held;
}

bool share_is_asker(struct share *share, int64_t now_boot_ms)
{
    struct share_state *state;
    bool fresh;

    if (share_try_lock(share))
        return true;
    state = malloc(sizeof *state);
    fresh = state != NULL && share_read(share, now_boot_ms, state);
    free(state);
    return !fresh;
}

static json_t *share_item_json(const struct notice_item *item)
{
    return json_pack("{s:s,s:i,s:I,s:b,s:b,s:s}", "key", item->key, "kind", (int)item->kind,
                     "deadline", (json_int_t)item->deadline_boot_ms, "hard", item->hard,
                     "cancellable", item->cancellable, "text", item->text);
}

static json_t *share_state_json(const struct share_state *state)
{
    json_t *topics = json_array();

    for (size_t i = 0; i < SHARE_TOPICS_MAX; i++) {
        json_t *items = state->known[i] ? json_array() : json_null();

        for (size_t k = 0; state->known[i] && k < state->sets[i].count; k++)
            json_array_append_new(items, share_item_json(&state->sets[i].items[k]));
        json_array_append_new(topics, items);
    }
    return json_pack("{s:i,s:I,s:i,s:I,s:I,s:s,s:s,s:o}", "version", 2, "stamp",
                     (json_int_t)state->stamp_boot_ms, "state", (int)state->status.state, "ok",
                     (json_int_t)state->status.last_ok_boot_ms, "retry",
                     (json_int_t)state->status.retry_boot_ms, "text", state->status.text, "memory",
                     state->memory, "topics", topics);
}

static bool share_write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);

        if (written <= 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

void share_write(struct share *share, const struct share_state *state)
{
    json_t *json = share->held ? share_state_json(state) : NULL;
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    int fd = -1;

    json_decref(json);
    if (text != NULL)
        fd = openat(share->dir_fd, share->new_name,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        bool whole = share_write_all(fd, text, strlen(text));

        close(fd);
        if (!whole ||
            renameat(share->dir_fd, share->new_name, share->dir_fd, share->state_name) != 0)
            unlinkat(share->dir_fd, share->new_name, 0); /* the others will ask for themselves */
    }
    free(text);
}

static bool share_item_of(const json_t *json, struct notice_item *ret_item)
{
    const char *key, *text;
    int kind, hard, cancellable;
    json_int_t deadline;

    if (json_unpack((json_t *)(uintptr_t)json, "{s:s,s:i,s:I,s:b,s:b,s:s}", "key", &key, "kind",
                    &kind, "deadline", &deadline, "hard", &hard, "cancellable", &cancellable,
                    "text", &text) != 0 ||
        kind <= NOTICE_NONE || kind >= NOTICE_KIND_COUNT || strlen(key) > NOTICE_KEY_MAX)
        return false;
    *ret_item = (struct notice_item){.kind = (enum wire_notice_kind)kind,
                                     .deadline_boot_ms = deadline,
                                     .hard = hard != 0,
                                     .cancellable = cancellable != 0};
    memcpy(ret_item->key, key, strlen(key) + 1);
    notice_text(ret_item->text, text, strlen(text));
    return true;
}

static bool share_topics_of(const json_t *topics, struct share_state *state)
{
    for (size_t i = 0; i < SHARE_TOPICS_MAX && i < json_array_size(topics); i++) {
        const json_t *items = json_array_get(topics, i);

        state->known[i] = json_is_array(items);
        state->sets[i].count = 0;
        for (size_t k = 0; k < json_array_size(items); k++) {
            struct notice_item item;

            if (!share_item_of(json_array_get(items, k), &item))
                return false;
            notice_set_add(&state->sets[i], &item);
        }
    }
    return true;
}

static bool share_state_of(const json_t *json, struct share_state *ret_state)
{
    json_int_t stamp, ok, retry;
    int version, state;
    const char *text, *memory;
    json_t *topics;

    memset(ret_state, 0, sizeof *ret_state);
    if (json_unpack((json_t *)(uintptr_t)json, "{s:i,s:I,s:i,s:I,s:I,s:s,s:s,s:o}", "version",
                    &version, "stamp", &stamp, "state", &state, "ok", &ok, "retry", &retry, "text",
                    &text, "memory", &memory, "topics", &topics) != 0 ||
        version != 2 || strlen(memory) > SHARE_MEMORY_MAX || state < 0 ||
        state >= SOURCE_STATE_COUNT)
        return false;
    ret_state->stamp_boot_ms = stamp;
    ret_state->status.state = (enum source_state)state;
    ret_state->status.last_ok_boot_ms = ok;
    ret_state->status.retry_boot_ms = retry;
    snprintf(ret_state->status.text, sizeof ret_state->status.text, "%s", text);
    memcpy(ret_state->memory, memory, strlen(memory) + 1);
    return share_topics_of(topics, ret_state);
}

bool share_read(struct share *share, int64_t now_boot_ms, struct share_state *ret_state)
{
    int fd = openat(share->dir_fd, share->state_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char *bytes = fd >= 0 ? malloc(STATE_BYTES_MAX) : NULL;
    ssize_t size = bytes != NULL ? read(fd, bytes, STATE_BYTES_MAX) : -1;
    json_t *json = size > 0 ? json_loadb(bytes, (size_t)size, 0, NULL) : NULL;
    bool good = json != NULL && share_state_of(json, ret_state);

    json_decref(json);
    free(bytes);
    if (fd >= 0)
        close(fd);
    return good && now_boot_ms - ret_state->stamp_boot_ms < SHARE_STALE_MS &&
           ret_state->stamp_boot_ms - now_boot_ms < SHARE_STALE_MS;
}

void share_close(struct share **share)
{
    struct share *s = *share;

    if (s == NULL)
        return;
    *share = NULL;
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    if (s->dir_fd >= 0)
        close(s->dir_fd);
    free(s);
}

/* --- seats ------------------------------------------------------------------------------------ */

void share_seat_open(struct share_seat *seat, const char *runtime_dir, const char *source,
                     const char *key)
{
    seat->share = share_open(runtime_dir, source, key);
    seat->asks = seat->share == NULL;
    seat->state.status.state = SOURCE_PROBING;
    seat->state.status.last_ok_boot_ms = -1;
}

void share_seat_say(struct share_seat *seat, unsigned topic, const struct notice_set *set,
                    const struct source_out *out)
{
    seat->state.known[topic] = true;
    seat->state.sets[topic] = *set;
    out->say(out->arg, topic, set);
}

void share_seat_look(struct share_seat *seat, const struct notice_now *now, share_status_fn *status,
                     const void *self, const struct source_out *out)
{
    struct share_state *read;

    if (seat->share == NULL || now->boot_ms < seat->look_boot_ms)
        return;
    seat->look_boot_ms = now->boot_ms + SHARE_STAMP_MS;
    seat->asks = share_is_asker(seat->share, now->boot_ms);
    if (seat->asks) {
        seat->state.stamp_boot_ms = now->boot_ms;
        status(self, &seat->state.status);
        share_write(seat->share, &seat->state);
        return;
    }
    read = malloc(sizeof *read);
    if (read != NULL && share_read(seat->share, now->boot_ms, read)) {
        seat->state = *read;
        for (unsigned i = 0; i < SHARE_TOPICS_MAX; i++)
            if (seat->state.known[i])
                out->say(out->arg, i, &seat->state.sets[i]);
    }
    free(read);
}

int64_t share_seat_wakeup_boot_ms(const struct share_seat *seat, int64_t at)
{
    return seat->share != NULL && seat->look_boot_ms < at ? seat->look_boot_ms : at;
}

void share_seat_status(const struct share_seat *seat, struct source_status *ret_status)
{
    ret_status->state = seat->state.status.state;
    ret_status->last_ok_boot_ms = seat->state.status.last_ok_boot_ms;
    ret_status->retry_boot_ms = seat->state.status.retry_boot_ms;
    memcpy(ret_status->text, seat->state.status.text, sizeof ret_status->text);
}
