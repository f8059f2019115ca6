#include "schema/keys/keys.h"

#include "schema/error.h"
#include "schema/keys/secret.h"
#include "schema/manifest/sign.h"
#include "schema/number.h"
#include "schema/wire/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 8
#define WORDS_OF_KEY 7

static const char z85[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          ".-:+=^!/*?&<>()[]{}@%$#";

/* --- words ------------------------------------------------------------------------------------ */

static const char *const role_names[KEY_ROLE_COUNT] = {"nobody", "node", "operator", "viewer"};

const char *key_role_name(enum key_role role)
{
    return role_names[role < KEY_ROLE_COUNT ? role : KEY_NOBODY];
}

enum key_role key_role_named(const char *name)
{
    for (unsigned role = KEY_NOBODY + 1; role < KEY_ROLE_COUNT; role++)
        if (strcmp(name, role_names[role]) == 0)
            return role;
    return KEY_NOBODY;
}

bool key_text_ok(const char *text)
{
    return strlen(text) == KEY_TEXT_BYTES && strspn(text, z85) == KEY_TEXT_BYTES;
}

bool key_jobs_ok(const char *jobs)
{
    char prefix[JOB_NAME_MAX + 1];
    size_t length = strnlen(jobs, JOB_NAME_MAX + 1);

    if (length == 0 || length > JOB_NAME_MAX)
        return false;
    if (jobs[length - 1] != '*')
        return wire_job_name_ok(jobs);
    memcpy(prefix, jobs, length - 1);
    prefix[length - 1] = '\0';
    return length == 1 || wire_job_name_ok(prefix);
}

bool key_covers(const char *jobs, const char *job)
{
    size_t length = strlen(jobs);

    if (strcmp(jobs, "*") == 0)
        return true;
    if (job == NULL || job[0] == '\0' || length == 0)
        return false;
    if (jobs[length - 1] == '*')
        return strncmp(job, jobs, length - 1) == 0;
    return strcmp(job, jobs) == 0;
}

bool key_is_bounded(const char *jobs)
{
    return jobs != NULL && strcmp(jobs, "*") != 0;
}

const char *key_trouble(const struct key_grant *grant, int64_t now_unix_ms)
{
    if (grant->revoked_unix_ms != 0)
        return "was revoked";
    if (grant->expires_unix_ms != 0 && now_unix_ms >= grant->expires_unix_ms)
        return "has expired";
    if (now_unix_ms < grant->from_unix_ms)
        return "is not valid yet";
    return NULL;
}

/* --- the list --------------------------------------------------------------------------------- */

static enum muster_status key_wrong(int line, const char *what, const char *word,
                                    struct muster_error *err)
{
    return error_set(err, MUSTER_E_CORRUPT, "line %d: \"%.100s\" is not %s", line, word, what);
}

static bool key_time(const char *word, int64_t *ret_unix_ms)
{
    *ret_unix_ms = 0;
    return strcmp(word, "-") == 0 || number_read_digits(word, 1, INT64_MAX, ret_unix_ms);
}

static enum muster_status key_grant_read(char *const words[WORDS_OF_KEY], int line,
                                         struct key_grant *grant, struct muster_error *err)
{
    int64_t *const times[] = {&grant->from_unix_ms, &grant->expires_unix_ms,
                              &grant->revoked_unix_ms};

    grant->role = key_role_named(words[1]);
    if (!wire_job_name_ok(words[0]))
        return key_wrong(line, "a key's name", words[0], err);
    if (grant->role == KEY_NOBODY)
        return key_wrong(line, "a role: node, operator or viewer", words[1], err);
    if (!key_jobs_ok(words[2]))
        return key_wrong(line, "a job's name, or the begin of one with * behind it", words[2], err);
    if (!key_text_ok(words[3]))
        return key_wrong(line, "a public key", words[3], err);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!key_time(words[4 + i], times[i]))
            return key_wrong(line, "a time", words[4 + i], err);
    snprintf(grant->name, sizeof grant->name, "%s", words[0]);
    snprintf(grant->jobs, sizeof grant->jobs, "%s", words[2]);
    snprintf(grant->public_key, sizeof grant->public_key, "%s", words[3]);
    return MUSTER_OK;
}

