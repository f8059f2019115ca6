/* spark - steps a second of the jobs that are looked at, as a line the size of a word. A job that a
 * page or its stream asks for is noted; one that nobody looks at has no line. */
#include "tools/web/web.h"

#include <string.h>

#define SPARK_EVERY_MS 2000
#define SPARK_STALE_MS 60000 /* a pause in which nobody looked breaks the line */
#define SPARK_HEIGHT 16

static struct web_spark *spark_find(struct web *web, const char *job)
{
    for (size_t i = 0; i < WEB_SPARKS_MAX; i++)
        if (web->sparks[i].last_ms != 0 && strcmp(web->sparks[i].job, job) == 0)
            return &web->sparks[i];
    return NULL;
}

/* The place of whichever was not looked at for longest. */
static struct web_spark *spark_make(struct web *web, const struct muster_job_row *job,
                                    int64_t now_ms)
{
    struct web_spark *spark = &web->sparks[0];

    for (size_t i = 1; i < WEB_SPARKS_MAX; i++)
        if (web->sparks[i].last_ms < spark->last_ms)
            spark = &web->sparks[i];
    *spark = (struct web_spark){.last_ms = now_ms, .last_steps = job->steps_executed};
    snprintf(spark->job, sizeof spark->job, "%s", job->job);
    return spark;
}

void web_spark_note(struct web *web, const struct muster_job_row *job, int64_t now_ms)
{
    struct web_spark *spark;
    int64_t passed_ms, steps;

    if (strcmp(job->state, "ended") == 0)
        return;
    spark = spark_find(web, job->job);
    if (spark == NULL || now_ms - spark->last_ms > SPARK_STALE_MS || now_ms < spark->last_ms)
        spark = spark_make(web, job, now_ms);
    passed_ms = now_ms - spark->last_ms;
    if (passed_ms < SPARK_EVERY_MS)
        return;
    steps = job->steps_executed - spark->last_steps;
    if (spark->count == WEB_SPARK_MARKS)
        memmove(spark->rate, spark->rate + 1, sizeof spark->rate - sizeof *spark->rate);
    else
        spark->count++;
    spark->rate[spark->count - 1] = steps < 0 ? 0 : (float)steps * 1000 / (float)passed_ms;
    spark->last_ms = now_ms;
    spark->last_steps = job->steps_executed;
}

struct shown web_spark_rate(struct web *web, const char *job)
{
    const struct web_spark *spark = spark_find(web, job);
    struct shown shown = {"\u2013"};

    if (spark != NULL && spark->count > 0)
        snprintf(shown.text, sizeof shown.text, "%.1f", (double)spark->rate[spark->count - 1]);
    return shown;
}

/* The line begins at the left, and is squeezed once it is full. */
void web_spark_points(struct web *web, const char *job, FILE *out)
{
    const struct web_spark *spark = spark_find(web, job);
    size_t count = spark == NULL ? 0 : spark->count, room = count < 12 ? 12 : count;
    float most = 0;

    for (size_t i = 0; i < count; i++)
        most = spark->rate[i] > most ? spark->rate[i] : most;
    for (size_t i = 0; count > 1 && i < count; i++)
        fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ",
                (double)i * (WEB_SPARK_MARKS - 1) / (double)(room - 1),
                (double)(SPARK_HEIGHT - 1) -
                    (most > 0 ? (double)(spark->rate[i] / most) * (SPARK_HEIGHT - 2) : 0));
}

void web_spark_put(struct web *web, const char *job, FILE *out)
{
    fprintf(out,
            "<svg class=\"spark\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "aria-hidden=\"true\"><polyline points=\"",
            WEB_SPARK_MARKS - 1, SPARK_HEIGHT);
    web_spark_points(web, job, out);
    fputs("\"/></svg>", out);
}
