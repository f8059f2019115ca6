/* words_data - see words_data.h. The shuffle is a Feistel network on numbers of 2 * half_bits bits,
 * repeated until the result is an example (cycle walking). This permutation needs no memory and no
 * history, so any step of any epoch can be asked for directly. */
#include "words_data.h"

#include "words_random.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEISTEL_ROUNDS 4

static int read_file(const char *path, char **ret_bytes, size_t *ret_size)
{
    FILE *file = fopen(path, "rbe");
    size_t size = 0, capacity = 0;
    char *bytes = NULL;

    if (!file)
        return -errno;
    do {
        if (size == capacity) {
            char *larger = realloc(bytes, capacity = capacity ? 2 * capacity : 1 << 20);

            if (!larger) {
                free(bytes);
                fclose(file);
                return -ENOMEM;
            }
            bytes = larger;
        }
        size += fread(bytes + size, 1, capacity - size, file);
    } while (!feof(file) && !ferror(file));
    if (ferror(file)) {
        int code = errno ? -errno : -EIO;

        free(bytes);
        fclose(file);
        return code;
    }
    fclose(file);
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}

/* Appends the word if it is a to z throughout; returns the new length of the text. */
static uint64_t encode_word(uint8_t *text, uint64_t length, const char *word, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (word[i] < 'a' || word[i] > 'z')
            return length; /* what was written beyond `length` is overwritten by the next word */
        text[length + i] = (uint8_t)(word[i] - 'a' + 1);
    }
    if (size == 0)
        return length;
    text[length + size] = 0;
    return length + size + 1;
}

static void encode_list(struct words_data *data, const char *bytes, size_t size)
{
    uint64_t length = 1;

    data->text[0] = 0;
    for (size_t begin = 0; begin < size;) {
        const char *newline = memchr(bytes + begin, '\n', size - begin);
        size_t end = newline ? (size_t)(newline - bytes) : size;
        size_t next = end + 1;
        uint64_t longer;

        if (end > begin && bytes[end - 1] == '\r')
            end--;
        longer = encode_word(data->text, length, bytes + begin, end - begin);
        data->word_count += longer > length;
        length = longer;
        begin = next;
    }
    data->example_count = length - 1;
}

int words_data_open(struct words_data *data, const char *path, uint64_t seed)
{
    struct words_data made = {.seed = seed, .half_bits = 1};
    char *bytes = NULL;
    size_t size = 0;
    int code = read_file(path, &bytes, &size);

    if (code)
        return code;
    made.text =
        malloc(size + 2); /* each word needs its length and 1; the last may lack a newline */
    if (!made.text) {
        free(bytes);
        return -ENOMEM;
    }
    encode_list(&made, bytes, size);
    free(bytes);
    if (made.example_count == 0) {
        free(made.text);
        return -ENODATA;
    }
    while (made.example_count > UINT64_C(1) << (2 * made.half_bits))
        made.half_bits++;
    *data = made;
    return 0;
}

void words_data_close(struct words_data *data)
{
    free(data->text);
    *data = (struct words_data){0};
}

static uint64_t permute_once(uint64_t value, uint64_t key, unsigned half_bits)
{
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = value >> half_bits, right = value & mask;

    for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
        uint64_t next =
            left ^ (words_random_mix(key + round * UINT64_C(0x100000000) + right) & mask);

        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* The index-th example of an epoch, 1 to example_count. */
static uint64_t shuffled(const struct words_data *data, uint64_t epoch, uint64_t index)
{
    uint64_t key = words_random_mix(data->seed ^ words_random_mix(epoch));

    do
        index = permute_once(index, key, data->half_bits);
    while (index >= data->example_count); /* ends: a permutation leads back below the count */
    return index + 1;
}

static void encode_example(const struct words_data *data, uint64_t at, uint32_t context,
                           uint8_t *ret_context)
{
    bool inside = true;

    for (uint32_t back = 1; back <= context; back++) {
        if (inside)
            inside = data->text[at - back] != 0; /* text[0] is 0: never read before the text */
        ret_context[context - back] = inside ? data->text[at - back] : 0;
    }
}

static uint64_t first_example(const struct words_place *place)
{
    return place->step * place->world_size * place->batch + (uint64_t)place->rank * place->batch;
}

void words_data_batch(const struct words_data *data, const struct words_place *place,
                      uint8_t *contexts, uint8_t *targets)
{
    uint64_t first = first_example(place);

    for (uint32_t i = 0; i < place->batch; i++) {
        uint64_t number = first + i;
        uint64_t at = shuffled(data, number / data->example_count, number % data->example_count);

        encode_example(data, at, place->context, contexts + (size_t)i * place->context);
        targets[i] = data->text[at];
    }
}

void words_data_position(const struct words_data *data, const struct words_place *place,
                         uint64_t *ret_epoch, uint64_t *ret_index)
{
    uint64_t first = place->step * place->world_size * place->batch;

    *ret_epoch = first / data->example_count;
    *ret_index = first % data->example_count;
}
