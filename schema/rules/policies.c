/* policies - see policies.h. */
#include "schema/rules/policies.h"

#include "schema/manifest/manifest.h"
#include "schema/manifest/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rule, word by word. */
struct words {
    const char *at;
    const char *end;
};

static bool policies_next_word(struct words *words, char *ret_word, size_t size)
{
    const char *from = words->at;
    size_t length = 0;

    while (from + length < words->end && from[length] != ' ')
        length++;
    if (length == 0 || length >= size)
        return false;
    memcpy(ret_word, from, length);
    ret_word[length] = '\0';
    words->at = from + length < words->end ? from + length + 1 : words->end;
    return true;
}

static bool policies_at_end(const struct words *words)
{
    return words->at == words->end && (words->end[-1] != ' ');
}

static bool policies_next_number(struct words *words, int64_t least, int64_t *ret_number)
{
    char word[24];
    char *end;

    if (!policies_next_word(words, word, sizeof word) ||
        strspn(word, "0123456789") != strlen(word) || strlen(word) > 19)
        return false;
    *ret_number = strtoll(word, &end, 10);
    return *end == '\0' && *ret_number >= least && *ret_number <= POLICY_NUMBER_MAX;
}

static bool policies_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool policy_trash_ok(const char *name)
{
    size_t length = strlen(name);

    return length >= 1 && length <= FILE_PATH_MAX - 64 && name[0] != '.' &&
           !policies_is_digit(name[0]) && !policies_is_digit(name[length - 1]) &&
           strcmp(name, MANIFEST_FILE_NAME) != 0 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               length;
}

/* --- keep: parse ------------------------------------------------------------------------------ */

static bool policies_parse_every(struct words *words, struct keep_rule *rule)
{
    char word[8];

    if (!policies_next_number(words, 1, &rule->number))
        return false;
    if (policies_at_end(words))
        return true;
    if (!policies_next_word(words, word, sizeof word))
        return false;
    if (strcmp(word, "from") == 0) {
        if (!policies_next_number(words, 0, &rule->from))
            return false;
        if (policies_at_end(words))
            return true;
        if (!policies_next_word(words, word, sizeof word))
            return false;
    }
    return strcmp(word, "most") == 0 && policies_next_number(words, 1, &rule->most);
}

static bool policies_parse_best(struct words *words, struct keep_rule *rule)
{
    char word[16];

    if (!policies_next_number(words, 0, &rule->number) ||
        !policies_next_word(words, word, sizeof word))
        return false;
    rule->greatest = strcmp(word, "greatest") == 0;
    if (!rule->greatest && strcmp(word, "least") != 0)
        return false;
    if (!policies_next_word(words, rule->metric, sizeof rule->metric) ||
        !metric_name_ok(rule->metric))
        return false;
    if (policies_at_end(words))
        return true;
    rule->unmeasured =
        policies_next_word(words, word, sizeof word) && strcmp(word, "unmeasured") == 0;
    return rule->unmeasured;
}

static bool policies_parse_steps(struct words *words, struct keep_rule *rule,
                                 struct keep_policies *policies)
{
    rule->steps_first = policies->steps_count;
    while (!policies_at_end(words)) {
        if (policies->steps_count == POLICY_STEPS_MAX ||
            !policies_next_number(words, 0, &policies->steps[policies->steps_count]))
            return false;
        policies->steps_count++;
        rule->steps_count++;
    }
    return rule->steps_count > 0;
}

static const struct {
    const char *word;
    enum keep_kind kind;
    int64_t least;
} keep_words[] = {{"latest", KEEP_LATEST, 0},     {"every", KEEP_EVERY, 1},
                  {"near", KEEP_NEAR, 1},         {"best", KEEP_BEST, 0},
                  {"every-ms", KEEP_EVERY_MS, 1}, {"steps", KEEP_STEPS, 0},
                  {"last-ms", KEEP_LAST_MS, 0},   {"closest", KEEP_CLOSEST, 1}};

