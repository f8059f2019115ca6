/* cmd_key - the verb that decides who may use a broker over TCP: key add, list, revoke,
 * rotate, show.
 * Owns: DATABASE.key (the broker's secret, made once), DATABASE.sign (the same for its signatures)
 * and DATABASE.keys (the list), which musterd reads again when it changes. It asks no broker, so it
 * works before the first start. Whoever may write these files may use it. */
#include "node/link_key.h"
#include "node/shard/fs.h"
#include "schema/keys/secret.h"
#include "schema/manifest/sign.h"
#include "schema/paths.h"
#include "schema/wire/wire.h"
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define LIST_HEAD                                                                                \
    "# Who may use this broker over TCP. `muster key` writes this file, and musterd reads it.\n" \
    "# NAME ROLE JOBS PUBLIC-KEY NOT-BEFORE EXPIRES REVOKED (unix milliseconds, - for none)\n"

#define ROTATE_DAYS 7 /* for which the old key counts, if nobody says otherwise */

struct key_store {
    char list_path[FS_PATH_MAX], secret_path[FS_PATH_MAX], sign_path[FS_PATH_MAX];
    char directory[FS_PATH_MAX];
    struct key_grant *keys;
    size_t count;
    int lock_fd;
};

/* --- the files -------------------------------------------------------------------------------- */

static int key_store_name(struct tool *tool, struct key_store *store)
{
    char db[PATH_BYTES_MAX + 1];
    const char *slash;

    if (tool->values[OPTION_DB] != NULL && strstr(tool->values[OPTION_DB], "://") != NULL)
        return tool_fail(TOOL_USAGE, "keys lie beside the file of musterd --db: name that file");
    if (tool->values[OPTION_DB] != NULL)
        snprintf(db, sizeof db, "%s", tool->values[OPTION_DB]);
    else if (!paths_default_db((unsigned)geteuid(), getenv("XDG_STATE_HOME"), getenv("HOME"), db))
        return tool_fail(TOOL_USAGE, "no variable says where the broker's database is: name it "
                                     "with --db PATH");
    slash = strrchr(db, '/');
    snprintf(store->directory, sizeof store->directory, "%.*s",
             slash != NULL ? (int)(slash - db) : 1, slash != NULL ? db : ".");
    snprintf(store->list_path, sizeof store->list_path, "%s.keys", db);
    snprintf(store->secret_path, sizeof store->secret_path, "%s.key", db);
    snprintf(store->sign_path, sizeof store->sign_path, "%s.sign", db);
    return TOOL_DONE;
}

static int key_store_read(struct key_store *store)
{
    struct muster_error err, why;
    enum muster_status status;
    char *text = NULL;
    size_t size;

    status = fs_read_small(store->list_path, KEYS_BYTES_MAX, &text, &size, &err);
    if (status == MUSTER_E_NOT_FOUND)
        return TOOL_DONE;
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    status = key_list_read(text, &store->keys, &store->count, &why);
    free(text);
    if (status != MUSTER_OK)
        return tool_fail(TOOL_REFUSED, "%s, %s: mend that line, then try again", store->list_path,
                         why.text);
    return TOOL_DONE;
}

/* Only one process at a time may change the list. */
static int key_store_lock(struct key_store *store)
{
    struct muster_error err;

    umask(077);
    if (fs_make_dirs(store->directory, &err) != MUSTER_OK)
        return tool_fail(TOOL_REFUSED, "%s", err.text);
    store->lock_fd = fs_open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (store->lock_fd < 0 || access(store->directory, W_OK) != 0 ||
        flock(store->lock_fd, LOCK_EX) != 0)
        return tool_fail(TOOL_REFUSED,
                         "cannot write to %s: %s; run it as the user who runs musterd, or name "
                         "another database with --db",
                         store->directory, strerror(errno));
    return key_store_read(store);
}

static void key_store_close(struct key_store *store)
{
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->keys);
}

/* Root makes keys for the user whose the directory is, and who runs musterd. */
static void key_store_give(const struct key_store *store, const char *path)
{
    struct stat info;

    if (geteuid() == 0 && fstat(store->lock_fd, &info) == 0 && info.st_uid != 0 &&
        chown(path, info.st_uid, info.st_gid) != 0)
        tool_fail(TOOL_NO, "cannot give %s to the owner of %s: %s; `chown` it to who runs musterd",
                  path, store->directory, strerror(errno));
}

