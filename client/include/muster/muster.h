/* muster.h - all of muster's headers: the node (libmuster) and the questions about jobs
 * (libmuster-query). */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include <muster/checkpoint.h>
#include <muster/client.h>
#include <muster/coordinator.h>
#include <muster/manager.h>
#include <muster/node.h>
#include <muster/policy.h>
#include <muster/status.h>
#include <muster/training.h>
#include <muster/types.h>
#include <muster/worker.h>

#endif
