/* top_view - the picture of `muster top`, from what was asked. */
#include "tools/live/top.h"

#include "tools/as_of.h"
#include "tools/paint.h"
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const enum paint_hue top_cell_hues[CELL_COUNT] = {
    [CELL_MISSING] = PAINT_DIM, [CELL_JOINING] = PAINT_BUSY, [CELL_TRAINING] = PAINT_GOOD,
    [CELL_SAVING] = PAINT_BUSY, [CELL_STUCK] = PAINT_WARN,   [CELL_SILENT] = PAINT_WARN,
    [CELL_LEFT] = PAINT_DIM,    [CELL_LOST] = PAINT_BAD,
};

static void top_line(FILE *out, enum paint_hue hue, const char *text)
{
    fprintf(out, "%s%s%s\n", paint(hue), text, paint(PAINT_PLAIN));
}

/* --- head and foot ---------------------------------------------------------------------------- */

static size_t top_head(const struct top *top, FILE *out)
{
    fprintf(out, "%smuster top%s  %s  %s%s%s\n", paint(PAINT_TITLE), paint(PAINT_PLAIN),
            render_clock(top->asked_unix_ms, top->asked_unix_ms).text, top->tool->address,
            top->paused ? "  paused: p goes on" : "", top->follow ? "  follows the newest" : "");
    if (top->said[0] != '\0')
        fprintf(out, "%s%s; what is shown is of %s%s\n", paint(PAINT_BAD), top->said,
                render_age(top->asked_unix_ms, tool_now_unix_ms()).text, paint(PAINT_PLAIN));
    else if (tool_broker_is_dead(top->tool))
        top_line(out, PAINT_WARN,
                 "no musterd runs on this database, and what is running may have ended");
    else
        return 1;
    return 2;
}

static void top_help(FILE *out)
{
    fputs("\n"
          "  up, down, j, k      choose a job, scroll its ranks; page up and down: by ten\n"
          "  Enter               show the job that is chosen\n"
          "  Esc                 back to all jobs\n"
          "  s                   sort: jobs by state, step, newest checkpoint;\n"
          "                      ranks by number, lag, silence\n"
          "  f                   follow: show the job that changed last\n"
          "  p                   pause, r ask now, q or Ctrl-C end\n"
          "\n"
          "  Each letter of the grid is a rank, or the worst of several:\n",
          out);
    for (size_t i = 0; i < CELL_COUNT; i++)
        fprintf(out, "  %s%c%s  %s\n", paint(top_cell_hues[i]), web_cell_letters[i],
                paint(PAINT_PLAIN), web_cell_words[i]);
    fputs("\n  any key goes on\n", out);
}

static void top_foot(const struct top *top, FILE *out, const char *order)
{
    fprintf(out, "%ssorted by %s: s changes%s  ? keys  q ends%s\n", paint(PAINT_DIM), order,
            top->job[0] == '\0'     ? "  Enter shows a job"
            : top->named[0] == '\0' ? "  Esc all jobs"
                                    : "",
            paint(PAINT_PLAIN));
}

/* --- all jobs --------------------------------------------------------------------------------- */