static bool policies_parse_keep_rule(struct words *words, struct keep_policies *policies)
{
    struct keep_rule *rule = &policies->rules[policies->count];
    char word[16];
    bool good = false;

    memset(rule, 0, sizeof *rule);
    if (!policies_next_word(words, word, sizeof word))
        return false;
    for (size_t i = 0; i < sizeof keep_words / sizeof *keep_words; i++) {
        if (strcmp(word, keep_words[i].word) != 0)
            continue;
        rule->kind = keep_words[i].kind;
        if (rule->kind == KEEP_EVERY || rule->kind == KEEP_CLOSEST)
            good = policies_parse_every(words, rule);
        else if (rule->kind == KEEP_BEST)
            good = policies_parse_best(words, rule);
        else if (rule->kind == KEEP_STEPS)
            good = policies_parse_steps(words, rule, policies);
        else
            good = policies_next_number(words, keep_words[i].least, &rule->number);
    }
    policies->count++;
    return good && policies_at_end(words);
}

/* --- save: parse ------------------------------------------------------------------------------ */

static const struct {
    const char *word;
    enum save_rule_kind kind;
    int64_t least, most;
} save_words[] = {{"period-ms", SAVE_RULE_PERIOD_MS, 1, INT64_MAX},
                  {"continuous-ms", SAVE_RULE_CONTINUOUS_MS, 0, INT64_MAX},
                  {"overhead-ppm", SAVE_RULE_OVERHEAD_PPM, 1, 999999},
                  {"young-daly", SAVE_RULE_YOUNG_DALY, 0, 0},
                  {"first", SAVE_RULE_FIRST, 0, 0}};

static bool policies_has_number(enum save_rule_kind kind)
{
    for (size_t i = 0; i < sizeof save_words / sizeof *save_words; i++)
        if (save_words[i].kind == kind)
            return save_words[i].most > 0;
    return false;
}

static bool policies_parse_save_rule(struct words *words, struct save_policies *policies)
{
    struct save_rule *rule = &policies->rules[policies->count];
    char word[16];
    bool good = false;

    memset(rule, 0, sizeof *rule);
    if (!policies_next_word(words, word, sizeof word))
        return false;
    for (size_t i = 0; i < sizeof save_words / sizeof *save_words; i++) {
        if (strcmp(word, save_words[i].word) != 0)
            continue;
        rule->kind = save_words[i].kind;
        good = save_words[i].most == 0 ||
               (policies_next_number(words, save_words[i].least, &rule->number) &&
                rule->number <= save_words[i].most);
    }
    policies->count++;
    return good && policies_at_end(words);
}

/* --- lists ------------------------------------------------------------------------------------ */

static enum muster_status policies_bad_rule(const char *list, const char *from, size_t length,
                                            const char *why, struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT, "the %s policies say \"%.*s\": %s", list,
                     (int)(length > 100 ? 100 : length), from, why);
}

/* The end of the rule at `from`, and where the next one begins (NULL: there is none). */
static const char *rule_end(const char *from, const char **ret_next)
{
    const char *end = strchr(from, ';');

    if (end == NULL) {
        *ret_next = NULL;
        return from + strlen(from);
    }
    *ret_next = end[1] == ' ' ? end + 2 : end + 1;
    return end;
}

enum muster_status keep_policies_parse(const char *text, struct keep_policies *ret,
                                       struct muster_error *err)
{
    struct keep_policies found;

    memset(&found, 0, sizeof found);
    for (const char *from = text, *next; from != NULL && *text != '\0'; from = next) {
        const char *end = rule_end(from, &next);
        struct words words = {from, end};
        if (found.count == POLICIES_MAX)
            return policies_bad_rule("keep", from, (size_t)(end - from), "these are too many rules",
                                     err);
        if (from == end || !policies_parse_keep_rule(&words, &found))
            return policies_bad_rule(
                "keep", from, (size_t)(end - from),
                "not a rule such as \"latest 2\", \"every 100\", \"near 100\", "
                "\"closest 100 most 5\", \"every-ms 3600000\", \"best 3 least loss\", "
                "\"steps 1 5\", "
                "\"last-ms 3600000\"",
                err);
    }
    *ret = found;
    return MUSTER_OK;
}