static int key_store_write(const struct key_store *store)
{
    char *text = malloc(sizeof LIST_HEAD + store->count * KEY_LINE_BYTES_MAX);
    struct muster_error err;
    enum muster_status status;
    size_t size = strlen(LIST_HEAD);

    if (text == NULL)
        return tool_fail(TOOL_NO, "no memory for the list of keys");
    memcpy(text, LIST_HEAD, size + 1);
    for (size_t i = 0; i < store->count; i++)
        size += key_grant_write(&store->keys[i], text + size);
    status = fs_replace(store->directory, store->directory, store->list_path, text, size, &err);
    free(text);
    if (status != MUSTER_OK)
        return tool_fail(TOOL_REFUSED, "%s", err.text);
    key_store_give(store, store->list_path);
    return TOOL_DONE;
}

/* The broker's pair, made if it has none yet. */
static int key_of_broker(const struct key_store *store, char ret_public[KEY_TEXT_BYTES + 1])
{
    char secret[KEY_TEXT_BYTES + 2] = "";
    struct muster_error err;
    enum muster_status status;
    char *text = NULL;
    size_t size;

    status = fs_read_small(store->secret_path, KEY_FILE_BYTES_MAX, &text, &size, &err);
    if (status == MUSTER_OK) {
        snprintf(secret, sizeof secret, "%.*s", KEY_TEXT_BYTES, text);
        secret_wipe(text, size);
        free(text);
    } else if (status == MUSTER_E_NOT_FOUND && store->count > 0) {
        return tool_fail(TOOL_REFUSED,
                         "%s lists keys, but the broker's own key %s is missing: put it back, or "
                         "remove the list and make all keys again",
                         store->list_path, store->secret_path);
    } else if (status == MUSTER_E_NOT_FOUND) {
        zmq_curve_keypair(ret_public, secret);
        secret[KEY_TEXT_BYTES] = '\n';
        status = fs_write_new(store->secret_path, secret, KEY_TEXT_BYTES + 1, &err);
        secret[KEY_TEXT_BYTES] = '\0';
        key_store_give(store, store->secret_path);
    }
    if (status == MUSTER_OK && (!key_text_ok(secret) || zmq_curve_public(ret_public, secret) != 0))
        status = MUSTER_E_CORRUPT;
    secret_wipe(secret, sizeof secret);
    if (status == MUSTER_E_CORRUPT)
        return tool_fail(TOOL_REFUSED, "%s does not hold a broker's key: restore the right file",
                         store->secret_path);
    return status == MUSTER_OK ? TOOL_DONE : tool_fail(TOOL_REFUSED, "%s", err.text);
}

/* A new pair has a new public key, by which no checkpoint is signed so far. */
static int key_make_seed(const struct key_store *store, unsigned char seed[SIGN_SEED_BYTES])
{
    char text[SIGN_SEED_TEXT + 2];
    struct muster_error err;
    enum muster_status status;

    if (getrandom(seed, SIGN_SEED_BYTES, 0) != SIGN_SEED_BYTES)
        return tool_fail(TOOL_NO, "no random numbers: %s", strerror(errno));
    sign_seed_write(seed, text);
    text[SIGN_SEED_TEXT] = '\n';
    status = fs_write_new(store->sign_path, text, SIGN_SEED_TEXT + 1, &err);
    secret_wipe(text, sizeof text);
    if (status != MUSTER_OK)
        return tool_fail(TOOL_REFUSED, "%s", err.text);
    key_store_give(store, store->sign_path);
    return TOOL_DONE;
}

/* The public key that the broker signs with; its pair is made if there is none yet. */
static int key_of_signer(const struct key_store *store, char ret_public[SIGNER_MAX + 1])
{
    unsigned char seed[SIGN_SEED_BYTES];
    struct sign_key key;
    struct muster_error err;
    char *text = NULL;
    size_t size;
    enum muster_status status =
        fs_read_small(store->sign_path, KEY_FILE_BYTES_MAX, &text, &size, &err);
    int code = status == MUSTER_OK || status == MUSTER_E_NOT_FOUND
                   ? TOOL_DONE
                   : tool_fail(TOOL_REFUSED, "%s", err.text);

    if (status == MUSTER_E_NOT_FOUND)
        code = key_make_seed(store, seed);
    if (status == MUSTER_OK) {
        text[strcspn(text, "\n")] = '\0';
        if (!sign_seed_read(text, seed))
            code =
                tool_fail(TOOL_REFUSED, "%s does not hold a key that signs: restore the right file",
                          store->sign_path);
        secret_wipe(text, size);
        free(text);
    }
    if (code == TOOL_DONE) {
        sign_key_make(seed, &key);
        memcpy(ret_public, key.public_text, SIGNER_MAX + 1);
        secret_wipe(&key, sizeof key);
    }
    secret_wipe(seed, sizeof seed);
    return code;
}