static size_t keys_words_of(char *line, char *words[WORDS_MAX])
{
    size_t count = 0;

    for (char *rest, *word = strtok_r(line, " \t\r", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    return count;
}

static enum muster_status key_is_new(const struct key_grant *keys, size_t count, int line,
                                     struct muster_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i].name, keys[count].name) == 0)
            return error_set(err, MUSTER_E_CORRUPT, "line %d: there are two keys with the name %s",
                             line, keys[count].name);
        if (strcmp(keys[i].public_key, keys[count].public_key) == 0)
            return error_set(err, MUSTER_E_CORRUPT, "line %d: %s and %s have the same public key",
                             line, keys[i].name, keys[count].name);
    }
    return MUSTER_OK;
}

static enum muster_status key_line_read(char *text, int line, struct key_grant *keys, size_t *count,
                                        struct muster_error *err)
{
    char *words[WORDS_MAX];
    size_t found = keys_words_of(text, words);
    enum muster_status status;

    if (found == 0 || words[0][0] == '#')
        return MUSTER_OK;
    if (found != WORDS_OF_KEY)
        return error_set(err, MUSTER_E_CORRUPT, "line %d: a key has %d words, this one %zu%s", line,
                         WORDS_OF_KEY, found, found == WORDS_MAX ? " or more" : "");
    if (*count == KEYS_MAX)
        return error_set(err, MUSTER_E_CORRUPT, "line %d: a list has at most %d keys", line,
                         KEYS_MAX);
    status = key_grant_read(words, line, &keys[*count], err);
    if (status == MUSTER_OK)
        status = key_is_new(keys, *count, line, err);
    if (status == MUSTER_OK)
        ++*count;
    return status;
}

