/* supervise_box - the first cause of a failure, and the box that tells it; see supervise_box.h. */
#include "tools/run/supervise_box.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- the cause -------------------------------------------------------------------------------- */

static bool supervise_box_is_failure(const struct supervise_exit *exit)
{
    return exit->signo != 0 || exit->code != 0;
}

static bool box_is_own(const struct files_error *error)
{
    return error->error_rank == error->rank && strcmp(error->status, "MUSTER_E_PEER") != 0;
}

/* The earliest error that a rank had of its own; the others' come from it. */
static bool box_first_own_error(const struct files *files, const struct rank_end *ends,
                                int rank_count, struct files_error *ret_error)
{
    struct files_error error;
    bool found = false;

    for (int i = 0; i < rank_count; i++) {
        if (!ends[i].ended || !supervise_box_is_failure(&ends[i].exit) ||
            !files_error_read(files, ends[i].exit.rank, &error) || !box_is_own(&error) ||
            (found && error.unix_ms >= ret_error->unix_ms))
            continue;
        *ret_error = error;
        found = true;
    }
    return found;
}

static const struct rank_end *supervise_box_end_of(const struct rank_end *ends, int rank_count,
                                                   int rank)
{
    for (int i = 0; i < rank_count; i++) {
        if (ends[i].ended && ends[i].exit.rank == rank)
            return &ends[i];
    }
    return NULL;
}

bool cause_find(struct supervise *sup, const struct files *files, const struct rank_end *ends,
                int rank_count, struct files_error *ret_error)
{
    const struct supervise_exit first = sup->now.cause;
    const struct rank_end *end = supervise_box_end_of(ends, rank_count, first.rank);
    bool own = box_first_own_error(files, ends, rank_count, ret_error);

    if (end == NULL)
        return false;
    if (own && (first.signo == 0 || ret_error->unix_ms <= end->unix_ms)) {
        end = supervise_box_end_of(ends, rank_count, ret_error->rank);
        supervise_blame(sup, &end->exit);
        return sup->now.cause.rank == ret_error->rank;
    }
    if (!files_error_read(files, first.rank, ret_error))
        return false;
    if (box_is_own(ret_error))
        return true;
    end = supervise_box_end_of(ends, rank_count,
                               ret_error->error_rank); /* it left because of another */
    if (end != NULL && supervise_box_is_failure(&end->exit))
        supervise_blame(sup, &end->exit);
    return true;
}

/* --- the box ---------------------------------------------------------------------------------- */

/* Did this rank fail with the same words? */
static bool box_says_the_same(const struct box *box, int rank)
{
    struct files_error error;

    return rank == box->error->rank || (files_error_read(box->files, rank, &error) &&
                                        strcmp(error.status, box->error->status) == 0 &&
                                        strcmp(error.text, box->error->text) == 0);
}

struct ranks {
    char text[128];
};

/* "rank 2", or "ranks 0-2, 5" if those say the same. */
static struct ranks box_who(const struct box *box)
{
    int end = box->first_rank + box->sup->policy.rank_count, count = 0;
    struct ranks ranks = {""};
    size_t used = 0;

    for (int rank = box->first_rank; box->error != NULL && rank < end; rank++) {
        int first = rank;

        if (!box_says_the_same(box, rank))
            continue;
        while (rank + 1 < end && box_says_the_same(box, rank + 1))
            rank++;
        count += rank - first + 1;
        if (used < sizeof ranks.text)
            used += (size_t)snprintf(ranks.text + used, sizeof ranks.text - used, "%s%d",
                                     used == 0 ? "ranks " : ", ", first);
        if (rank > first && used < sizeof ranks.text)
            used += (size_t)snprintf(ranks.text + used, sizeof ranks.text - used, "-%d", rank);
    }
    if (count <= 1)
        snprintf(
            ranks.text, sizeof ranks.text, "%s",
            supervise_name(box->error != NULL ? box->error->rank : box->sup->now.cause.rank).text);
    return ranks;
}