/* --- add -------------------------------------------------------------------------------------- */

/* "90s", "12h", "30d". 0: never. */
static int key_expiry(const struct tool *tool, int64_t *ret_unix_ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', DAY_MS}};
    const char *text = tool->values[OPTION_EXPIRES];
    char *end = NULL;
    long number;

    *ret_unix_ms = 0;
    if (text == NULL)
        return TOOL_DONE;
    number = strtol(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != text && end[0] == units[i].unit && end[1] == '\0' && number > 0 &&
            number <= 100 * 365 * (DAY_MS / units[i].ms))
            *ret_unix_ms = tool->now_unix_ms + number * units[i].ms;
    if (*ret_unix_ms == 0)
        return tool_fail(TOOL_USAGE,
                         "--expires is a number of days, hours, minutes or seconds as "
                         "30d, 12h, 90m or 600s, at most 36500d, not \"%s\"",
                         text);
    return TOOL_DONE;
}

static int key_words(const struct tool *tool, struct key_grant *grant)
{
    const char *role = tool->values[OPTION_ROLE] != NULL ? tool->values[OPTION_ROLE] : "node";
    const char *jobs = tool->values[OPTION_JOB];

    if (!wire_job_name_ok(tool->args[1]))
        return tool_fail(TOOL_USAGE,
                         "a key's name has letters, digits, '.', '_' and '-', at most %d of them: "
                         "not \"%s\"",
                         JOB_NAME_MAX, tool->args[1]);
    grant->role = key_role_named(role);
    if (grant->role == KEY_NOBODY)
        return tool_fail(TOOL_USAGE, "--role is node, operator or viewer, not \"%s\"", role);
    if (jobs == NULL)
        return tool_fail(TOOL_USAGE, "say for which job the key is: --job JOB, --job 'PREFIX*', or "
                                     "--job '*' for all");
    if (!key_jobs_ok(jobs))
        return tool_fail(TOOL_USAGE,
                         "--job %s is no job's name, nor the begin of one with * "
                         "behind it",
                         jobs);
    snprintf(grant->name, sizeof grant->name, "%s", tool->args[1]);
    snprintf(grant->jobs, sizeof grant->jobs, "%s", jobs);
    return key_expiry(tool, &grant->expires_unix_ms);
}

static struct key_grant *key_find(const struct key_store *store, const char *name)
{
    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->keys[i].name, name) == 0)
            return &store->keys[i];
    return NULL;
}

static int key_is_free(const struct key_store *store, const char *name)
{
    if (key_find(store, name) != NULL)
        return tool_fail(TOOL_REFUSED,
                         "there is a key %s already: choose another name (a name that was revoked "
                         "is not used again, so that the log stays clear)",
                         name);
    if (store->count >= KEYS_MAX)
        return tool_fail(TOOL_REFUSED,
                         "%s lists %d keys, and more do not fit: remove lines of old ones",
                         store->list_path, KEYS_MAX);
    return TOOL_DONE;
}

/* First the client's file, then the list: a list must not name a key that nobody has. */
static int key_write_both(struct key_store *store, const struct key_grant *grant,
                          const struct key_file *file, const char *path)
{
    char text[KEY_FILE_BYTES_MAX];
    struct key_grant *keys = realloc(store->keys, (store->count + 1) * sizeof *keys);
    struct muster_error err;
    enum muster_status status;
    size_t size;
    int code;

    if (keys == NULL)
        return tool_fail(TOOL_NO, "no memory for the list of keys");
    store->keys = keys;
    keys[store->count++] = *grant;
    size = key_file_write(file, text);
    status = fs_write_new(path, text, size, &err);
    secret_wipe(text, sizeof text);
    if (status == MUSTER_E_EXISTS)
        return tool_fail(TOOL_REFUSED, "%s exists: move it away, or write another with --file FILE",
                         path);
    if (status != MUSTER_OK)
        return tool_fail(TOOL_REFUSED, "%s", err.text);
    code = key_store_write(store);
    if (code != TOOL_DONE)
        unlink(path);
    return code;
}

