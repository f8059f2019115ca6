/* prog_metadata URL_FILE - a metadata service that answers as it is told: each line of its input is
 * "PATH STATUS BODY..." and holds from then on; "posts" asks how many came, and when (ms since
 * 1970). Every answer says that it is Google's, which others do not mind. Its address goes into the
 * file. Ends with its input. */
#include "tests/support/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void print_posts(struct http_server *server)
{
    const char *path = "POST /metadata/scheduledevents";
    int64_t age_ms = clock_ms(CLOCK_BOOTTIME) - http_server_last_boot_ms(server, path);

    printf("%zu POSTs, the last at %lld\n", http_server_hits(server, path),
           (long long)(clock_ms(CLOCK_REALTIME) - age_ms));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct http_server *server;
    char line[4096];
    int code;
    FILE *file;

    if (argc != 2)
        return 2;
    server = http_server_start();
    file = fopen(argv[1], "w");
    if (file == NULL)
        return 2;
    fprintf(file, "%s\n", http_server_url(server));
    fclose(file);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *status, *body = NULL;

        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "posts") == 0) {
            print_posts(server);
            continue;
        }
        status = strchr(line, ' ');
        if (status == NULL)
            return 2;
        *status++ = '\0';
        code = (int)strtol(status, &body, 10);
        body += *body == ' ';
        http_server_replace(server, "GET", line,
                            (struct http_script){.status = code,
                                                 .headers = "Metadata-Flavor: Google\r\n",
                                                 .body = body});
        http_server_on(server, "POST", line, (struct http_script){.body = ""});
    }
    http_server_stop(&server);
    return 0;
}
