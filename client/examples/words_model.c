/* words_model - see words_model.h. Inner loops run over blocks of LANES neighbours: the compiler
 * can use vector instructions for them without changing the order of any sum. */
#include "words_model.h"

#include "words_data.h"
#include "words_random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8
#define SYMBOLS WORDS_SYMBOL_COUNT

/* y += a * x */
static void add_scaled(float *restrict y, float a, const float *restrict x, size_t count)
{
    size_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            y[i + k] += a * x[i + k];
    for (; i < count; i++)
        y[i] += a * x[i];
}

/* The sum of a[i] * b[i]: LANES interleaved partial sums, then those in order. */
static float dot(const float *restrict a, const float *restrict b, size_t count)
{
    float lane[LANES] = {0};
    float sum = 0;
    size_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    for (size_t k = 0; k < LANES; k++)
        sum += lane[k];
    for (; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Scratch, one array: the numbers of one example on their way forward and back. */
struct pass {
    float *x, *dx; /* [context * dim] */
    float *h, *dh; /* [hidden] */
    float *p;      /* [SYMBOLS]: probabilities, then their error */
};

static size_t input_count(const struct words_shape *shape)
{
    return (size_t)shape->context * shape->dim;
}

static struct pass pass_in(const struct words_model *model)
{
    size_t inputs = input_count(&model->shape), hidden = model->shape.hidden;
    float *at = model->scratch;

    return (struct pass){.x = at,
                         .dx = at + inputs,
                         .h = at + 2 * inputs,
                         .dh = at + 2 * inputs + hidden,
                         .p = at + 2 * inputs + 2 * hidden};
}

static void fill_uniform(float *values, size_t count, float limit, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        values[i] = words_random_uniform(state, limit);
}

int words_model_open(struct words_model *model, const struct words_shape *shape, uint64_t seed)
{
    size_t inputs = input_count(shape), hidden = shape->hidden;
    uint64_t state = words_random_mix(seed ^ UINT64_C(0x6d6f64656c)); /* apart from the data's */
    struct words_model made = {.shape = *shape};

    made.w1 = (size_t)SYMBOLS * shape->dim;
    made.b1 = made.w1 + inputs * hidden;
    made.w2 = made.b1 + hidden;
    made.b2 = made.w2 + hidden * SYMBOLS;
    made.count = made.b2 + SYMBOLS;
    made.weights = calloc(made.count, sizeof(float));
    made.velocity = calloc(made.count, sizeof(float));
    made.scratch = calloc(2 * inputs + 2 * hidden + SYMBOLS, sizeof(float));
    if (!made.weights || !made.velocity || !made.scratch) {
        words_model_close(&made);
        return -ENOMEM;
    }
    fill_uniform(made.weights, made.w1, 1.0f, &state);
    fill_uniform(made.weights + made.w1, inputs * hidden, sqrtf(3.0f / (float)inputs), &state);
    fill_uniform(made.weights + made.w2, hidden * SYMBOLS, 0.1f, &state);
    *model = made;
    return 0;
}

void words_model_close(struct words_model *model)
{
    free(model->weights);
    free(model->velocity);
    free(model->scratch);
    *model = (struct words_model){0};
}

/* Turns logits into probabilities; returns the loss for the symbol that came. */
static double softmax(float *p, uint8_t target)
{
    float largest = p[0], sum = 0;
    double loss;

    for (size_t i = 1; i < SYMBOLS; i++)
        largest = p[i] > largest ? p[i] : largest;
    loss = -(double)(p[target] - largest);
    for (size_t i = 0; i < SYMBOLS; i++) {
        p[i] = expf(p[i] - largest);
        sum += p[i];
    }
    for (size_t i = 0; i < SYMBOLS; i++)
        p[i] /= sum;
    return loss + log((double)sum);
}

static double forward(const struct words_model *model, const uint8_t *context, uint8_t target,
                      struct pass *pass)
{
    const float *w = model->weights;
    size_t dim = model->shape.dim, hidden = model->shape.hidden;
    size_t inputs = input_count(&model->shape);

    for (size_t i = 0; i < model->shape.context; i++)
        memcpy(pass->x + i * dim, w + context[i] * dim, dim * sizeof(float));
    memcpy(pass->h, w + model->b1, hidden * sizeof(float));
    for (size_t i = 0; i < inputs; i++)
        add_scaled(pass->h, pass->x[i], w + model->w1 + i * hidden, hidden);
    for (size_t i = 0; i < hidden; i++)
        pass->h[i] = tanhf(pass->h[i]);
    memcpy(pass->p, w + model->b2, SYMBOLS * sizeof(float));
    for (size_t i = 0; i < hidden; i++)
        add_scaled(pass->p, pass->h[i], w + model->w2 + i * SYMBOLS, SYMBOLS);
    return softmax(pass->p, target);
}

/* Adds one example's share of the gradient, weighted by scale, to g. */
static void backward(const struct words_model *model, const uint8_t *context, uint8_t target,
                     float scale, struct pass *pass, float *g)
{
    const float *w = model->weights;
    size_t dim = model->shape.dim, hidden = model->shape.hidden;
    size_t inputs = input_count(&model->shape);

    pass->p[target] -= 1.0f;
    for (size_t i = 0; i < SYMBOLS; i++)
        pass->p[i] *= scale;
    add_scaled(g + model->b2, 1.0f, pass->p, SYMBOLS);
    for (size_t i = 0; i < hidden; i++) {
        float h = pass->h[i];

        add_scaled(g + model->w2 + i * SYMBOLS, h, pass->p, SYMBOLS);
        pass->dh[i] = dot(w + model->w2 + i * SYMBOLS, pass->p, SYMBOLS) * (1.0f - h * h);
    }
    add_scaled(g + model->b1, 1.0f, pass->dh, hidden);
    for (size_t i = 0; i < inputs; i++) {
        add_scaled(g + model->w1 + i * hidden, pass->x[i], pass->dh, hidden);
        pass->dx[i] = dot(w + model->w1 + i * hidden, pass->dh, hidden);
    }
    for (size_t i = 0; i < model->shape.context; i++)
        add_scaled(g + context[i] * dim, 1.0f, pass->dx + i * dim, dim);
}

double words_model_loss(struct words_model *model, const uint8_t *contexts, const uint8_t *targets,
                        uint32_t batch, float *ret_gradient)
{
    struct pass pass = pass_in(model);
    double loss = 0;

    if (ret_gradient)
        memset(ret_gradient, 0, model->count * sizeof(float));
    for (uint32_t i = 0; i < batch; i++) {
        const uint8_t *context = contexts + (size_t)i * model->shape.context;

        loss += forward(model, context, targets[i], &pass);
        if (ret_gradient)
            backward(model, context, targets[i], 1.0f / (float)batch, &pass, ret_gradient);
    }
    return loss / batch;
}

void words_model_update(struct words_model *model, const float *gradient, float rate,
                        float momentum)
{
    for (size_t i = 0; i < model->count; i++) {
        model->velocity[i] = momentum * model->velocity[i] + gradient[i];
        model->weights[i] -= rate * model->velocity[i];
    }
}

uint64_t words_model_hash(const struct words_model *model)
{
    const unsigned char *bytes = (const unsigned char *)model->weights;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < model->count * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}
