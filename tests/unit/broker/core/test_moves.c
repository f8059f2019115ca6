/* schema/PROTOCOL.md shows the tables of moves as they are. */
#include "broker/core/dispatch.h"
#include "node/core/member_state.h"
#include "schema/moves.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TEXT_SIZE 4096

static void show(const struct moves *moves, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "```text\n%s\n", moves->machine);

    for (unsigned from = 0; from < moves->count; from++) {
        const char *between = " -> ";
        at += (size_t)snprintf(text + at, size - at, "  %-9s", moves->name(from));
        for (unsigned to = 0; to < moves->count; to++)
            if (moves_allow(moves, from, to)) {
                at += (size_t)snprintf(text + at, size - at, "%s%s", between, moves->name(to));
                between = ", ";
            }
        at += (size_t)snprintf(text + at, size - at, "\n");
        while (text[at - 2] == ' ')
            text[--at] = '\0', text[at - 1] = '\n';
    }
    snprintf(text + at, size - at, "```\n");
}

static char *page(void)
{
    FILE *file = fopen(SOURCE_DIR "/schema/PROTOCOL.md", "r");
    char *text = calloc(1, 1 << 18);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

static void the_page_shows_each_table(void **state)
{
    static const struct moves *const all[] = {&generation_moves, &peer_moves, &round_moves,
                                              &link_moves, &part_moves};
    char *text = page(), table[TEXT_SIZE];
    bool missing = false;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        show(all[i], table, sizeof table);
        if (strstr(text, table) != NULL)
            continue;
        missing = true;
        print_error("schema/PROTOCOL.md does not show this table as it is:\n%s", table);
    }
    free(text);
    assert_false(missing);
}

static void what_no_table_has_is_refused(void **state)
{
    (void)state;
    assert_false(moves_allow(&round_moves, ROUND_COMMITTED, ROUND_ABORTED));
    assert_false(moves_allow(&peer_moves, NODE_LOST, NODE_JOINED));
    assert_false(moves_allow(&generation_moves, GENERATION_STATE_COUNT, GENERATION_JOINING));
    assert_true(moves_allow(&round_moves, ROUND_DECIDED, ROUND_COMMITTED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_shows_each_table),
        cmocka_unit_test(what_no_table_has_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
