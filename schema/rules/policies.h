/* policies - the policies of a job as they travel and are stored: one line of text a list, and the
 * same as structs. The text is what POLICIES carries, what the broker's database holds and what
 * tools show.
 *
 *   keep   rule; rule; …      joint any-of; empty: all are kept
 *     latest N                the newest N
 *     every N [from F] [most M]    steps of which N divides (step - F); the newest M of them
 *     closest N [from F] [most M]  for each multiple of N: of the steps that are nearer to it than
 *                             to another, the nearest to it; the newest M of them
 *     near N                  each at least N steps after the last one so kept
 *     every-ms N              each committed at least N ms after the last one so kept
 *     best N least|greatest METRIC [unmeasured]
 *     steps S S …
 *     last-ms N               committed at most N ms before the newest
 *   save   rule; rule; …      any-of; empty: none
 *     period-ms N             N ms after the last save began
 *     continuous-ms N         once the last save is done, and N ms after it began
 *     overhead-ppm N          saves take at most N millionths of the time
 *     young-daly
 *     first                   as soon as can be, where the save of the first step failed
 *
 * Steps are counts of steps done, as everywhere between node and broker. A rule stands once or
 * several times. Words are separated by single blanks, rules by "; ". Pure; no memory of its own */
#ifndef SCHEMA_POLICIES_H
#define SCHEMA_POLICIES_H

#include "schema/error.h"
#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum keep_kind {
    KEEP_NONE,
    KEEP_LATEST,
    KEEP_EVERY,
    KEEP_NEAR,
    KEEP_EVERY_MS,
    KEEP_BEST,
    KEEP_STEPS,
    KEEP_LAST_MS,
    KEEP_CLOSEST,
    KEEP_KIND_COUNT
};
struct keep_rule {
    enum keep_kind kind;
    int64_t number;
    int64_t from, most; /* EVERY, CLOSEST; most: 0 = all */
    char metric[METRIC_NAME_MAX + 1];
    bool greatest;
    bool unmeasured;
    size_t steps_first; /* STEPS: keep_policies.steps from here on */
    size_t steps_count;
};
struct keep_policies {
    struct keep_rule rules[POLICIES_MAX];
    size_t count;
    int64_t steps[POLICY_STEPS_MAX];
    size_t steps_count;
};

enum save_rule_kind {
    SAVE_RULE_NONE,
    SAVE_RULE_PERIOD_MS,
    SAVE_RULE_CONTINUOUS_MS,
    SAVE_RULE_OVERHEAD_PPM,
    SAVE_RULE_YOUNG_DALY,
    SAVE_RULE_FIRST,
    SAVE_RULE_KIND_COUNT
};
struct save_rule {
    enum save_rule_kind kind;
    int64_t number;
};
struct save_policies {
    struct save_rule rules[POLICIES_MAX];
    size_t count;
};

/* MUSTER_E_ARGUMENT: err says which rule and why; *ret is untouched. */
enum muster_status keep_policies_parse(const char *text, struct keep_policies *ret,
                                       struct muster_error *err);
enum muster_status save_policies_parse(const char *text, struct save_policies *ret,
                                       struct muster_error *err);

/* The text of a list; parses to the same again. MUSTER_E_ARGUMENT: a rule that no text may have, or
 * more than POLICY_TEXT_MAX bytes. */
enum muster_status keep_policies_text(const struct keep_policies *policies,
                                      char ret_text[POLICY_TEXT_MAX + 1], struct muster_error *err);
enum muster_status save_policies_text(const struct save_policies *policies,
                                      char ret_text[POLICY_TEXT_MAX + 1], struct muster_error *err);

/* The name of a trash folder: one path component of letters, digits and . _ - that can be no
 * checkpoint's name: it begins with no '.' or digit and ends with no digit ("23", "step_23",
 * "step_23.1-4"); nor "manifest.json". */
bool policy_trash_ok(const char *name);

#endif
