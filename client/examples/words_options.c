/* words_options - see words_options.h. */
#include "words_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: train_words [options]\n"
    "Trains a character-level language model on a list of words, data-parallel over the ranks of\n"
    "its job (MUSTER_RANK, MUSTER_WORLD_SIZE; alone when unset).\n"
    "\n"
    "  --words FILE          one word a line (/usr/share/dict/american-english)\n"
    "  --steps N             steps to train in all, over all lives of the job (2000)\n"
    "  --batch N             examples a rank and step (32)\n"
    "  --context N           symbols looked at (5)\n"
    "  --dim N               numbers that describe one symbol (16)\n"
    "  --hidden N            units of the hidden layer (128)\n"
    "  --lr X                learning rate (0.05)\n"
    "  --momentum X          (0.9)\n"
    "  --seed N              (1)\n"
    "  --job NAME            (MUSTER_JOB)\n"
    "  --checkpoint-dir DIR  (MUSTER_CHECKPOINT_DIR)\n"
    "  --layout L            replicated: one rank saves all; sharded: each its part (replicated)\n"
    "  --out FILE            rank 0 writes the final weights here, float32, native order\n"
    "  --report-every N      steps between two lines of loss (200)\n"
    "  --step-sleep-ms N     added to each step (0)\n"
    "  --timeout-ms N        longest wait for another rank (60000)\n"
    "  --quiet               no loss, no progress; only the last line\n";

enum option_id {
    OPTION_WORDS = 1000,
    OPTION_STEPS,
    OPTION_BATCH,
    OPTION_CONTEXT,
    OPTION_DIM,
    OPTION_HIDDEN,
    OPTION_LR,
    OPTION_MOMENTUM,
    OPTION_SEED,
    OPTION_JOB,
    OPTION_CHECKPOINT_DIR,
    OPTION_LAYOUT,
    OPTION_OUT,
    OPTION_REPORT_EVERY,
    OPTION_STEP_SLEEP_MS,
    OPTION_TIMEOUT_MS,
    OPTION_QUIET,
    OPTION_HELP
};

static const struct option known[] = {
    {"words", required_argument, NULL, OPTION_WORDS},
    {"steps", required_argument, NULL, OPTION_STEPS},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"context", required_argument, NULL, OPTION_CONTEXT},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"hidden", required_argument, NULL, OPTION_HIDDEN},
    {"lr", required_argument, NULL, OPTION_LR},
    {"momentum", required_argument, NULL, OPTION_MOMENTUM},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"job", required_argument, NULL, OPTION_JOB},
    {"checkpoint-dir", required_argument, NULL, OPTION_CHECKPOINT_DIR},
    {"layout", required_argument, NULL, OPTION_LAYOUT},
    {"out", required_argument, NULL, OPTION_OUT},
    {"report-every", required_argument, NULL, OPTION_REPORT_EVERY},
    {"step-sleep-ms", required_argument, NULL, OPTION_STEP_SLEEP_MS},
    {"timeout-ms", required_argument, NULL, OPTION_TIMEOUT_MS},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most)
        return false;
    *ret_value = value;
    return true;
}

static bool parse_count32(const char *text, uint32_t least, uint32_t most, uint32_t *ret_value)
{
    uint64_t value;

    if (!parse_count(text, least, most, &value))
        return false;
    *ret_value = (uint32_t)value;
    return true;
}

static bool parse_rate(const char *text, float least, float most, float *ret_value)
{
    char *end;
    float value;

    errno = 0;
    value = strtof(text, &end);
    if (end == text || *end || errno || !(value >= least && value <= most))
        return false;
    *ret_value = value;
    return true;
}

static bool parse_layout(const char *text, bool *ret_sharded)
{
    bool sharded = strcmp(text, "sharded") == 0;

    if (!sharded && strcmp(text, "replicated") != 0)
        return false;
    *ret_sharded = sharded;
    return true;
}

/* False: the value is not one that the option takes. */
static bool apply(struct words_options *o, int id, const char *text)
{
    switch (id) {
    case OPTION_WORDS:
        o->words = text;
        return true;
    case OPTION_JOB:
        o->job = text;
        return true;
    case OPTION_CHECKPOINT_DIR:
        o->checkpoint_dir = text;
        return true;
    case OPTION_OUT:
        o->out = text;
        return true;
    case OPTION_STEPS:
        return parse_count(text, 1, UINT64_C(1) << 40, &o->steps);
    case OPTION_SEED:
        return parse_count(text, 0, UINT64_MAX, &o->seed);
    case OPTION_BATCH:
        return parse_count32(text, 1, 1 << 20, &o->batch);
    case OPTION_CONTEXT:
        return parse_count32(text, 1, 64, &o->shape.context);
    case OPTION_DIM:
        return parse_count32(text, 1, 1024, &o->shape.dim);
    case OPTION_HIDDEN:
        return parse_count32(text, 1, 1 << 16, &o->shape.hidden);
    case OPTION_LR:
        return parse_rate(text, 0.0f, 100.0f, &o->rate);
    case OPTION_MOMENTUM:
        return parse_rate(text, 0.0f, 0.9999f, &o->momentum);
    case OPTION_REPORT_EVERY:
        return parse_count32(text, 1, UINT32_MAX, &o->report_every);
    case OPTION_STEP_SLEEP_MS:
        return parse_count32(text, 0, 3600000, &o->step_sleep_ms);
    case OPTION_TIMEOUT_MS:
        return parse_count32(text, 1, 86400000, &o->timeout_ms);
    case OPTION_LAYOUT:
        return parse_layout(text, &o->sharded);
    default:
        o->quiet = true;
        return true;
    }
}

int words_options_parse(struct words_options *options, int argc, char **argv)
{
    struct words_options o = {.words = "/usr/share/dict/american-english",
                              .shape = {.context = 5, .dim = 16, .hidden = 128},
                              .steps = 2000,
                              .seed = 1,
                              .batch = 32,
                              .rate = 0.05f,
                              .momentum = 0.9f,
                              .report_every = 200,
                              .timeout_ms = 60000};
    int id, index = 0;

    while ((id = getopt_long(argc, argv, "", known, &index)) != -1) {
        if (id == OPTION_HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (id == '?')
            return 2; /* getopt has said why */
        if (!apply(&o, id, optarg)) {
            fprintf(stderr, "train_words: --%s does not take '%s'; see --help\n", known[index].name,
                    optarg);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "train_words: unexpected '%s'; see --help\n", argv[optind]);
        return 2;
    }
    *options = o;
    return -1;
}