static size_t keys_lines_of(const char *text)
{
    size_t count = 1;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

enum muster_status key_list_read(const char *text, struct key_grant **ret_keys, size_t *ret_count,
                                 struct muster_error *err)
{
    char *copy = strdup(text), *rest = copy;
    struct key_grant *keys = calloc(keys_lines_of(text), sizeof *keys);
    enum muster_status status = MUSTER_OK;
    size_t count = 0;

    if (copy == NULL || keys == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory for the list of keys");
    for (int line = 1; rest != NULL && status == MUSTER_OK; line++)
        status = key_line_read(strsep(&rest, "\n"), line, keys, &count, err);
    free(copy);
    if (status != MUSTER_OK) {
        free(keys);
        return status;
    }
    *ret_keys = keys;
    *ret_count = count;
    return MUSTER_OK;
}

static const char *keys_time_word(int64_t unix_ms, char word[24])
{
    snprintf(word, 24, unix_ms == 0 ? "-" : "%" PRId64, unix_ms);
    return word;
}

size_t key_grant_write(const struct key_grant *grant, char ret_line[KEY_LINE_BYTES_MAX])
{
    char times[3][24];

    return (size_t)snprintf(ret_line, KEY_LINE_BYTES_MAX, "%s %s %s %s %s %s %s\n", grant->name,
                            key_role_name(grant->role), grant->jobs, grant->public_key,
                            keys_time_word(grant->from_unix_ms, times[0]),
                            keys_time_word(grant->expires_unix_ms, times[1]),
                            keys_time_word(grant->revoked_unix_ms, times[2]));
}

/* --- a client's file -------------------------------------------------------------------------- */

enum field {
    FIELD_NAME,
    FIELD_ROLE,
    FIELD_JOBS,
    FIELD_EXPIRES,
    FIELD_BROKER,
    FIELD_PUBLIC,
    FIELD_SECRET,
    FIELD_SIGNER, /* may be missing */
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {"name",   "role",   "jobs",   "expires",
                                                     "broker", "public", "secret", "signer"};

static bool key_copy(char *to, size_t size, const char *value, bool ok)
{
    if (ok)
        snprintf(to, size, "%s", value);
    return ok;
}

static bool keys_field_take(struct key_file *file, enum field field, const char *value)
{
    bool key = key_text_ok(value);

    switch (field) {
    case FIELD_NAME:
        return key_copy(file->name, sizeof file->name, value, wire_job_name_ok(value));
    case FIELD_ROLE:
        file->role = key_role_named(value);
        return file->role != KEY_NOBODY;
    case FIELD_JOBS:
        return key_copy(file->jobs, sizeof file->jobs, value, key_jobs_ok(value));
    case FIELD_EXPIRES:
        return key_time(value, &file->expires_unix_ms);
    case FIELD_BROKER:
        return key_copy(file->broker_key, sizeof file->broker_key, value, key);
    case FIELD_PUBLIC:
        return key_copy(file->public_key, sizeof file->public_key, value, key);
    case FIELD_SIGNER:
        return key_copy(file->signer, sizeof file->signer, value, sign_public_ok(value));
    default:
        return key_copy(file->secret_key, sizeof file->secret_key, value, key);
    }
}

static enum field keys_field_named(const char *name)
{
    enum field field = 0;

    while (field < FIELD_COUNT && strcmp(field_names[field], name) != 0)
        field++;
    return field;
}

/* The error never shows a value: it may be the secret. */
static enum muster_status keys_field_read(char *text, int line, struct key_file *file,
                                          unsigned *seen, struct muster_error *err)
{
    char *words[WORDS_MAX];
    size_t found = keys_words_of(text, words);
    enum field field;

    if (found == 0 || words[0][0] == '#')
        return MUSTER_OK;
    field = keys_field_named(words[0]);
    if (found != 3 || strcmp(words[1], "=") != 0)
        return error_set(err, MUSTER_E_CORRUPT, "line %d is not NAME = VALUE", line);
    if (field == FIELD_COUNT)
        return MUSTER_OK; /* of a newer muster */
    if (!keys_field_take(file, field, words[2]))
        return error_set(err, MUSTER_E_CORRUPT, "line %d: the value of \"%s\" is cut or damaged",
                         line, field_names[field]);
    *seen |= 1U << field;
    return MUSTER_OK;
}

enum muster_status key_file_read(const char *text, struct key_file *ret_file,
                                 struct muster_error *err)
{
    char copy[KEY_FILE_BYTES_MAX], *rest = copy;
    enum muster_status status = MUSTER_OK;
    unsigned seen = 0;

    *ret_file = (struct key_file){0};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return error_set(err, MUSTER_E_CORRUPT, "it is too long for a key file");
    for (int line = 1; rest != NULL && status == MUSTER_OK; line++)
        status = keys_field_read(strsep(&rest, "\n"), line, ret_file, &seen, err);
    for (enum field field = 0; field < FIELD_SIGNER && status == MUSTER_OK; field++)
        if ((seen & 1U << field) == 0)
            status = error_set(err, MUSTER_E_CORRUPT, "\"%s\" is missing", field_names[field]);
    secret_wipe(copy, sizeof copy);
    return status;
}

size_t key_file_write(const struct key_file *file, char ret_text[KEY_FILE_BYTES_MAX])
{
    char expires[24], signer[SIGNER_MAX + 16] = "";

    if (file->signer[0] != '\0')
        snprintf(signer, sizeof signer, "signer = %s\n", file->signer);
    return (size_t)snprintf(
        ret_text, KEY_FILE_BYTES_MAX,
        "# A key of muster. Whoever can read this file can act as \"%s\" at the broker.\n"
        "name = %s\nrole = %s\njobs = %s\nexpires = %s\nbroker = %s\npublic = %s\nsecret = %s\n%s",
        file->name, file->name, key_role_name(file->role), file->jobs,
        keys_time_word(file->expires_unix_ms, expires), file->broker_key, file->public_key,
        file->secret_key, signer);
}
