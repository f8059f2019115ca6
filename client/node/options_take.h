/* options_take - a caller's structure with a struct_size, as this library knows it.
 * Holds: no byte beyond the caller's struct_size is read; members that an older caller does not
 * know get their defaults. */
#ifndef CLIENT_NODE_OPTIONS_TAKE_H
#define CLIENT_NODE_OPTIONS_TAKE_H

#include <muster/checkpoint.h>
#include <muster/coordinator.h>
#include <muster/manager.h>
#include <muster/training.h>
#include <muster/worker.h>

/* Copies *given to *ret_own. A shorter one was built with an older muster, down to the first
 * release. A longer one was built with a newer muster. E_ARGUMENT: it is NULL, or not begun with
 * its INIT macro · E_VERSION: it sets what this library does not know. */
enum muster_status node_options_take(const struct muster_node_options *given,
                                     struct muster_node_options *ret_own, struct muster_error *err);
enum muster_status manager_options_take(const struct muster_manager_options *given,
                                        struct muster_manager_options *ret_own,
                                        struct muster_error *err);
enum muster_status save_request_take(const struct muster_save_request *given,
                                     struct muster_save_request *ret_own, struct muster_error *err);
enum muster_status policies_take(const struct muster_policies *given,
                                 struct muster_policies *ret_own, struct muster_error *err);
enum muster_status training_state_options_take(const struct muster_training_state_options *given,
                                               struct muster_training_state_options *ret_own,
                                               struct muster_error *err);
enum muster_status coordinator_options_take(const struct muster_coordinator_options *given,
                                            struct muster_coordinator_options *ret_own,
                                            struct muster_error *err);
enum muster_status call_take(const struct muster_call *given, struct muster_call *ret_own,
                             struct muster_error *err);
enum muster_status worker_options_take(const struct muster_worker_options *given,
                                       struct muster_worker_options *ret_own,
                                       struct muster_error *err);
enum muster_status read_options_take(const struct muster_read_options *given,
                                     struct muster_read_options *ret_own, struct muster_error *err);

#endif
