/* The grid of ranks: one state a rank, of its newest process, and the hosts that they are on. */
#include "tools/web/heat.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/unit/tools/blank_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW 1000000

static const struct muster_node_row trains = {
    .role = "worker", .state = "restored", .phase = "stepping", .heard_unix_ms = NOW};

static void is_cell(struct muster_node_row node, enum web_cell expected)
{
    assert_int_equal(web_cell_of(&node, NOW), expected);
}

static void each_state_has_a_cell(void **state)
{
    struct muster_node_row node = trains;

    (void)state;
    assert_int_equal(web_cell_of(NULL, NOW), CELL_MISSING);
    is_cell(node, CELL_TRAINING);
    node.heard_unix_ms = NOW - HEAT_SILENT_MS;
    is_cell(node, CELL_TRAINING);
    node.heard_unix_ms--;
    is_cell(node, CELL_SILENT);
    node.stuck_unix_ms = NOW - 5; /* more is known of it than that it is silent */
    is_cell(node, CELL_STUCK);
    node.state = "lost";
    is_cell(node, CELL_LOST);
    node.state = "left";
    is_cell(node, CELL_LEFT);
    node = trains;
    node.phase = "saving";
    is_cell(node, CELL_SAVING);
    node.phase = "closing";
    is_cell(node, CELL_TRAINING);
    node.state = "joined";
    is_cell(node, CELL_JOINING);
}

static muster_rows_t *three_ranks(void)
{
    muster_rows_t *rows = blank_rows("nodes", 5);
    struct muster_node_row *node = BLANK(node, rows);
    static const struct muster_node_row values[] = {
        {.rank = 0, .host = "node-10", .state = "lost", .done = 50, .lag = 0},
        {.rank = 0, .host = "node-2", .state = "restored", .done = 40, .lag = 2},
        {.rank = 1, .host = "node-10", .state = "restored", .done = 42, .lag = 0},
        {.rank = 2, .host = "node-2", .state = "restored", .done = 41, .lag = 1},
        {.rank = 0, .host = "node-1", .state = "restored", .done = 99, .role = "evaluator"}};

    for (size_t i = 0; i < 5; i++) {
        node[i].rank = values[i].rank;
        node[i].host = values[i].host;
        node[i].state = values[i].state;
        node[i].done = values[i].done;
        node[i].lag = values[i].lag;
        node[i].role = values[i].role != NULL ? values[i].role : "worker";
        node[i].phase = "stepping";
        node[i].heard_unix_ms = NOW;
        node[i].generation = 4;
    }
    return rows;
}

static void the_process_that_lives_stands_for_its_rank_and_no_observer_does(void **state)
{
    muster_rows_t *rows = three_ranks();
    struct web_world world;

    (void)state;
    assert_int_equal(web_world_find(rows, 4, NOW, &world), TOOL_DONE);
    assert_int_equal(world.count, 4);
    assert_string_equal(world.rank[0]->host, "node-2");
    assert_null(world.rank[3]);
    assert_int_equal(world.cells[CELL_TRAINING], 3);
    assert_int_equal(world.cells[CELL_MISSING], 1);
    assert_int_equal(world.generation, 4);
    web_world_free(&world);
    /* A rank beyond the world's size of a row that is older is still shown. */
    assert_int_equal(web_world_find(rows, 1, NOW, &world), TOOL_DONE);
    assert_int_equal(world.count, 3);
    web_world_free(&world);
    muster_rows_destroy(&rows);
}

static void hosts_stand_in_the_order_of_their_numbers(void **state)
{
    muster_rows_t *rows = three_ranks();
    struct web_world world;
    struct heat_place *places;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(web_world_find(rows, 3, NOW, &world), TOOL_DONE);
    places = heat_order(&world);
    heat_put_hosts(out, &world, places);
    fclose(out);
    assert_string_equal(text, ",\"order\":[0,2,1],\"hosts\":[[\"node-2\",2],[\"node-10\",1]]");
    free(text);
    free(places);
    web_world_free(&world);
    muster_rows_destroy(&rows);
}

static void a_frame_tells_of_another_layout_when_a_rank_is_elsewhere(void **state)
{
    muster_rows_t *rows = three_ranks();
    struct web_world world;
    char *text = NULL;
    uint64_t before;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(web_world_find(rows, 3, NOW, &world), TOOL_DONE);
    before = heat_layout(&world);
    heat_put_frame(out, &world, NOW);
    fclose(out);
    assert_non_null(strstr(text, "\"states\":\"ttt\",\"lags\":[2,0,1]"));
    free(text);
    BLANK(node, rows)[2].host = "node-3";
    assert_true(heat_layout(&world) != before);
    web_world_free(&world);
    muster_rows_destroy(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_has_a_cell),
        cmocka_unit_test(the_process_that_lives_stands_for_its_rank_and_no_observer_does),
        cmocka_unit_test(hosts_stand_in_the_order_of_their_numbers),
        cmocka_unit_test(a_frame_tells_of_another_layout_when_a_rank_is_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