static int key_print_added(struct tool *tool, const struct key_grant *grant, const char *path)
{
    json_t *document;

    if (!tool_json(tool)) {
        fprintf(tool->out,
                "Key %s is in %s: role %s, jobs %s. Whoever can read the file has the key.\n"
                "Programs and `muster` use it with MUSTER_KEY_FILE=%s\n",
                grant->name, path, key_role_name(grant->role), grant->jobs, path);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "key", json_string(grant->name));
    json_object_set_new(document, "file", json_string(path));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* The pair of a key whose words are there, its file, and its line of the list. The store is locked.
 */
static int key_make(struct tool *tool, struct key_store *store, struct key_grant *grant)
{
    struct key_file file = {.role = KEY_NOBODY};
    char path[FS_PATH_MAX];
    int code = key_is_free(store, grant->name);

    if (code == TOOL_DONE)
        code = key_of_broker(store, file.broker_key);
    if (code == TOOL_DONE && tool->values[OPTION_SIGN] != NULL)
        code = key_of_signer(store, file.signer);
    if (code != TOOL_DONE)
        return code;
    if (zmq_curve_keypair(grant->public_key, file.secret_key) != 0)
        return tool_fail(TOOL_NO, "this libzmq makes no keys (%s): install one with CURVE",
                         zmq_strerror(errno));
    memcpy(file.name, grant->name, sizeof file.name);
    memcpy(file.jobs, grant->jobs, sizeof file.jobs);
    memcpy(file.public_key, grant->public_key, sizeof file.public_key);
    file.role = grant->role;
    file.expires_unix_ms = grant->expires_unix_ms;
    if (tool->values[OPTION_FILE] != NULL)
        snprintf(path, sizeof path, "%s", tool->values[OPTION_FILE]);
    else
        snprintf(path, sizeof path, "%s.key", grant->name);
    code = key_write_both(store, grant, &file, path);
    secret_wipe(&file, sizeof file);
    return code == TOOL_DONE ? key_print_added(tool, grant, path) : code;
}

static int key_add(struct tool *tool, struct key_store *store)
{
    struct key_grant grant = {.from_unix_ms = 0};
    int code = key_words(tool, &grant);

    if (code == TOOL_DONE)
        code = key_store_lock(store);
    return code == TOOL_DONE ? key_make(tool, store, &grant) : code;
}

/* Makes a new key for what the old one is for. The old one stays valid until its hosts have the new
 * one. */
static int key_rotate(struct tool *tool, struct key_store *store)
{
    struct key_grant grant = {.from_unix_ms = 0}, *old;
    int64_t until_unix_ms = 0;
    int code = key_expiry(tool, &until_unix_ms);

    if (code == TOOL_DONE && !wire_job_name_ok(tool->args[2]))
        return tool_fail(TOOL_USAGE, "\"%s\" is no name for a key", tool->args[2]);
    if (code == TOOL_DONE)
        code = key_store_lock(store);
    old = code == TOOL_DONE ? key_find(store, tool->args[1]) : NULL;
    if (code == TOOL_DONE && (old == NULL || key_trouble(old, tool->now_unix_ms) != NULL))
        return tool_fail(TOOL_NO,
                         "%s lists no key %s that counts: `muster key list` shows all, and "
                         "`muster key add` makes one",
                         store->list_path, tool->args[1]);
    if (code != TOOL_DONE)
        return code;
    if (until_unix_ms == 0)
        until_unix_ms = tool->now_unix_ms + ROTATE_DAYS * DAY_MS;
    if (old->expires_unix_ms == 0 || old->expires_unix_ms > until_unix_ms)
        old->expires_unix_ms = until_unix_ms;
    until_unix_ms = old->expires_unix_ms;
    grant.role = old->role;
    memcpy(grant.jobs, old->jobs, sizeof grant.jobs);
    snprintf(grant.name, sizeof grant.name, "%s", tool->args[2]);
    code = key_make(tool, store, &grant);
    if (code == TOOL_DONE && !tool_json(tool))
        fprintf(tool->out,
                "The old key %s counts until %s: give its hosts the new one before that.\n",
                tool->args[1], render_stamp(until_unix_ms).text);
    return code;
}

/* --- list, revoke, show ----------------------------------------------------------------------- */

static const char *key_state(const struct key_grant *grant, int64_t now_unix_ms)
{
    const char *trouble = key_trouble(grant, now_unix_ms);

    if (trouble == NULL)
        return "good";
    if (grant->revoked_unix_ms != 0)
        return "revoked";
    return now_unix_ms < grant->from_unix_ms ? "not yet" : "expired";
}

static json_t *key_json(const struct key_grant *grant, int64_t now_unix_ms)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:s}", "name", grant->name, "role",
                     key_role_name(grant->role), "jobs", grant->jobs, "state",
                     key_state(grant, now_unix_ms), "expires_unix_ms",
                     (json_int_t)grant->expires_unix_ms, "revoked_unix_ms",
                     (json_int_t)grant->revoked_unix_ms, "public_key", grant->public_key);
}

