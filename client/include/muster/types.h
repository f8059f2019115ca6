/* types.h - constants that all of muster's headers share. */
#ifndef MUSTER_TYPES_H
#define MUSTER_TYPES_H

#include <muster/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUSTER_RANK_NONE (-1)
#define MUSTER_STEP_NONE (-1)
#define MUSTER_TIME_UNKNOWN (-1) /* a time left, or a duration, that is not known */

#endif
