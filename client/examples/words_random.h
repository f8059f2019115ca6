/* words_random - the only source of chance in the example: splitmix64 (Steele, Lea, Flood 2014).
 * Owns nothing. The C library's rand() is never used: its stream belongs to the host program. */
#ifndef WORDS_RANDOM_H
#define WORDS_RANDOM_H

#include <stdint.h>

/* A 64-bit value that depends on every bit of x; the same on every machine. */
static inline uint64_t words_random_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The next value of the stream in *state. */
static inline uint64_t words_random_next(uint64_t *state)
{
    uint64_t value = words_random_mix(*state);

    *state += UINT64_C(0x9e3779b97f4a7c15);
    return value;
}

/* Uniform in [-limit, limit); 24 random bits, so the conversion is exact. */
static inline float words_random_uniform(uint64_t *state, float limit)
{
    float unit = (float)(words_random_next(state) >> 40) / 16777216.0f;

    return (2.0f * unit - 1.0f) * limit;
}

#endif
