/* replay_main [-mutants=N] FILE|FOLDER... - runs a libFuzzer target without libFuzzer, as a plain
 * test. Feeds every file named on the command line (folders: each file in them), then inputs made
 * from them by a fixed seed: cut, bits flipped, bytes replaced. Never random: the same inputs on
 * every run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (1024u * 1024u)
#define NOISE_PER_MUTANT 5u
#define MUTANT_BYTES_MAX 65536u /* longer inputs are replayed as they are */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seed = 0x9e3779b97f4a7c15u;
static unsigned long fed_count;
static unsigned mutants_per_input = 200; /* slow targets ask for less */

static uint64_t next_random(void) /* xorshift64 */
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* An exact-size heap copy, so that the sanitizer sees a read past the end. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (copy == NULL)
        exit(2);
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    fed_count++;
}

static void feed_mutants(const uint8_t *data, size_t size)
{
    uint8_t *mutant;

    if (size == 0 || size > MUTANT_BYTES_MAX)
        return;
    mutant = malloc(size);
    if (mutant == NULL)
        exit(2);
    for (unsigned i = 0; i < mutants_per_input; i++) {
        memcpy(mutant, data, size);
        for (unsigned change = 0; change <= i % 4; change++) {
            size_t at = next_random() % size;

            if (next_random() % 2)
                mutant[at] = (uint8_t)next_random();
            else
                mutant[at] = (uint8_t)(mutant[at] ^ (1u << next_random() % 8));
        }
        feed(mutant, i % 3 == 0 ? next_random() % (size + 1) : size);
    }
    free(mutant);
}

static void replay_file(const char *path)
{
    uint8_t *data = malloc(INPUT_MAX);
    FILE *file = fopen(path, "rb");
    size_t size;

    if (data == NULL || file == NULL) {
        perror(path);
        exit(2);
    }
    size = fread(data, 1, INPUT_MAX, file);
    fclose(file);
    feed(data, size);
    feed_mutants(data, size);
    free(data);
}

static void replay(const char *path)
{
    struct dirent **entries;
    struct stat info;
    int count;

    if (stat(path, &info) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(info.st_mode)) {
        replay_file(path);
        return;
    }
    count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char child[4096];

        snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replay(child);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    static const char option[] = "-mutants=";
    uint8_t noise[512] = {0};
    int first = 1;

    if (argc > 1 && strncmp(argv[1], option, strlen(option)) == 0)
        mutants_per_input = (unsigned)strtoul(argv[first++] + strlen(option), NULL, 10);
    feed(noise, 0);
    for (unsigned i = 0; i < mutants_per_input * NOISE_PER_MUTANT; i++) {
        size_t size = next_random() % sizeof noise;

        for (size_t at = 0; at < size; at++)
            noise[at] = (uint8_t)next_random();
        feed(noise, size);
    }
    for (int i = first; i < argc; i++)
        replay(argv[i]);
    printf("%lu inputs\n", fed_count);
    return 0;
}
