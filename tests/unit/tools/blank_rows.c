/* blank_rows - see blank_rows.h. */
#include "tests/unit/tools/blank_rows.h"

#include "client/query/query_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

muster_rows_t *blank_rows(const char *query, size_t count)
{
    muster_rows_t *rows = rows_create(query);

    assert_non_null(rows);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows_append(rows, NULL, 0, NULL), MUSTER_OK);
    return rows;
}
