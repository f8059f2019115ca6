/* words_model - a character-level neural language model: an MLP over a context of a few symbols
 * (Bengio, Ducharme, Vincent, Jauvin 2003), trained by SGD with momentum, in float32.
 * Owns: weights, velocity and scratch. Never: data, processes, files, clocks.
 *
 *     x = embeddings of the context, concatenated;  h = tanh(b1 + x W1);  p = softmax(b2 + h W2)
 *
 * Deterministic: the same binary on the same machine gives the same bits for the same seed and
 * batches. Every sum is written in a fixed order, so it must not be built with -ffast-math. */
#ifndef WORDS_MODEL_H
#define WORDS_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct words_shape {
    uint32_t context; /* symbols looked at */
    uint32_t dim;     /* numbers that describe one symbol */
    uint32_t hidden;
};

struct words_model {
    struct words_shape shape;
    size_t count;          /* parameters, all in one array: */
    size_t w1, b1, w2, b2; /* where each part begins; the embeddings begin at 0 */
    float *weights;        /* weights and velocity are the whole state of the training */
    float *velocity;
    float *scratch;
};

/* Draws the weights from the seed. 0 or -ENOMEM; free with words_model_close. */
int words_model_open(struct words_model *model, const struct words_shape *shape, uint64_t seed);
void words_model_close(struct words_model *model);

/* Returns the mean loss (nats per symbol) of a batch, and puts its gradient into
 * ret_gradient[count] unless that is NULL. Changes nothing but scratch. contexts[batch][context],
 * targets[batch]: symbols. */
double words_model_loss(struct words_model *model, const uint8_t *contexts, const uint8_t *targets,
                        uint32_t batch, float *ret_gradient);

/* One step of SGD: velocity = momentum * velocity + gradient; weights -= rate * velocity. */
void words_model_update(struct words_model *model, const float *gradient, float rate,
                        float momentum);

/* FNV-1a of the bytes: equal weights, equal sum. */
uint64_t words_model_hash(const struct words_model *model);

#endif
