/* words_ps - the parameter server of train_words_ps: only it has the weights; workers pull them and
 * push gradients, over a Unix socket, one exchange per connection. Owns: the server's socket, and
 * the gradients of the one step that is being made. Never: a thread, a signal.
 *
 * A step is `parts` gradients, each of its own part of the batch. Part p of step s counts once,
 * however often it is pushed: a repeated attempt (tasks run at least once) changes nothing here.
 * When the last part is there, the step is their mean, taken in the parts' order. So the weights
 * after step s are the same bits, whoever computed what, in whatever order. No wait is longer than
 * the timeout. */
#ifndef WORDS_PS_H
#define WORDS_PS_H

#include "words_model.h"

#include <stddef.h>
#include <stdint.h>

#define WORDS_PS_PARTS_MAX 64

struct words_ps {
    struct words_model *model; /* borrowed: the weights */
    float rate, momentum;
    uint32_t parts;      /* of a step */
    unsigned timeout_ms; /* of one exchange */
    uint64_t step;       /* how many were made */
    float *gradients;    /* [parts][model->count] */
    uint64_t have;       /* a bit for each part of this step */
};

/* 0 or -ENOMEM, -EINVAL; free with words_ps_close. The caller sets the fields above gradients
 * before. */
int words_ps_open(struct words_ps *ps);
void words_ps_close(struct words_ps *ps);

/* Answers at the path until stop_fd can be read. Returns 0, or a negative errno if the socket
 * cannot be made. */
int words_ps_serve(struct words_ps *ps, const char *path, int stop_fd);

/* The server's weights and velocity into the model's, and how many steps they have seen; and the
 * other way. 0 or a negative errno. */
int words_ps_pull(const char *path, unsigned timeout_ms, struct words_model *model,
                  uint64_t *ret_step);
int words_ps_set(const char *path, unsigned timeout_ms, const struct words_model *model,
                 uint64_t step);

/* Part `part` of step `step`: 0 it counts, or did before; -ERANGE: that step is not yet begun. */
int words_ps_push(const char *path, unsigned timeout_ms, uint64_t step, uint32_t part,
                  const float *gradient, size_t count);

#endif
