/* words_data - a word list as training examples, and which of them a rank trains on at a step.
 * Owns: the encoded text. Never: a position. The batch is a pure function of (seed, step, rank,
 * world size), so a resumed run needs to know its step and nothing else.
 *
 * The text is the kept words (all letters a to z), each followed by symbol 0; a to z are 1 to 26.
 * An example is "predict this symbol from the symbols before it in the same word", 0 before its
 * start. One epoch visits every example once, in an order drawn from (seed, epoch). */
#ifndef WORDS_DATA_H
#define WORDS_DATA_H

#include <stddef.h>
#include <stdint.h>

#define WORDS_SYMBOL_COUNT 27 /* end of word, a to z */

struct words_data {
    uint8_t *text; /* text[0] is an end of word, so that every example has a symbol before it */
    uint64_t example_count; /* the examples are text[1] to text[example_count] */
    uint64_t word_count;
    uint64_t seed;
    unsigned half_bits; /* half the width of the permuted numbers */
};

/* Where a batch is taken from the stream of examples. */
struct words_place {
    uint64_t step; /* counted from 0 at the job's start */
    uint32_t rank, world_size;
    uint32_t batch;   /* examples a rank trains on in a step */
    uint32_t context; /* symbols before the one to predict */
};

/* Reads the list at path. 0 or a negative errno; -ENODATA: not one word of a to z in it.
 * On success the caller frees with words_data_close; on failure there is nothing to free. */
int words_data_open(struct words_data *data, const char *path, uint64_t seed);
void words_data_close(struct words_data *data);

/* Fills contexts[batch][context] and targets[batch] for one rank and step. Thread-safe. */
void words_data_batch(const struct words_data *data, const struct words_place *place,
                      uint8_t *contexts, uint8_t *targets);

/* Which epoch the first example of a step belongs to, and how many examples of it came before. */
void words_data_position(const struct words_data *data, const struct words_place *place,
                         uint64_t *ret_epoch, uint64_t *ret_index);

#endif