/* The chosen line of a table is marked. */
static void top_mark_line(FILE *out, const char *text, size_t line)
{
    for (size_t i = 0; *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");

        if (i == line)
            fprintf(out, "%s> %.*s%s\n", paint(PAINT_CHOSEN), (int)length, text,
                    paint(PAINT_PLAIN));
        else
            fprintf(out, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void top_jobs_view(const struct top *top, FILE *out, int width, size_t lines)
{
    static const char *const orders[] = {"state", "step", "newest checkpoint"};
    size_t count = muster_rows_count(top->jobs), running = 0;
    size_t shown = lines > 4 ? lines - 4 : 1;
    size_t first = top->chosen >= shown ? top->chosen - shown + 1 : 0;
    char *text = NULL;
    size_t size = 0;
    FILE *table = open_memstream(&text, &size);

    for (size_t i = 0; i < count; i++)
        running += strcmp(muster_rows_jobs(top->jobs)[i].state, "running") == 0;
    fprintf(out, "%zu job%s, %zu running\n\n", count, count == 1 ? "" : "s", running);
    if (table == NULL)
        return;
    shown = count - first < shown ? count - first : shown;
    status_list(table, top->ordered + first, shown, top->asked_unix_ms, width - 2);
    if (fclose(table) == 0)
        top_mark_line(out, text, 1 + top->chosen - first);
    free(text);
    top_foot(top, out, orders[top->jobs_order]);
}

/* --- one job ---------------------------------------------------------------------------------- */

static void top_job_lines(const struct top *top, FILE *out, const struct muster_job_row *job)
{
    struct shown rate = {"-"};
    char saved[128] = "none committed yet";
    int64_t now = top->asked_unix_ms;
    const char *state = status_outcome(job);

    if (top->rate >= 0)
        snprintf(rate.text, sizeof rate.text, "%.1f steps/s", top->rate);
    if (job->newest_checkpoint != 0)
        snprintf(saved, sizeof saved, "step %" PRId64 ", %s", status_step(job, job->newest_step),
                 render_age(job->newest_unix_ms, now).text);
    fprintf(out,
            "%s%s%s  %s%s%s, since %s  generation %" PRId64 "  %" PRId64 " of %" PRId64 " ranks\n",
            paint(PAINT_TITLE), job->job, paint(PAINT_PLAIN), paint(paint_of_state(state)), state,
            paint(PAINT_PLAIN), render_age(job->state_unix_ms, now).text, job->generation,
            job->nodes_live, job->world_size);
    fprintf(out, "step %" PRId64 "  %s  goodput %s  checkpoint: %s\n", status_step(job, job->step),
            rate.text, status_goodput_shown(job).text, saved);
}

static void top_bar(FILE *out, int64_t done, int64_t all)
{
    int full = all > 0 ? (int)(done * 20 / all) : 0;

    fprintf(out, "[%s%.*s%s%.*s] %" PRId64 "/%" PRId64, paint(PAINT_BUSY), full,
            "####################", paint(PAINT_PLAIN), 20 - full, "--------------------", done,
            all);
}

static void top_round_line(const struct top *top, FILE *out)
{
    const struct muster_round_row *round = muster_rows_rounds(top->rounds);

    if (muster_rows_count(top->rounds) == 0) {
        fputs("no round is open\n", out);
        return;
    }
    fprintf(out, "round %" PRId64 " (%s) %s%s%s ", round->round, round->cause,
            paint(paint_of_state(round->state)), round->state, paint(PAINT_PLAIN));
    if (strcmp(round->state, "freezing") == 0)
        top_bar(out, round->reported, round->members), fputs(" reported\n", out);
    else if (round->saved > 0 || strcmp(round->state, "writing") == 0)
        top_bar(out, round->saved, round->writers), fputs(" saved\n", out);
    else
        top_bar(out, round->captured, round->members), fputs(" at the step\n", out);
}

static void top_notice_line(const struct top *top, FILE *out, const struct muster_job_row *job)
{
    const struct muster_notice_row *notice = muster_rows_notices(top->notices);
    int64_t left_ms = job->freeze_unix_ms - top->asked_unix_ms;
    size_t count = 0;

    for (size_t i = 0; i < muster_rows_count(top->notices); i++) {
        if (strcmp(notice[i].state, "active") != 0)
            continue;
        if (count++ == 0)
            fprintf(out, "%snotice: rank %" PRId64 " %s (%s)%s", paint(PAINT_WARN), notice[i].rank,
                    render_fate(notice[i].kind), notice[i].source, paint(PAINT_PLAIN));
    }
    if (count > 1)
        fprintf(out, " and %zu more", count - 1);
    if (job->freeze_unix_ms > 0)
        fprintf(out, ", freezes in %s", render_duration(left_ms < 0 ? 0 : left_ms).text);
    fputs(count == 0 ? "no notice stands\n" : "\n", out);
}

/* --- its ranks -------------------------------------------------------------------------------- */

static int top_badness(enum web_cell cell)
{
    static const int of[CELL_COUNT] = {
        [CELL_LOST] = 7,    [CELL_STUCK] = 6,  [CELL_SILENT] = 5, [CELL_MISSING] = 4,
        [CELL_JOINING] = 3, [CELL_SAVING] = 2, [CELL_LEFT] = 1,   [CELL_TRAINING] = 0};
    return of[cell];
}

static enum web_cell top_worst(const struct web_world *world, size_t first, size_t count,
                               int64_t now_unix_ms)
{
    enum web_cell worst = web_cell_of(world->rank[first], now_unix_ms);

    for (size_t i = first + 1; i < first + count && i < world->count; i++) {
        enum web_cell cell = web_cell_of(world->rank[i], now_unix_ms);

        if (top_badness(cell) > top_badness(worst))
            worst = cell;
    }
    return worst;
}

/* How many ranks a cell stands for, so that all fit into those lines. */
static size_t top_ranks_a_cell(size_t ranks, size_t cells)
{
    return ranks <= cells || cells == 0 ? 1 : (ranks + cells - 1) / cells;
}

static void top_counts(FILE *out, const struct web_world *world, size_t each)
{
    fprintf(out, "%zu ranks", world->count);
    if (each > 1)
        fprintf(out, ", each letter the worst of %zu", each);
    fputc(':', out);
    for (int badness = CELL_COUNT - 1; badness >= 0; badness--) /* a narrow screen cuts the end */
        for (size_t i = 0; i < CELL_COUNT; i++)
            if (world->cells[i] > 0 && top_badness((enum web_cell)i) == badness)
                fprintf(out, " %s%c%s %zu %s", paint(top_cell_hues[i]), web_cell_letters[i],
                        paint(PAINT_PLAIN), world->cells[i], web_cell_words[i]);
    fputc('\n', out);
}

/* The grid: at most `lines` lines. Returns how many lines it and its counts took. */
static size_t top_grid(FILE *out, const struct web_world *world, int width, size_t lines,
                       int64_t now_unix_ms)
{
    size_t row = width > 24 ? ((size_t)width - 8) / 8 * 8 : 8;
    size_t each = top_ranks_a_cell(world->count, row * lines), used = 1;

    top_counts(out, world, each);
    for (size_t first = 0; first < world->count; first += row * each, used++) {
        enum web_cell before = CELL_COUNT;

        fprintf(out, "%s%7zu%s ", paint(PAINT_DIM), first, paint(PAINT_PLAIN));
        for (size_t i = 0; i < row && first + i * each < world->count; i++) {
            enum web_cell cell = top_worst(world, first + i * each, each, now_unix_ms);

            if (cell != before)
                fputs(paint(top_cell_hues[cell]), out);
            before = cell;
            fputc(web_cell_letters[cell], out);
        }
        fprintf(out, "%s\n", paint(PAINT_PLAIN));
    }
    return used;
}

static enum top_order top_order_now;

static int64_t top_rank_key(const struct muster_node_row *node)
{
    if (top_order_now == TOP_BY_LAG)
        return -node->lag;
    return top_order_now == TOP_BY_SILENCE ? node->heard_unix_ms : node->rank;
}

/* Those that live come first. */
static int top_compare(const void *one, const void *other)
{
    const struct muster_node_row *a = *(const struct muster_node_row *const *)one;
    const struct muster_node_row *b = *(const struct muster_node_row *const *)other;
    int64_t of_a = top_rank_key(a), of_b = top_rank_key(b);

    if (top_order_now != TOP_BY_RANK && tool_node_is_live(a) != tool_node_is_live(b))
        return tool_node_is_live(a) ? -1 : 1;
    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void top_table(const struct top *top, FILE *out, int width, size_t lines)
{
    static const char *const titles[] = {">RANK", "HOST",   "STATE", ">STEP",
                                         ">LAG",  ">HEARD", "DOES"};
    static const char *const spare[] = {"LAG", NULL};
    size_t count = muster_rows_count(top->nodes), first = top->chosen;
    const struct muster_node_row **order = calloc(count + 1, sizeof *order);
    struct table table;

    table_init(&table, titles, 7);
    table.spare = spare;
    for (size_t i = 0; order != NULL && i < count; i++)
        order[i] = &muster_rows_nodes(top->nodes)[i];
    top_order_now = top->order;
    if (order != NULL)
        qsort(order, count, sizeof *order, top_compare);
    for (size_t i = first; order != NULL && i < count && i + 1 < first + lines; i++) {
        table_add(&table, render_number(order[i]->rank).text);
        table_add(&table, order[i]->host);
        table_add(&table, order[i]->state);
        table_add(&table, render_number(order[i]->done).text);
        table_add(&table, render_number(order[i]->lag).text);
        table_add(&table, render_age(order[i]->heard_unix_ms, top->asked_unix_ms).text);
        table_add(&table, order[i]->stuck_unix_ms != 0  ? render_stuck(order[i]).text
                          : tool_node_is_live(order[i]) ? order[i]->phase
                                                        : order[i]->leave_why);
    }
    table_print(&table, out, width);
    free(order);
}

static void top_journal(const struct top *top, FILE *out, size_t lines)
{
    const struct muster_event_row *event = muster_rows_events(top->events);
    size_t count = muster_rows_count(top->events);

    for (size_t i = count > lines ? count - lines : 0; i < count; i++) {
        struct shown rank = {""};

        if (event[i].rank >= 0)
            snprintf(rank.text, sizeof rank.text, " rank %" PRId64, event[i].rank);
        fprintf(out, "%s%s%s %s%s%s%s\n", paint(PAINT_DIM),
                render_clock(event[i].unix_ms, top->asked_unix_ms).text, paint(PAINT_PLAIN),
                event[i].kind, rank.text, event[i].text[0] == '\0' ? "" : ": ", event[i].text);
    }
}

/* The head and foot take six lines; a third of the rest each is for the grid, ranks and journal. */
static void top_job_view(const struct top *top, FILE *out, int width, size_t lines)
{
    static const char *const orders[] = {"rank", "lag", "silence"};
    const struct muster_job_row *job = top_job(top);
    struct web_world world = {0};
    size_t left = lines > 12 ? lines - 6 : 6, ranks;

    if (job == NULL) {
        fprintf(out, "job %s is not there any more\n", top->job);
        return;
    }
    top_job_lines(top, out, job);
    top_notice_line(top, out, job);
    top_round_line(top, out);
    if (top->nodes == NULL ||
        web_world_find(top->nodes, job->world_size, top->asked_unix_ms, &world) != TOOL_DONE)
        return;
    left -= top_grid(out, &world, width, left / 3, top->asked_unix_ms);
    web_world_free(&world);
    ranks =
        left / 2 < muster_rows_count(top->nodes) + 1 ? left / 2 : muster_rows_count(top->nodes) + 1;
    top_table(top, out, width, ranks);
    top_line(out, PAINT_TITLE, "JOURNAL");
    top_journal(top, out, left - ranks);
    top_foot(top, out, orders[top->order]);
}

void top_picture(const struct top *top, FILE *out, int width, int height)
{
    size_t used = top_head(top, out), lines = (size_t)height > used ? (size_t)height - used : 1;

    if (top->help)
        top_help(out);
    else if (top->job[0] != '\0')
        top_job_view(top, out, width, lines);
    else
        top_jobs_view(top, out, width, lines);
}
