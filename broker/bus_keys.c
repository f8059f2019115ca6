#include "broker/bus_keys.h"

#include "broker/log.h"
#include "schema/error.h"
#include "schema/keys/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct bus_keys {
    char list_path[PATH_MAX], secret_path[PATH_MAX], sign_path[PATH_MAX];
    char secret[KEY_TEXT_BYTES + 1];
    struct sign_key sign;
    struct key_grant *items;
    size_t count;
    struct timespec changed; /* of the list's file, its mode too; with inode and size: which one was
                                read */
    ino_t inode;
    off_t size;
    int64_t looked_unix_ms;
};

/* --- files ------------------------------------------------------------------------------------ */

static enum muster_status key_file_is_ours(const char *path, const struct stat *info, mode_t others,
                                           struct muster_error *err)
{
    if (info->st_uid != geteuid() && info->st_uid != 0)
        return error_set(err, MUSTER_E_AUTH, "%s belongs to another user: `chown` it to this one",
                         path);
    if ((info->st_mode & others) != 0)
        return error_set(err, MUSTER_E_AUTH, "other users can %s %s: `chmod 600 %s`",
                         (others & S_IROTH) != 0 ? "read" : "write", path, path);
    return MUSTER_OK;
}

static enum muster_status key_bytes_read(int fd, const char *path, size_t most, char **ret_text,
                                         struct muster_error *err)
{
    char *text = malloc(most + 1);
    size_t size = 0;
    ssize_t got = 1;

