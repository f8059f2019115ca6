/* supervise_rank - starting, signalling and ending the processes; see supervise_rank.h. */
#include "tools/run/supervise_rank.h"

#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_NOT_FOUND 127
#define CODE_NOT_EXECUTABLE 126

struct pipes {
    int out[2];
    int err[2];
    int start[2];
};

static void rank_pipes_close(struct pipes *pipes)
{
    int *ends[] = {pipes->out, pipes->err, pipes->start};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (int end = 0; end < 2; end++) {
            if (ends[i][end] >= 0)
                close(ends[i][end]);
            ends[i][end] = -1;
        }
    }
}

static bool rank_pipes_open(struct pipes *pipes)
{
    int *ends[] = {pipes->out, pipes->err, pipes->start};

    memset(pipes, 0xff, sizeof *pipes); /* all -1 */
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (pipe2(ends[i], O_CLOEXEC) != 0 || fcntl(ends[i][0], F_SETFL, O_NONBLOCK) != 0) {
            rank_pipes_close(pipes);
            return false;
        }
    }
    return true;
}

/* ---- in the child, between fork and exec (we have one thread, so malloc is allowed) ---- */

static void rank_env_set(const char *name, int value)
{
    char text[16];

    if (value < 0) {
        unsetenv(name); /* unknown: an outer launcher's value would be of another family */
        return;
    }
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void rank_env_path(const char *name, const char *path)
{
    if (path[0] == '\0')
        unsetenv(name); /* an outer supervisor's is not ours to write to */
    else
        setenv(name, path, 1);
}

static void rank_env_give(const char *name, int value)
{
    if (getenv(name) == NULL)
        rank_env_set(name, value);
}

/* As torchrun sets them: what PyTorch's env:// and others read. */
static void rank_torch_environment(const struct rank_process *rank,
                                   const struct rank_command *command)
{
    rank_env_give("RANK", rank->rank);
    rank_env_give("WORLD_SIZE", command->world_size);
    rank_env_give("LOCAL_RANK", rank->local_rank);
    rank_env_give("LOCAL_WORLD_SIZE", rank->local_size);
    if (command->node_rank >= 0) { /* what an outer launcher says is of other hosts */
        rank_env_set("GROUP_RANK", command->node_rank);
        setenv("MASTER_ADDR", command->master_address, 1);
        rank_env_set("MASTER_PORT", command->master_port);
        return;
    }
    if (getenv("MASTER_ADDR") == NULL)
        setenv("MASTER_ADDR", "127.0.0.1", 1);
    rank_env_give("MASTER_PORT", command->master_port);
}

static void rank_child_environment(const struct rank_process *rank,
                                   const struct rank_command *command)
{
    char path[FILES_PATH_MAX];

    path[0] =
        '\0'; /* a launcher is no rank: what tells one who it is, is of the ranks that it starts */
    if (rank->rank >= 0)
        files_error_path(command->files, rank->rank, path);
    rank_env_path("MUSTER_ERROR_FILE", path);
    if (rank->rank >= 0)
        files_life_path(command->files, rank->rank, path);
    rank_env_path("MUSTER_LIFE_FILE", path);
    setenv("MUSTER_JOB", command->job, 1);
    if (command->broker != NULL)
        setenv("MUSTER_BROKER", command->broker, 1);
    rank_env_set("MUSTER_RANK", rank->rank);
    rank_env_set("MUSTER_WORLD_SIZE", command->world_size);
    rank_env_set("MUSTER_LOCAL_RANK", rank->local_rank);
    rank_env_set("MUSTER_LOCAL_SIZE", rank->local_size);
    rank_env_set("MUSTER_RESTART_COUNT", command->restart_count);
    rank_env_set("MUSTER_RESTART_CODE", command->restart_code);
    if (command->fallback)
        setenv("MUSTER_FALLBACK", "1", 1);
    if (command->master_port > 0)
        rank_torch_environment(rank, command);
}

static void rank_child_main(const struct rank_process *rank, const struct rank_command *command,
                            const struct pipes *pipes, pid_t parent) __attribute__((noreturn));

static void rank_child_main(const struct rank_process *rank, const struct rank_command *command,
                            const struct pipes *pipes, pid_t parent)
{
    int null;
    int code;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL); /* it died before the line above */
    signal(SIGPIPE, command->on_sigpipe);
    signal(SIGXFSZ, command->on_sigxfsz);
    rank_child_environment(rank, command);
    null = open("/dev/null", O_RDONLY); /* our terminal would stop a background group that reads */
    dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    dup2(pipes->out[1], STDOUT_FILENO);
    dup2(pipes->err[1], STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &command->mask, NULL);
    execvp(command->argv[0], command->argv);
    code = errno;
    if (write(pipes->start[1], &code, sizeof code) < 0)
        code = ENOENT;
    _exit(code == ENOENT ? CODE_NOT_FOUND : CODE_NOT_EXECUTABLE);
}

/* ---- in the supervisor ---- */

int rank_free_port(in_addr_t address)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    socklen_t size = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

    if (fd < 0)
        return 0;
    if (bind(fd, (struct sockaddr *)&own, size) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &size) == 0)
        port = ntohs(own.sin_port);
    close(fd);
    return port;
}

