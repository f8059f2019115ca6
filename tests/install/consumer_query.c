/* consumer_query - a user's program on libmuster-query: sees only what is installed. */
#include <muster/status.h>
#if __has_include(<muster/client.h>)
#include <muster/client.h>
#endif

#include <stdio.h>

int main(void)
{
    printf("%s\n", muster_status_sentence(MUSTER_E_NOT_FOUND));
    return 0;
}