    if (text == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to read %s", path);
    while (size < most && (got = read(fd, text + size, most - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    if (got == 0 && strlen(text) == size) {
        *ret_text = text;
        return MUSTER_OK;
    }
    secret_wipe(text, most);
    free(text);
    if (got < 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot read %s: %s", path, strerror(errno));
    return error_set(err, MUSTER_E_CORRUPT,
                     "%s is no text of at most %zu bytes: `muster key` did "
                     "not write it; restore the right file",
                     path, most);
}

/* others: what nobody else may do with it. *ret_text NULL: there is no such file. */
static enum muster_status key_text_read(const char *path, mode_t others, size_t most,
                                        char **ret_text, struct stat *ret_info,
                                        struct muster_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum muster_status status;

    *ret_text = NULL;
    *ret_info = (struct stat){0};
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return MUSTER_OK;
    if (fd < 0 || fstat(fd, ret_info) != 0)
        status = error_set_code(err, MUSTER_E_IO, errno,
                                "cannot open %s: %s; give musterd's user the right to read "
                                "it and to enter its directory, or choose another --db",
                                path, strerror(errno));
    else
        status = key_file_is_ours(path, ret_info, others, err);
    if (status == MUSTER_OK)
        status = key_bytes_read(fd, path, most, ret_text, err);
    if (fd >= 0)
        close(fd);
    return status;
}

static enum muster_status bus_keys_read(struct bus_keys *keys, struct muster_error *err)
{
    struct key_grant *items = NULL;
    struct muster_error why;
    enum muster_status status;
    struct stat info;
    size_t count = 0;
    char *text;

    status = key_text_read(keys->list_path, S_IWGRP | S_IWOTH, KEYS_BYTES_MAX, &text, &info, err);
    keys->changed = info.st_ctim;
    keys->inode = info.st_ino;
    keys->size = info.st_size;
    if (status == MUSTER_OK && text != NULL) {
        status = key_list_read(text, &items, &count, &why);
        if (status != MUSTER_OK)
            error_set(err, status,
                      "%s, %s: mend it; `muster key list` shows all keys once it can "
                      "be read",
                      keys->list_path, why.text);
    }
    free(text);
    free(keys->items);
    keys->items = items;
    keys->count = count;
    return status;
}

/* The one line of a file that only this user may read. *ret_text is NULL if there is no file. From
 * its reading on, no core file and no other process of this user reads the secret. */
static enum muster_status bus_keys_read_private(struct bus_keys *keys, const char *path,
                                                char **ret_text, struct muster_error *err)
{
    struct stat info;
    enum muster_status status =
        key_text_read(path, S_IRWXG | S_IRWXO, KEY_FILE_BYTES_MAX, ret_text, &info, err);

    if (status != MUSTER_OK || *ret_text == NULL)
        return status;
    prctl(PR_SET_DUMPABLE, 0);
    mlock(keys, sizeof *keys);
    (*ret_text)[strcspn(*ret_text, "\n")] = '\0';
    return MUSTER_OK;
}

static void bus_keys_forget(char *text)
{
    secret_wipe(text, strlen(text));
    free(text);
}

static enum muster_status bus_keys_read_secret(struct bus_keys *keys, struct muster_error *err)
{
    char *text;
    enum muster_status status = bus_keys_read_private(keys, keys->secret_path, &text, err);

    if (status != MUSTER_OK)
        return status;
    if (text == NULL)
        return error_set(err, MUSTER_E_AUTH,
                         "%s lists keys, but the broker's own key %s is missing: put it back, or "
                         "remove the list and make all keys again with `muster key add`",
                         keys->list_path, keys->secret_path);
    if (key_text_ok(text))
        memcpy(keys->secret, text, sizeof keys->secret);
    else
        status =
            error_set(err, MUSTER_E_CORRUPT,
                      "%s does not hold a broker's key: restore the right file", keys->secret_path);
    bus_keys_forget(text);
    return status;
}

enum muster_status bus_keys_read_sign(struct bus_keys *keys, struct muster_error *err)
{
    unsigned char seed[SIGN_SEED_BYTES];
    char *text;
    enum muster_status status = bus_keys_read_private(keys, keys->sign_path, &text, err);

    if (status != MUSTER_OK)
        return status;
    if (text == NULL)
        return error_set(err, MUSTER_E_AUTH,
                         "--sign needs a key, and %s is missing: put it back, or make a new one "
                         "with `muster key add NAME --job JOB --sign`",
                         keys->sign_path);
    if (sign_seed_read(text, seed))
        sign_key_make(seed, &keys->sign);
    else
        status =
            error_set(err, MUSTER_E_CORRUPT,
                      "%s does not hold a key that signs: restore the right file", keys->sign_path);
    secret_wipe(seed, sizeof seed);
    bus_keys_forget(text);
    return status;
}

enum muster_status bus_keys_read_client(const char *path, int64_t now_unix_ms,
                                        struct key_file *ret_file, struct muster_error *err)
{
    struct muster_error why;
    struct stat info;
    char *text;
    enum muster_status status =
        key_text_read(path, S_IRWXG | S_IRWXO, KEY_FILE_BYTES_MAX - 1, &text, &info, err);

    if (status != MUSTER_OK)
        return status;
    if (text == NULL)
        return error_set(err, MUSTER_E_AUTH, "there is no key file %s: correct --key-file", path);
    prctl(PR_SET_DUMPABLE, 0); /* a relay: from here on it has a secret in its memory */
    status = key_file_read(text, ret_file, &why);
    bus_keys_forget(text);
    if (status != MUSTER_OK)
        return error_set(err, status, "key file %s: %s; copy it again from where it was made", path,
                         why.text);
    if (ret_file->expires_unix_ms == 0 || now_unix_ms < ret_file->expires_unix_ms)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_AUTH,
                     "key %s in %s has expired: ask whoever runs the broker for a new one, or set "
                     "this host's clock if it is wrong",
                     ret_file->name, path);
}

/* --- open and close --------------------------------------------------------------------------- */

enum muster_status bus_keys_open(const char *db, struct bus_keys **ret_keys,
                                 struct muster_error *err)
{
    struct bus_keys *keys = calloc(1, sizeof *keys);
    enum muster_status status;

    if (keys == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the keys");
    snprintf(keys->secret_path, sizeof keys->secret_path, "%s.key", db);
    snprintf(keys->sign_path, sizeof keys->sign_path, "%s.sign", db);
    if (snprintf(keys->list_path, PATH_MAX, "%s.keys", db) >= PATH_MAX)
        status = error_set(err, MUSTER_E_ARGUMENT, "the database's path %.60s... is too long", db);
    else
        status = bus_keys_read(keys, err);
    if (status == MUSTER_OK && keys->count > 0)
        status = bus_keys_read_secret(keys, err);
    else if (status == MUSTER_OK && access(keys->secret_path, F_OK) == 0)
        status = error_set(err, MUSTER_E_AUTH,
                           "%s is gone, or empty, and this broker has a key: put the list back, "
                           "or remove %s as well if nobody is to need a key",
                           keys->list_path, keys->secret_path);
    if (status != MUSTER_OK) {
        bus_keys_close(&keys);
        return status;
    }
    *ret_keys = keys;
    return MUSTER_OK;
}

void bus_keys_close(struct bus_keys **keys)
{
    if (*keys == NULL)
        return;
    secret_wipe((*keys)->secret, sizeof(*keys)->secret);
    secret_wipe(&(*keys)->sign, sizeof(*keys)->sign);
    free((*keys)->items);
    free(*keys);
    *keys = NULL;
}

size_t bus_keys_count(const struct bus_keys *keys)
{
    return keys->count;
}

const char *bus_keys_secret(const struct bus_keys *keys)
{
    return keys->secret;
}

const struct sign_key *bus_keys_sign(const struct bus_keys *keys)
{
    return keys->sign.public_text[0] != '\0' ? &keys->sign : NULL;
}

/* --- a list that changes ---------------------------------------------------------------------- */

static bool keys_is_the_same(const struct bus_keys *keys, const struct stat *info)
{
    return info->st_ctim.tv_sec == keys->changed.tv_sec &&
           info->st_ctim.tv_nsec == keys->changed.tv_nsec && info->st_ino == keys->inode &&
           info->st_size == keys->size;
}

static bool keys_does_other(const struct key_grant *before, const struct key_grant *after)
{
    return after->role != before->role || strcmp(after->jobs, before->jobs) != 0;
}

static bool keys_ends_between(const struct key_grant *before, int64_t before_unix_ms,
                              const struct key_grant *after, int64_t after_unix_ms)
{
    return key_trouble(before, before_unix_ms) == NULL && key_trouble(after, after_unix_ms) != NULL;
}

static bool keys_does_less(const struct key_grant *before, const struct key_grant *after,
                           int64_t now_unix_ms)
{
    if (after == NULL || keys_does_other(before, after))
        return key_trouble(before, now_unix_ms) == NULL;
    return keys_ends_between(before, now_unix_ms, after, now_unix_ms);
}

/* The audit of the list. NULL: the key was not on it, or is not any more. */
static void bus_keys_say(const struct key_grant *before, const struct key_grant *after,
                         int64_t before_unix_ms, int64_t now_unix_ms)
{
    if (after == NULL)
        broker_log(LOG_LEVEL_INFO, "key %s was taken off the list", before->name);
    else if (before == NULL || keys_does_other(before, after))
        broker_log(LOG_LEVEL_INFO, "key %s %s: role %s, jobs %s", after->name,
                   before == NULL ? "was added to the list" : "was changed",
                   key_role_name(after->role), after->jobs);
    if (before != NULL && after != NULL &&
        keys_ends_between(before, before_unix_ms, after, now_unix_ms))
        broker_log(LOG_LEVEL_INFO, "key %s %s", after->name, key_trouble(after, now_unix_ms));
}

static bool keys_one_expired(struct bus_keys *keys, int64_t now_unix_ms)
{
    bool expired = false;

    for (size_t i = 0; i < keys->count && keys->looked_unix_ms != 0; i++) {
        const struct key_grant *key = &keys->items[i];

        expired |= keys_ends_between(key, keys->looked_unix_ms, key, now_unix_ms);
        bus_keys_say(key, key, keys->looked_unix_ms, now_unix_ms);
    }
    keys->looked_unix_ms = now_unix_ms;
    return expired;
}

static const struct key_grant *bus_keys_among(const struct key_grant *items, size_t count,
                                              const char *public_key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i].public_key, public_key) == 0)
            return &items[i];
    return NULL;
}

static void bus_keys_say_changes(const struct bus_keys *keys, const struct key_grant *before,
                                 size_t count, int64_t now_unix_ms)
{
    for (size_t i = 0; i < count; i++)
        bus_keys_say(&before[i], bus_keys_public(keys, before[i].public_key), now_unix_ms,
                     now_unix_ms);
    for (size_t i = 0; i < keys->count; i++)
        if (bus_keys_among(before, count, keys->items[i].public_key) == NULL)
            bus_keys_say(NULL, &keys->items[i], now_unix_ms, now_unix_ms);
}

bool bus_keys_changed(const struct bus_keys *keys)
{
    struct stat info = {0};

    if (stat(keys->list_path, &info) != 0 && errno != ENOENT)
        return true; /* to be read: that tells why it cannot be */
    return !keys_is_the_same(keys, &info);
}

enum muster_status bus_keys_look(struct bus_keys *keys, int64_t now_unix_ms, bool *ret_lost,
                                 struct muster_error *err)
{
    struct key_grant *before = keys->items;
    size_t count = keys->count;
    enum muster_status status;

    *ret_lost = keys_one_expired(keys, now_unix_ms);
    if (!bus_keys_changed(keys))
        return MUSTER_OK;
    keys->items = NULL;
    keys->count = 0;
    status = bus_keys_read(keys, err);
    if (status == MUSTER_OK && keys->size == 0)
        status =
            error_set(err, MUSTER_E_AUTH, "%s is gone, or empty: put it back", keys->list_path);
    for (size_t i = 0; i < count; i++)
        *ret_lost |=
            keys_does_less(&before[i], bus_keys_public(keys, before[i].public_key), now_unix_ms);
    if (status == MUSTER_OK)
        bus_keys_say_changes(keys, before, count, now_unix_ms);
    free(before);
    return status;
}

const struct key_grant *bus_keys_public(const struct bus_keys *keys, const char *text)
{
    return bus_keys_among(keys->items, keys->count, text);
}