enum muster_status rank_start(struct rank_process *rank, const struct rank_command *command,
                              int *ret_out_fd, int *ret_err_fd, struct muster_error *err)
{
    pid_t parent = getpid();
    struct pipes pipes;
    pid_t pid;

    if (!rank_pipes_open(&pipes))
        return error_set_code(err, MUSTER_E_IO, errno,
                              "no pipes for %s: %s; raise the limit of open files",
                              supervise_name(rank->rank).text, strerror(errno));
    pid = fork();
    if (pid == 0)
        rank_child_main(rank, command, &pipes, parent);
    if (pid < 0) {
        error_set_code(err, MUSTER_E_NOMEM, errno, "cannot start %s: %s",
                       supervise_name(rank->rank).text, strerror(errno));
        rank_pipes_close(&pipes);
        return MUSTER_E_NOMEM;
    }
    setpgid(pid, pid); /* the child does it too: whoever comes first */
    *ret_out_fd = pipes.out[0];
    *ret_err_fd = pipes.err[0];
    rank->start_fd = pipes.start[0];
    rank->pid = pid;
    rank->ended = false;
    rank->heir_count = rank->heirs_left = 0;
    close(pipes.out[1]);
    close(pipes.err[1]);
    close(pipes.start[1]);
    return MUSTER_OK;
}

bool rank_ended(struct rank_process *rank, struct supervise_exit *ret_exit)
{
    siginfo_t info = {0};
    int start_errno = 0;

    if (rank->pid == 0 || rank->ended ||
        waitid(P_PID, (id_t)rank->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return false;
    rank->ended = true;
    *ret_exit = (struct supervise_exit){
        .rank = rank->rank,
        .code = info.si_code == CLD_EXITED ? info.si_status : 0,
        .signo = info.si_code == CLD_EXITED ? 0 : info.si_status,
        .unstarted = read(rank->start_fd, &start_errno, sizeof start_errno) > 0,
    };
    close(rank->start_fd);
    rank->start_fd = -1;
    return true;
}

void rank_signal(const struct rank_process *rank, int signo)
{
    if (rank->pid > 0 && !rank->ended)
        kill(rank->pid, signo);
    for (int i = 0; i < rank->heir_count && rank->heirs_left > 0; i++) {
        if (rank->heirs[i] > 0)
            kill(rank->heirs[i], signo);
    }
}

void rank_kill_group(const struct rank_process *rank)
{
    if (rank->pid <= 0)
        return;
    kill(-rank->pid, SIGKILL);
    if (!rank->ended)
        kill(rank->pid, SIGKILL); /* it may have moved to another group */
}

void rank_reap(struct rank_process *rank)
{
    if (rank->pid > 0 && rank->ended) {
        while (waitpid(rank->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    } else if (rank->pid > 0 && rank->start_fd >= 0) {
        close(rank->start_fd);
    }
    rank->pid = 0;
    rank->start_fd = -1;
}

static bool supervise_rank_is_ours(const struct rank_process *ranks, int rank_count,
                                   const pid_t keep[2], pid_t pid)
{
    for (int i = 0; i < rank_count; i++) {
        if (ranks[i].pid == pid)
            return true;
        for (int h = 0; h < ranks[i].heir_count && ranks[i].heirs_left > 0; h++) {
            if (ranks[i].heirs[h] == pid)
                return true;
        }
    }
    return pid == keep[0] || pid == keep[1];
}

/* Our children, as the kernel lists them; without /proc there are none to see. */
static FILE *rank_children_open(void)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return fopen(path, "re");
}

int rank_heirs_find(struct rank_process *rank, const struct supervise_exit *exit)
{
    FILE *children = rank_children_open();
    int pid;

    if (children == NULL)
        return 0;
    while (fscanf(children, "%d", &pid) == 1) { /* NOLINT(cert-err34-c): the kernel's numbers */
        if (pid != rank->pid && getpgid(pid) == rank->pid && rank->heir_count < RANK_HEIRS_MAX)
            rank->heirs[rank->heir_count++] = pid;
    }
    fclose(children);
    rank->heirs_speak = exit->signo != 0;
    return rank->heirs_left = rank->heir_count;
}

int rank_heirs_look(struct rank_process *rank, int restart_code, struct supervise_exit *exit)
{
    int status;

    for (int i = 0; i < rank->heir_count; i++) {
        bool restarts;

        if (rank->heirs[i] == 0 || waitpid(rank->heirs[i], &status, WNOHANG) != rank->heirs[i])
            continue;
        rank->heirs[i] = 0;
        rank->heirs_left--;
        restarts = WIFEXITED(status) && WEXITSTATUS(status) == restart_code;
        if (!rank->heirs_speak || (!restarts && rank->heir_count > 1))
            continue;
        exit->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        exit->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    return rank->heirs_left;
}

int orphans_reap(const struct rank_process *ranks, int rank_count, const pid_t keep[2],
                 bool kill_too)
{
    FILE *children = rank_children_open();
    int left = 0;
    int pid;

    if (children == NULL)
        return 0;
    while (fscanf(children, "%d", &pid) == 1) { /* NOLINT(cert-err34-c): the kernel's numbers */
        if (supervise_rank_is_ours(ranks, rank_count, keep, pid))
            continue;
        if (kill_too)
            kill(pid, SIGKILL);
        if (waitpid(pid, NULL, WNOHANG) == 0)
            left++;
    }
    fclose(children);
    return left;
}
