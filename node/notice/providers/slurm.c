/* slurm - see slurm.h. Facts: Slurm's documentation of squeue and of a job's environment; 22.05
 * tried. */
#include "node/notice/providers/slurm.h"

#include "node/notice/base/child.h"
#include "node/notice/base/share.h"
#include "node/notice/base/times.h"
#include "schema/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOB_MAX 31
#define WORD_MAX 63
#define LEAD_LONGEST_MS (365 * 86400000LL)

struct slurm {
    char job[JOB_MAX + 1]; /* "": this is no job */
    int64_t lead_ms, period_ms;
    int64_t end_unix_ms; /* 0: none is known */
    unsigned serial;     /* how often an end that was told moved later */
    bool told;           /* within the lead, and said */
    int64_t asked_boot_ms, next_boot_ms, last_ok_boot_ms; /* asked: -1: never */
    struct child child;
    struct share_seat seat;
    enum source_state state;
    char text[SOURCE_TEXT_MAX + 1];
};

/* --- what squeue says ------------------------------------------------------------------------- */

/* True: it is about the end. */
static bool slurm_read_word(const char *word, int64_t *ret_end_unix_ms)
{
    static const char *const none[] = {"N/A", "NONE", "None", "Unknown", "UNLIMITED"};
    bool named = strncmp(word, "EndTime=", 8) == 0;
    const char *value = named ? word + 8 : word;
    size_t digits = strspn(value, "0123456789");

    if (digits >= 9 && digits <= 12 && value[digits] == '\0') {
        *ret_end_unix_ms = strtoll(value, NULL, 10) * 1000;
        return true;
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(value, none[i]) == 0) {
            *ret_end_unix_ms = 0;
            return true;
        }
    return false;
}

/* scontrol writes many NAME=VALUE, squeue nothing but the value: there a bare word is an answer. */
bool slurm_parse(const char *bytes, size_t size, int64_t *ret_end_unix_ms)
{
    char word[WORD_MAX + 1];
    bool first = true;

    for (size_t i = 0; i < size;) {
        size_t length = 0;

        while (i < size && isspace((unsigned char)bytes[i]))
            i++;
        for (; i < size && !isspace((unsigned char)bytes[i]); i++)
            if (length < WORD_MAX)
                word[length++] = bytes[i];
        word[length] = '\0';
        if ((first || strncmp(word, "EndTime=", 8) == 0) && slurm_read_word(word, ret_end_unix_ms))
            return true;
        first = false;
    }
    return false;
}

/* --- the source ------------------------------------------------------------------------------- */

static bool slurm_read_lead(const char *argument, int64_t *ret_ms)
{
    size_t digits = strspn(argument, "0123456789");

    *ret_ms = SLURM_LEAD_S * 1000LL;
    if (argument[0] == '\0')
        return true;
    if (digits > 6 || argument[digits] != '\0')
        return false;
    *ret_ms = strtoll(argument, NULL, 10) * 1000;
    return *ret_ms > 0 && *ret_ms <= SLURM_LEAD_MAX_S * 1000LL;
}

/* Digits only: it becomes a part of a command. */
static void slurm_read_job(struct slurm *slurm)
{
    const char *job = getenv("SLURM_JOB_ID"), *end = getenv("SLURM_JOB_END_TIME");
    int64_t end_unix_ms;

    if (job == NULL || job[0] == '\0' || strlen(job) > JOB_MAX ||
        job[strspn(job, "0123456789")] != '\0') {
        slurm->state = SOURCE_ABSENT;
        slurm->next_boot_ms = INT64_MAX;
        snprintf(slurm->text, sizeof slurm->text,
                 "SLURM_JOB_ID names no job: this is no process of one");
        return;
    }
    snprintf(slurm->job, sizeof slurm->job, "%s", job);
    if (end != NULL && slurm_parse(end, strlen(end), &end_unix_ms))
        slurm->end_unix_ms = end_unix_ms;
}

