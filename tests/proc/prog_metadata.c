/* prog_metadata URL_FILE - a metadata service that answers as it is told: each line of its input is
 * "PATH STATUS BODY..." and holds from then on; "posts" asks how many came. Every answer says
 * that it is Google's, which others do not mind. Its address goes into the file. Ends with its input. */
#include "tests/support/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
            printf("%zu POSTs\n", http_server_hits(server, "POST /metadata/scheduledevents"));
            fflush(stdout);
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
