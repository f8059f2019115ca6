/* record_key - see record_key.h. */
#include "tests/support/record_key.h"

#include <stddef.h>
#include <string.h>

/* Where each column of a key is; 0 is the kind's place and so none. */
struct key {
    size_t job, word, number, rank;
    bool is; /* of a kind with one row, or one a job, all the others are 0 */
};

#define AT(field) offsetof(struct record, u.field)
static const struct key keys[RECORD_KIND_COUNT] = {
    [RECORD_BROKER] = {.is = true},
    [RECORD_JOB] = {AT(job.job), .is = true},
    [RECORD_GENERATION] = {AT(generation.job), 0, AT(generation.generation), .is = true},
    [RECORD_NODE] = {AT(node.job), 0, AT(node.incarnation), .is = true},
    [RECORD_PROGRESS] = {AT(progress.job), 0, AT(progress.incarnation), .is = true},
    [RECORD_NOTICE] = {AT(notice.job), AT(notice.id), AT(notice.generation), .is = true},
    [RECORD_EVENT] = {AT(event.job), 0, AT(event.seq), .is = true},
    [RECORD_ROUND] = {AT(round.job), 0, AT(round.round), .is = true},
    [RECORD_PARTICIPANT] = {AT(participant.job), 0, AT(participant.round), AT(participant.rank),
                            true},
    [RECORD_CHECKPOINT] = {AT(checkpoint.job), 0, AT(checkpoint.round), .is = true},
    [RECORD_SHARD] = {AT(shard.job), 0, AT(shard.round), AT(shard.rank), true},
    [RECORD_FILE] = {AT(file.job), AT(file.path), AT(file.round), AT(file.rank), true},
    [RECORD_POLICY] = {AT(policy.job), .is = true},
    [RECORD_HOST] = {AT(host.job), 0, AT(host.launch), AT(host.id), true},
    [RECORD_LAUNCH] = {AT(launch.job), 0, AT(launch.generation), .is = true},
    [RECORD_PIN] = {AT(pin.job), AT(pin.id), AT(pin.checkpoint), .is = true},
    [RECORD_CUSTOM] = {AT(custom.job), 0, AT(custom.round), .is = true},
};
#undef AT

static const char *word_at(const struct record *row, size_t at)
{
    const char *word = NULL;

    if (at != 0)
        memcpy(&word, (const unsigned char *)row + at, sizeof word);
    return word;
}

static uint64_t number_at(const struct record *row, size_t at)
{
    uint64_t number = 0;

    if (at != 0)
        memcpy(&number, (const unsigned char *)row + at, sizeof number);
    return number;
}

static bool same_word(const struct record *a, const struct record *b, size_t at)
{
    const char *one = word_at(a, at), *other = word_at(b, at);

    return one == other || strcmp(one, other) == 0;
}

bool record_same_key(const struct record *a, const struct record *b)
{
    const struct key *key = &keys[a->kind];

    return a->kind == b->kind && key->is &&
           number_at(a, key->number) == number_at(b, key->number) &&
           number_at(a, key->rank) == number_at(b, key->rank) && same_word(a, b, key->word) &&
           same_word(a, b, key->job);
}

uint64_t record_key_hash(const struct record *row)
{
    const struct key *key = &keys[row->kind];

    return (number_at(row, key->number) * UINT64_C(0x9e3779b97f4a7c15) +
            number_at(row, key->rank) * UINT64_C(0xc2b2ae3d27d4eb4f)) >>
           16;
}