static enum muster_status slurm_open(const struct source_config *config, void **ret_self,
                                     struct muster_error *err)
{
    struct slurm *slurm = calloc(1, sizeof *slurm);

    if (slurm == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for notice source slurm; free some");
    if (!slurm_read_lead(config->argument, &slurm->lead_ms)) {
        free(slurm);
        return error_set(err, MUSTER_E_ARGUMENT,
                         "notice source slurm: \"%.60s\" is no lead; give slurm:SECONDS, 1 to %d",
                         config->argument, SLURM_LEAD_MAX_S);
    }
    child_init(&slurm->child, SLURM_LIMIT_MS);
    slurm->period_ms = config->period_ms > 0 ? config->period_ms : SLURM_PERIOD_MS;
    slurm->last_ok_boot_ms = slurm->asked_boot_ms = -1;
    slurm->state = SOURCE_PROBING;
    slurm_read_job(slurm);
    share_seat_open(&slurm->seat, slurm->job[0] != '\0' ? config->runtime_dir : NULL, "slurm",
                    slurm->job);
    *ret_self = slurm;
    return MUSTER_OK;
}

static void slurm_trouble(struct slurm *slurm, const char *what)
{
    slurm->state = SOURCE_DEGRADED;
    snprintf(slurm->text, sizeof slurm->text, "squeue: %.80s; the job's end is %s", what,
             slurm->end_unix_ms > 0 ? "the one known before" : "not known");
}

static void slurm_start(struct slurm *slurm, int64_t now_boot_ms)
{
    char command[256];

    snprintf(command, sizeof command,
             "exec 2>&1; SLURM_TIME_FORMAT=%%s; export SLURM_TIME_FORMAT; "
             "squeue -h -j %s -O EndTime || scontrol -o show job %s",
             slurm->job, slurm->job);
    slurm->asked_boot_ms = now_boot_ms;
    slurm->next_boot_ms = now_boot_ms + slurm->period_ms;
    if (child_start(&slurm->child, command, now_boot_ms) != 0)
        slurm_trouble(slurm, "could not be started");
}

static void slurm_learn(struct slurm *slurm, int64_t end_unix_ms, const struct notice_now *now)
{
    if (slurm->told && end_unix_ms > slurm->end_unix_ms + 1000) {
        slurm->serial++;
        slurm->told = false;
    }
    slurm->end_unix_ms = end_unix_ms;
    slurm->last_ok_boot_ms = now->boot_ms;
    slurm->state = SOURCE_HEALTHY;
    slurm->text[0] = '\0';
}

static void slurm_take(struct slurm *slurm, const struct notice_now *now)
{
    const struct child_pipe *output = &slurm->child.output;
    char said[NOTICE_TEXT_MAX + 1];
    int64_t end_unix_ms;
    long code;

    switch (child_look(&slurm->child, now->boot_ms, &code)) {
    case CHILD_ENDED:
        if (code == 0 && slurm_parse(output->bytes, output->size, &end_unix_ms)) {
            slurm_learn(slurm, end_unix_ms, now);
            break;
        }
        notice_text(said, output->bytes, output->size);
        slurm_trouble(slurm, said[0] != '\0' ? said : "said nothing");
        break;
    case CHILD_LATE:
        slurm_trouble(slurm, "did not end within 30 s and was killed");
        break;
    case CHILD_NONE:
    case CHILD_RUNS:
        break;
    }
}

static bool slurm_within_lead(const struct slurm *slurm, const struct notice_now *now)
{
    return slurm->end_unix_ms > 0 && slurm->end_unix_ms - now->unix_ms <= slurm->lead_ms;
}

static bool slurm_is_due(const struct slurm *slurm, const struct notice_now *now)
{
    if (slurm->child.group != 0)
        return false;
    if (now->boot_ms >= slurm->next_boot_ms)
        return true;
    return slurm_within_lead(slurm, now) && !slurm->told &&
           (slurm->asked_boot_ms < 0 || now->boot_ms - slurm->asked_boot_ms >= SLURM_CONFIRM_MS);
}

static void slurm_say(struct slurm *slurm, const struct notice_now *now,
                      const struct source_out *out)
{
    struct notice_item item = {.kind = NOTICE_TIME_LIMIT, .hard = true, .cancellable = true};
    struct notice_set *set = calloc(1, sizeof *set);
    time_t end = (time_t)(slurm->end_unix_ms / 1000);
    struct tm parts;
    char date[40];

    if (set == NULL)
        return;
    if (slurm_within_lead(slurm, now) && (slurm->told || slurm->child.group == 0)) {
        slurm->told = true;
        item.deadline_boot_ms = times_deadline(now, slurm->end_unix_ms, LEAD_LONGEST_MS);
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &parts));
        snprintf(item.key, sizeof item.key, "end-%u", slurm->serial);
        snprintf(item.text, sizeof item.text, "the time of Slurm job %s ends at %s", slurm->job,
                 date);
        notice_set_add(set, &item);
    }
    share_seat_say(&slurm->seat, 0, set, out);
    free(set);
}

