/* heat - what each rank of a launch does: one state and one lag a rank, as the page's grid and its
 * table show them. */
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define HEAT_SILENT_MS 10000 /* a node is heard each second */

const char web_cell_letters[CELL_COUNT + 1] = ".jtskqlx";
const char *const web_cell_words[CELL_COUNT] = {
    "not there", "joining", "training", "in a save", "stuck", "silent", "left", "lost",
};

enum web_cell web_cell_of(const struct muster_node_row *node, int64_t now_unix_ms)
{
    if (node == NULL)
        return CELL_MISSING;
    if (strcmp(node->state, "left") == 0)
        return CELL_LEFT;
    if (!tool_node_is_live(node))
        return CELL_LOST;
    if (node->stuck_unix_ms != 0)
        return CELL_STUCK;
    if (node->heard_unix_ms > 0 && now_unix_ms - node->heard_unix_ms > HEAT_SILENT_MS)
        return CELL_SILENT;
    if (strcmp(node->state, "joined") == 0)
        return CELL_JOINING;
    if (strcmp(node->phase, "stepping") == 0 || strcmp(node->phase, "none") == 0)
        return CELL_TRAINING;
    return strcmp(node->phase, "ended") == 0 || strcmp(node->phase, "closing") == 0 ? CELL_TRAINING
                                                                                    : CELL_SAVING;
}

int web_world_find(const muster_rows_t *nodes, int64_t world_size, int64_t now_unix_ms,
                   struct web_world *ret_world)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);

    *ret_world = (struct web_world){.count = world_size < 0 ? 0 : (size_t)world_size};
    for (size_t i = 0; i < muster_rows_count(nodes); i++)
        if (tool_node_is_rank(&node[i]) && node[i].rank >= (int64_t)ret_world->count &&
            node[i].rank < 1000000)
            ret_world->count = (size_t)node[i].rank + 1;
    ret_world->rank = calloc(ret_world->count + 1, sizeof *ret_world->rank);
    if (ret_world->rank == NULL)
        return tool_fail(TOOL_NO, "no memory for the ranks");
    for (size_t i = 0; i < muster_rows_count(nodes); i++) {
        const struct muster_node_row **place =
            &ret_world->rank[node[i].rank < 0 ? 0 : node[i].rank];

        if (!tool_node_is_rank(&node[i]) || node[i].rank < 0 ||
            (size_t)node[i].rank >= ret_world->count)
            continue;
        if (*place == NULL || !tool_node_is_live(*place) || tool_node_is_live(&node[i]))
            *place = &node[i];
        if (node[i].done > ret_world->frontier)
            ret_world->frontier = node[i].done;
        ret_world->generation = node[i].generation;
    }
    for (size_t i = 0; i < ret_world->count; i++)
        ret_world->cells[web_cell_of(ret_world->rank[i], now_unix_ms)]++;
    return TOOL_DONE;
}

void web_world_free(struct web_world *world)
{
    free(world->rank);
    *world = (struct web_world){0};
}

/* --- the documents ---------------------------------------------------------------------------- */

struct heat_place {
    const char *host;
    size_t rank;
};

static int heat_compare(const void *one, const void *other)
{
    const struct heat_place *a = one, *b = other;
    int order = strverscmp(a->host, b->host);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Ranks by host; owned. */
static struct heat_place *heat_order(const struct web_world *world)
{
    struct heat_place *places = calloc(world->count + 1, sizeof *places);

    for (size_t i = 0; places != NULL && i < world->count; i++)
        places[i] = (struct heat_place){world->rank[i] == NULL ? "" : world->rank[i]->host, i};
    if (places != NULL)
        qsort(places, world->count, sizeof *places, heat_compare);
    return places;
}

/* A number that changes when a rank moved to another host: the page then asks for everything. */
static uint64_t heat_layout(const struct web_world *world)
{
    uint64_t hash = world->count;

    for (size_t i = 0; i < world->count; i++)
        if (world->rank[i] != NULL)
            hash =
                XXH3_64bits_withSeed(world->rank[i]->host, strlen(world->rank[i]->host), hash + i);
    return hash;
}

static void heat_put_frame(FILE *out, const struct web_world *world, int64_t now_unix_ms)
{
    fprintf(out,
            "\"generation\":%" PRId64 ",\"frontier\":%" PRId64 ",\"layout\":\"%016" PRIx64
            "\",\"states\":\"",
            world->generation, world->frontier, heat_layout(world));
    for (size_t i = 0; i < world->count; i++)
        fputc(web_cell_letters[web_cell_of(world->rank[i], now_unix_ms)], out);
    fputs("\",\"lags\":[", out);
    for (size_t i = 0; i < world->count; i++)
        fprintf(out, "%s%" PRId64, i == 0 ? "" : ",",
                world->rank[i] == NULL ? 0 : world->rank[i]->lag);
    fputc(']', out);
}

static void heat_put_hosts(FILE *out, const struct web_world *world,
                           const struct heat_place *places)
{
    size_t begun = 0;

    fputs(",\"order\":[", out);
    for (size_t i = 0; i < world->count; i++)
        fprintf(out, "%s%zu", i == 0 ? "" : ",", places[i].rank);
    fputs("],\"hosts\":[", out);
    for (size_t i = 1; i <= world->count; i++) {
        json_t *name;
        char *text;

        if (i < world->count && strcmp(places[i].host, places[begun].host) == 0)
            continue;
        name = json_string(places[begun].host);
        text = name == NULL ? NULL : json_dumps(name, JSON_ENCODE_ANY);
        fprintf(out, "%s[%s,%zu]", begun == 0 ? "" : ",", text == NULL ? "\"?\"" : text, i - begun);
        free(text);
        json_decref(name);
        begun = i;
    }
    fputc(']', out);
}

static int heat_world(struct tool *tool, muster_rows_t **ret_nodes, struct web_world *ret_world)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *job = NULL;
    int code = tool_find_job(tool);

    if (code == TOOL_DONE)
        code = tool_get_job(tool, tool->job, &job);
    if (code != TOOL_DONE)
        return code;
    code = web_failed(muster_client_nodes(tool->client, tool->job, 0, ret_nodes, &err), &err);
    if (code == TOOL_DONE)
        code = web_world_find(*ret_nodes, muster_rows_jobs(job)[0].world_size, tool->now_unix_ms,
                              ret_world);
    muster_rows_destroy(&job);
    return code;
}

static int heat_make(struct tool *tool, bool hosts)
{
    muster_rows_t *nodes = NULL;
    struct web_world world = {0};
    int code = heat_world(tool, &nodes, &world);
    struct heat_place *places = code == TOOL_DONE && hosts ? heat_order(&world) : NULL;

    if (code == TOOL_DONE && hosts && places == NULL)
        code = tool_fail(TOOL_NO, "no memory for the ranks");
    if (code == TOOL_DONE) {
        fprintf(tool->out, "{\"schema_version\":%d,", RENDER_SCHEMA_VERSION);
        heat_put_frame(tool->out, &world, tool->now_unix_ms);
        if (places != NULL)
            heat_put_hosts(tool->out, &world, places);
        fputs("}", tool->out);
    }
    free(places);
    web_world_free(&world);
    muster_rows_destroy(&nodes);
    return code;
}

int web_make_heat(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web, (void)request;
    return heat_make(tool, true);
}

int web_make_frame(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web, (void)request;
    return heat_make(tool, false);
}
