/* nearest - see nearest.h. */
#include "schema/nearest.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 32

static size_t nearest_least_of(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Letters to add, drop, replace, or swap with their neighbour. Both words have at most WORD_MAX
 * letters. */
static size_t nearest_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][WORD_MAX + 1]; /* of i - 2, i - 1 and i letters of a */

    for (size_t k = 0; k <= b_length; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            bool same = a[i - 1] == b[k - 1];

            row[k] = nearest_least_of(last[k] + 1, row[k - 1] + 1, last[k - 1] + (same ? 0 : 1));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                before[k - 2] + 1 < row[k])
                row[k] = before[k - 2] + 1;
        }
    }
    return rows[a_length % 3][b_length];
}

void nearest_offer(struct nearest *nearest, const char *known)
{
    size_t length = strlen(known), edits;
    size_t most = nearest->length < 4 ? 1 : 2;

    if (length > WORD_MAX || nearest->length > WORD_MAX)
        return;
    edits = nearest_edits(nearest->word, nearest->length, known, length);
    if (edits > most || edits >= length || (nearest->best != NULL && edits >= nearest->best_edits))
        return;
    nearest->best = known;
    nearest->best_edits = edits;
}

void nearest_hint(const struct nearest *nearest, const char *prefix,
                  char ret_hint[NEAREST_HINT_MAX])
{
    ret_hint[0] = '\0';
    if (nearest->best != NULL)
        snprintf(ret_hint, NEAREST_HINT_MAX, " (did you mean %s%s?)", prefix, nearest->best);
}