static int key_list(struct tool *tool, struct key_store *store)
{
    int code = key_store_read(store);
    json_t *document, *list;

    if (code != TOOL_DONE)
        return code;
    if (tool_json(tool)) {
        document = render_document();
        list = json_array();
        for (size_t i = 0; i < store->count; i++)
            json_array_append_new(list, key_json(&store->keys[i], tool->now_unix_ms));
        json_object_set_new(document, "keys", list);
        return render_json(document, tool->out, false)
                   ? TOOL_DONE
                   : tool_fail(TOOL_NO, "no memory for the answer");
    }
    if (store->count == 0)
        return tool_fail(TOOL_NO, "%s lists no key: `muster key add NAME --job JOB` makes one",
                         store->list_path);
    fprintf(tool->out, "%-20s %-9s %-20s %-8s %s\n", "NAME", "ROLE", "JOBS", "STATE", "EXPIRES");
    for (size_t i = 0; i < store->count; i++) {
        const struct key_grant *key = &store->keys[i];

        fprintf(tool->out, "%-20s %-9s %-20s %-8s %s\n", key->name, key_role_name(key->role),
                key->jobs, key_state(key, tool->now_unix_ms),
                key->expires_unix_ms != 0 ? render_stamp(key->expires_unix_ms).text : "never");
    }
    return TOOL_DONE;
}

static bool key_any_counts(const struct tool *tool, const struct key_store *store)
{
    for (size_t i = 0; i < store->count; i++)
        if (key_trouble(&store->keys[i], tool->now_unix_ms) == NULL)
            return true;
    return false;
}

static int key_revoke(struct tool *tool, struct key_store *store)
{
    int code = key_store_lock(store);
    struct key_grant *grant;

    if (code != TOOL_DONE)
        return code;
    grant = key_find(store, tool->args[1]);
    if (grant == NULL)
        return tool_fail(TOOL_NO, "%s lists no key %s: `muster key list` shows all",
                         store->list_path, tool->args[1]);
    if (grant->revoked_unix_ms == 0) {
        grant->revoked_unix_ms = tool->now_unix_ms;
        code = key_store_write(store);
    }
    if (code == TOOL_DONE)
        fprintf(tool->out,
                "Key %s is revoked. A running musterd refuses its next message; a launch that "
                "uses it ends as if its ranks were lost.\n",
                grant->name);
    if (code == TOOL_DONE && !key_any_counts(tool, store))
        fprintf(tool->out, "No key is left that counts: nobody is let in over TCP any more. "
                           "`muster key add NAME --job JOB` makes another one.\n");
    return code;
}

static int key_show(struct tool *tool)
{
    struct muster_error err;
    struct key_file file;
    char signer[SIGNER_MAX + 16] = "";
    enum muster_status status = link_key_read(tool->args[1], &file, &err);

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    secret_wipe(file.secret_key, sizeof file.secret_key);
    if (file.signer[0] != '\0')
        snprintf(signer, sizeof signer, "signer   %s\n", file.signer);
    fprintf(tool->out,
            "name     %s\nrole     %s\njobs     %s\nexpires  %s\npublic   %s\nbroker   %s\n%s",
            file.name, key_role_name(file.role), file.jobs,
            file.expires_unix_ms != 0 ? render_stamp(file.expires_unix_ms).text : "never",
            file.public_key, file.broker_key, signer);
    return TOOL_DONE;
}

int cmd_key(struct tool *tool)
{
    static const struct {
        const char *word;
        int words;
        int (*run)(struct tool *, struct key_store *);
    } subs[] = {{"add", 2, key_add},
                {"list", 1, key_list},
                {"revoke", 2, key_revoke},
                {"rotate", 3, key_rotate}};
    struct key_store store = {.lock_fd = -1};
    int code;

    if (strcmp(tool->args[0], "show") == 0 && tool->args_count == 2)
        return key_show(tool);
    for (size_t i = 0; i < sizeof subs / sizeof *subs; i++) {
        if (strcmp(tool->args[0], subs[i].word) != 0 || tool->args_count != subs[i].words)
            continue;
        code = key_store_name(tool, &store);
        if (code == TOOL_DONE)
            code = subs[i].run(tool, &store);
        key_store_close(&store);
        return code;
    }
    return tool_fail(TOOL_USAGE, "write `muster key add NAME --job JOB`, `muster key list`, "
                                 "`muster key revoke NAME`, `muster key rotate NAME NEW` or "
                                 "`muster key show FILE`");
}
