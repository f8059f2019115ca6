/* nearest - finds the known word that a misspelt word probably means. */
#ifndef SCHEMA_NEAREST_H
#define SCHEMA_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Offer each known word; the best so far is kept. Begin with {.word = what was typed, .length = its
 * bytes}. */
struct nearest {
    const char *word;
    size_t length;
    const char *best; /* borrowed; NULL: none is near */
    size_t best_edits;
};
void nearest_offer(struct nearest *nearest, const char *known);
/* " (did you mean PREFIXbest?)", or "". */
#define NEAREST_HINT_MAX 96
void nearest_hint(const struct nearest *nearest, const char *prefix,
                  char ret_hint[NEAREST_HINT_MAX]);

#endif