enum muster_status save_policies_parse(const char *text, struct save_policies *ret,
                                       struct muster_error *err)
{
    struct save_policies found;

    memset(&found, 0, sizeof found);
    for (const char *from = text, *next; from != NULL && *text != '\0'; from = next) {
        const char *end = rule_end(from, &next);
        struct words words = {from, end};
        if (found.count == POLICIES_MAX)
            return policies_bad_rule("save", from, (size_t)(end - from), "these are too many rules",
                                     err);
        if (from == end || !policies_parse_save_rule(&words, &found))
            return policies_bad_rule(
                "save", from, (size_t)(end - from),
                "not a rule such as \"period-ms 600000\", \"continuous-ms 0\", "
                "\"overhead-ppm 20000\", \"young-daly\", \"first\"",
                err);
    }
    *ret = found;
    return MUSTER_OK;
}

/* --- text ------------------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t used;
    bool full;
};

static void policies_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void policies_add(struct text *text, const char *format, ...)
{
    size_t left = POLICY_TEXT_MAX + 1 - text->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text->bytes + text->used, left, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= left)
        text->full = true;
    else
        text->used += (size_t)length;
}

static void policies_add_keep_rule(struct text *text, const struct keep_policies *policies,
                                   const struct keep_rule *rule)
{
    for (size_t i = 0; i < sizeof keep_words / sizeof *keep_words; i++)
        if (keep_words[i].kind == rule->kind)
            policies_add(text, "%s", keep_words[i].word);
    if (rule->kind != KEEP_STEPS)
        policies_add(text, " %" PRId64, rule->number);
    for (size_t i = 0; rule->kind == KEEP_STEPS && i < rule->steps_count; i++)
        policies_add(text, " %" PRId64, policies->steps[rule->steps_first + i]);
    if (rule->from != 0)
        policies_add(text, " from %" PRId64, rule->from);
    if (rule->most != 0)
        policies_add(text, " most %" PRId64, rule->most);
    if (rule->kind == KEEP_BEST)
        policies_add(text, " %s %s%s", rule->greatest ? "greatest" : "least", rule->metric,
                     rule->unmeasured ? " unmeasured" : "");
}

enum muster_status keep_policies_text(const struct keep_policies *policies,
                                      char ret_text[POLICY_TEXT_MAX + 1], struct muster_error *err)
{
    struct text text = {ret_text, 0, false};
    struct keep_policies again;

    ret_text[0] = '\0';
    for (size_t i = 0; i < policies->count && i < POLICIES_MAX; i++) {
        policies_add(&text, "%s", i > 0 ? "; " : "");
        policies_add_keep_rule(&text, policies, &policies->rules[i]);
    }
    if (text.full)
        return error_set(err, MUSTER_E_ARGUMENT, "the keep policies are longer than %d bytes",
                         POLICY_TEXT_MAX);
    return keep_policies_parse(ret_text, &again, err);
}

enum muster_status save_policies_text(const struct save_policies *policies,
                                      char ret_text[POLICY_TEXT_MAX + 1], struct muster_error *err)
{
    struct text text = {ret_text, 0, false};
    struct save_policies again;

    ret_text[0] = '\0';
    for (size_t i = 0; i < policies->count && i < POLICIES_MAX; i++) {
        policies_add(&text, "%s", i > 0 ? "; " : "");
        for (size_t k = 0; k < sizeof save_words / sizeof *save_words; k++)
            if (save_words[k].kind == policies->rules[i].kind)
                policies_add(&text, "%s", save_words[k].word);
        if (policies_has_number(policies->rules[i].kind))
            policies_add(&text, " %" PRId64, policies->rules[i].number);
    }
    if (text.full)
        return error_set(err, MUSTER_E_ARGUMENT, "the save policies are longer than %d bytes",
                         POLICY_TEXT_MAX);
    return save_policies_parse(ret_text, &again, err);
}
