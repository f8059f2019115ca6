/* local_left - see local_left.h. */
#include "node/local/local_left.h"

#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define LINE_BYTES_MAX 80

/* "<generation> <round> <nonce, hexadecimal>\n" */
static bool local_left_read_line(const char *line, uint64_t *ret_generation, uint64_t *ret_round,
                                 uint64_t *ret_nonce)
{
    char *end = NULL;

    *ret_generation = strtoull(line, &end, 10);
    *ret_round = strtoull(end, &end, 10);
    *ret_nonce = strtoull(end, &end, 16);
    return *end == '\n' && *ret_generation > 0 && *ret_round > 0 && *ret_nonce > 0;
}

static void local_left_clear(struct local *local, const char *line)
{
    const struct save_target *target = &local->options.save;
    uint64_t generation = 0, round = 0, nonce = 0;
    struct muster_error why;
    char text[MUSTER_ERROR_TEXT_MAX];
    enum muster_status status;

    if (!local_left_read_line(line, &generation, &round, &nonce))
        return;
    status = dir_remove_round(target->root, target->job, generation, round, nonce, &why);
    if (status == MUSTER_OK || status == MUSTER_E_EXISTS)
        return; /* what is kept is another life's, or was committed: read_root gives it its name */
    snprintf(text, sizeof text, "what an earlier process left unfinished stays: %.2000s", why.text);
    local_say(local, 1, text);
}

void local_left_open(struct local *local)
{
    char path[FS_PATH_MAX], line[LINE_BYTES_MAX + 1] = "";
    ssize_t size;

    local->left_fd = -1;
    if (fs_path(path, NULL, "%s/.muster/LONE", local->options.save.root) != MUSTER_OK)
        return;
    local->left_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (local->left_fd < 0)
        return;
    if (flock(local->left_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            local_say(local, 1,
                      "another process without a broker uses this checkpoint directory, too; both "
                      "save into it, and the next one resumes from the newest of either. If they "
                      "are ranks of one job, start them by `muster run -n N` with a broker, or set "
                      "MUSTER_RANK and MUSTER_WORLD_SIZE for each");
        local_left_close(local);
        return;
    }
    size = pread(local->left_fd, line, LINE_BYTES_MAX, 0);
    line[size > 0 ? size : 0] = '\0';
    local_left_clear(local, line);
    local_left_end(local);
}

void local_left_begin(struct local *local, uint64_t round, uint64_t nonce)
{
    char line[LINE_BYTES_MAX + 1];
    int length = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 " %016" PRIx64 "\n",
                          local->generation, round, nonce);

    /* A line that is not written leaves what a kill leaves now where it is, and harms nothing else.
     */
    if (local->left_fd >= 0 && pwrite(local->left_fd, line, (size_t)length, 0) != length)
        local_left_end(local);
}

void local_left_end(struct local *local)
{
    if (local->left_fd >= 0 && ftruncate(local->left_fd, 0) != 0)
        local_say(local, 3, "the file LONE could not be emptied; the next start reads it in vain");
}

void local_left_close(struct local *local)
{
    if (local->left_fd >= 0)
        close(local->left_fd);
    local->left_fd = -1;
}