static void box_say_when(struct output *output, const struct box *box)
{
    const struct files_error *error = box->error;
    int64_t unix_ms = error != NULL && error->unix_ms > 0 ? error->unix_ms : box->unix_ms;
    time_t seconds = (time_t)(unix_ms / 1000);
    char host[256] = "", at[32] = "", step[48] = "";
    struct tm local;

    if (error != NULL && error->host[0] != '\0')
        snprintf(host, sizeof host, "%s", error->host);
    else if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "this host");
    if (unix_ms > 0 && localtime_r(&seconds, &local) != NULL)
        strftime(at, sizeof at, " at %Y-%m-%d %H:%M:%S", &local);
    if (error != NULL && error->step >= 0)
        snprintf(step, sizeof step, ", step %lld", (long long)error->step);
    output_say(output, "| %s on %s%s%s", box_who(box).text, host, at, step);
}

static void box_say_words(struct output *output, const struct box *box)
{
    const struct files_error *error = box->error;
    char path[FILES_PATH_MAX];
    const char *status;

    if (error == NULL)
        return;
    status = error->status[0] != '\0' ? error->status : "an error";
    if (error->code != 0)
        output_say(output, "| %s, code %d:", status, error->code);
    else
        output_say(output, "| %s:", status);
    output_say(output, "|   %s", error->text);
    if (box->first_rank == SUPERVISE_LAUNCHER)
        return; /* told by the broker */
    files_error_path(box->files, error->rank, path);
    if (strcmp(box->files->own, box->files->errors) != 0)
        output_say(output, "|   (%s)", path);
}

static void box_say_tail(struct output *output, const struct box *box)
{
    int rank = box->sup->now.cause.rank;
    int index = rank - box->first_rank;
    const char *line = output_tail(output, index, 0);
    bool begun = false;

    if (line == NULL && box->error == NULL)
        output_say(output, "| %s wrote nothing to its stderr", supervise_name(rank).text);
    for (int i = 0; (line = output_tail(output, index, i)) != NULL; i++) {
        if (box->error != NULL && strstr(line, box->error->text) != NULL)
            continue; /* said above */
        if (!begun)
            output_say(output, "| the last lines of %s's stderr:", supervise_name(rank).text);
        begun = true;
        output_say(output, "|   %s", line);
    }
}

/* Several launches in a row left with the restart code and saved nothing: says who or what told
 * them to. */
static void box_say_taken_away(struct output *output, const struct box *box)
{
    char text[1200];

    output_say(output, "| each launch was told to end: this host or this job is being taken away");
    for (int i = 0; i < box->sup->policy.rank_count; i++) {
        if (!files_left_read(box->files, box->first_rank + i, text, sizeof text))
            continue;
        output_say(output, "| rank %d: %s", box->first_rank + i, text);
        break; /* the others say the same */
    }
    output_say(output, "| start it again elsewhere, or here when the notice is withdrawn");
}

void box_say(struct output *output, const struct box *box)
{
    enum supervise_kind kind = box->sup->now.cause_kind;

    output_say(output, "+---- muster run: job %s stopped ----", box->job);
    output_say(output, "| first error: %s", box->why);
    if (kind == SUPERVISE_UNSTARTED) {
        output_say(output, "| %s: %s", box->program,
                   box->sup->now.cause.code == 127 ? "no such program" : "it cannot be executed");
    } else if (kind != SUPERVISE_NONE && kind != SUPERVISE_RESTART) {
        box_say_when(output, box);
        box_say_words(output, box);
        box_say_tail(output, box);
    } else if (box->stalled && box->exit_code == box->sup->policy.restart_code) {
        box_say_taken_away(output, box);
    }
    if (box->sup->step_known && box->sup->step >= 0)
        output_say(output, "| the newest checkpoint is of step %lld", (long long)box->sup->step);
    output_say(output, "| %s; exit code %d", box->counts, box->exit_code);
    output_say(output, "+----");
}
