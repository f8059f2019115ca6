/* consumer.cpp - a program in C++17, which has no designated initializers: checks/headers.sh compiles it. */
#include <muster/muster.h>

int main()
{
    muster_node_options node;
    muster_manager_options manager;
    muster_save_request request;
    muster_policies policies;
    muster_training_state_options training;
    muster_coordinator_options coordinator;
    muster_call call;
    muster_worker_options worker;

    muster_node_options_init(&node, sizeof node);
    muster_manager_options_init(&manager, sizeof manager);
    muster_save_request_init(&request, sizeof request);
    muster_policies_init(&policies, sizeof policies);
    muster_training_state_options_init(&training, sizeof training);
    muster_coordinator_options_init(&coordinator, sizeof coordinator);
    muster_call_init(&call, sizeof call);
    muster_worker_options_init(&worker, sizeof worker);
    return muster_version()[0] == '\0';
}