static void slurm_own_status(const void *self, struct source_status *ret_status)
{
    const struct slurm *slurm = self;

    ret_status->state = slurm->state;
    ret_status->last_ok_boot_ms = slurm->last_ok_boot_ms;
    ret_status->retry_boot_ms = slurm->next_boot_ms;
    memcpy(ret_status->text, slurm->text, sizeof slurm->text);
}

static void slurm_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct slurm *slurm = self;

    if (slurm->job[0] == '\0')
        return;
    if (slurm->state == SOURCE_PROBING && slurm->end_unix_ms > 0) { /* the environment said it */
        slurm_learn(slurm, slurm->end_unix_ms, now);
        slurm->next_boot_ms = now->boot_ms + slurm->period_ms;
    }
    share_seat_look(&slurm->seat, now, slurm_own_status, slurm, out);
    if (!slurm->seat.asks) {
        if (slurm->child.group != 0) { /* nobody would take its answer */
            child_end(&slurm->child);
            slurm->next_boot_ms = now->boot_ms; /* when it is the one who asks again */
        }
        return;
    }
    if (slurm_is_due(slurm, now))
        slurm_start(slurm, now->boot_ms);
    slurm_take(slurm, now);
    slurm_say(slurm, now, out);
}

static size_t slurm_fds(const void *self, struct pollfd ret_fds[SOURCE_FDS_MAX])
{
    return child_fds(&((const struct slurm *)self)->child, ret_fds);
}

/* That the lead begins is seen at the next look: SLEEP_MAX_MS of watch is near enough. */
static int64_t slurm_wakeup_boot_ms(const void *self)
{
    const struct slurm *slurm = self;
    int64_t at =
        slurm->child.group != 0 ? child_wakeup_boot_ms(&slurm->child) : slurm->next_boot_ms;

    return share_seat_wakeup_boot_ms(&slurm->seat, slurm->seat.asks ? at : INT64_MAX);
}

static void slurm_status(const void *self, struct source_status *ret_status)
{
    const struct slurm *slurm = self;

    if (slurm->seat.asks)
        slurm_own_status(self, ret_status);
    else
        share_seat_status(&slurm->seat, ret_status);
}

static void slurm_close(void *self)
{
    struct slurm *slurm = self;

    child_end(&slurm->child);
    share_close(&slurm->seat.share);
    free(slurm);
}

const struct source_ops slurm_ops = {.open = slurm_open,
                                     .run = slurm_run,
                                     .fds = slurm_fds,
                                     .wakeup_boot_ms = slurm_wakeup_boot_ms,
                                     .status = slurm_status,
                                     .close = slurm_close};
