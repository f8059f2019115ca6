/* words_options - the command line of train_words. Owns nothing; strings point into argv or are
 * static. */
#ifndef WORDS_OPTIONS_H
#define WORDS_OPTIONS_H

#include "words_model.h"

#include <stdbool.h>
#include <stdint.h>

struct words_options {
    const char *words;          /* the word list */
    const char *job;            /* NULL: as the environment says */
    const char *checkpoint_dir; /* NULL: as the environment says */
    const char *out;            /* rank 0 writes the final weights here; NULL: nowhere */
    struct words_shape shape;
    uint64_t steps;
    uint64_t seed;
    uint32_t batch; /* examples a rank and step */
    float rate;
    float momentum;
    uint32_t report_every;  /* steps between two lines of loss */
    uint32_t step_sleep_ms; /* added to every step, to stand for a larger model */
    uint32_t timeout_ms;    /* how long to wait for other ranks in a collective */
    bool sharded;           /* each rank saves its part of the state, else one rank all of it */
    bool quiet;
};

/* Fills options from argv. Returns -1: go on; else the exit code to leave with, after printing
 * why. */
int words_options_parse(struct words_options *options, int argc, char **argv);

#endif
