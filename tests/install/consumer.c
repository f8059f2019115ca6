/* consumer - a user's program: sees only what is installed. */
#include <muster/status.h>
#if __has_include(<muster/muster.h>)
#include <muster/muster.h>
#endif

#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("%s: %s\n", muster_status_name(MUSTER_E_BROKER), muster_status_advice(MUSTER_E_BROKER));
    return strcmp(muster_status_name(MUSTER_PREEMPTED), "MUSTER_PREEMPTED") != 0;
}
