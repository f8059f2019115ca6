/* prog_wire - a bad network cable: two TUN devices, one in this network namespace and one in that
 * of the process PID, and between them delay, jitter (which also changes the order), loss,
 * duplicates and cuts, in each direction.
 *
 *   prog_wire SETTINGS PID SEED
 *
 * SETTINGS is a file of one line, read again whenever it changes:
 *   DELAY_MS JITTER_MS LOSS_PERMILLE DUPLICATE_PERMILLE CUT
 * CUT is 1 = from here, 2 = to here, 3 = both. Says "ready" when both devices are there ("wire", in
 * both). At SIGTERM it tells what it did and ends. Exit code 77 where the kernel or this user's
 * rights do not allow it, with the reason. Frames are IP packets: TCP heals what is lost. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PACKET_MAX 2048
#define HELD_MAX 4096 /* more are lost, as in a full queue */
#define LOOK_MS 10    /* at the settings */
#define SKIPPED 77

struct packet {
    int64_t due_ms;
    size_t size;
    int to;
    uint8_t bytes[PACKET_MAX];
};

static struct packet held[HELD_MAX];
static size_t held_count;
static int64_t delay_ms, jitter_ms, loss_permille, duplicate_permille, cut;
static struct {
    int64_t passed, lost, duplicated, cut;
} told;
static volatile sig_atomic_t over;

static void on_term(int signo)
{
    (void)signo;
    over = 1;
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t state;

static int64_t below(int64_t bound) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return bound <= 0 ? 0 : (int64_t)((state * UINT64_C(2685821657736338717)) >> 33) % bound;
}

static bool happens(int64_t permille)
{
    return below(1000) < permille;
}

static void read_settings(const char *path)
{
    FILE *file = fopen(path, "re");
    int64_t v[5];

    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &v[0], &v[1],
               &v[2], &v[3], &v[4]) == 5) {
        delay_ms = v[0];
        jitter_ms = v[1];
        loss_permille = v[2];
        duplicate_permille = v[3];
        cut = v[4];
    }
    fclose(file);
}

static int skip(const char *what)
{
    printf("skipped: %s: %s\n", what, strerror(errno));
    return SKIPPED;
}

static int open_tun(void)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wire"};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void hold(int to, const uint8_t *bytes, size_t size)
{
    struct packet *packet = &held[held_count];

    if (held_count == HELD_MAX) {
        told.lost++;
        return;
    }
    packet->due_ms = now_ms() + delay_ms + below(jitter_ms + 1);
    packet->size = size;
    packet->to = to;
    memcpy(packet->bytes, bytes, size);
    held_count++;
}

static void take(const int fds[2], int from)
{
    uint8_t bytes[PACKET_MAX];
    ssize_t size;

    while ((size = read(fds[from], bytes, sizeof bytes)) > 0) {
        if ((cut & (1 << from)) != 0) {
            told.cut++;
        } else if (happens(loss_permille)) {
            told.lost++;
        } else {
            hold(1 - from, bytes, (size_t)size);
            if (happens(duplicate_permille)) {
                told.duplicated++;
                hold(1 - from, bytes, (size_t)size);
            }
        }
    }
}

/* Sends what is due; returns ms until the next is, LOOK_MS at most. */
static int give(const int fds[2])
{
    int64_t now = now_ms();
    int64_t next = LOOK_MS;

    for (size_t i = 0; i < held_count;) {
        if (held[i].due_ms > now) {
            next = held[i].due_ms - now < next ? held[i].due_ms - now : next;
            i++;
            continue;
        }
        if (write(fds[held[i].to], held[i].bytes, held[i].size) > 0)
            told.passed++;
        else
            told.lost++;
        held_count--;
        memmove(&held[i], &held[i + 1],
                (held_count - i) * sizeof held[0]); /* the order is theirs */
    }
    return (int)next;
}

static void forward(const char *settings, const int fds[2])
{
    struct pollfd polls[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};

    while (!over) {
        int wait_ms = give(fds);

        poll(polls, 2, wait_ms);
        read_settings(settings);
        take(fds, 0);
        take(fds, 1);
    }
    printf("wire: passed %" PRId64 " lost %" PRId64 " duplicated %" PRId64 " cut %" PRId64 "\n",
           told.passed, told.lost, told.duplicated, told.cut);
}

int main(int argc, char **argv)
{
    char path[64];
    int other;
    int fds[2];

    if (argc != 4)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    state = strtoull(argv[3], NULL, 10) * 2 + 1;
    signal(SIGTERM, on_term);
    snprintf(path, sizeof path, "/proc/%d/ns/net", atoi(argv[2]));
    other = open(path, O_RDONLY | O_CLOEXEC);
    if (other < 0)
        return skip(path);
    fds[0] = open_tun();
    if (fds[0] < 0)
        return skip("no TUN device (/dev/net/tun) for this user");
    if (setns(other, CLONE_NEWNET) != 0)
        return skip("cannot enter the other network namespace");
    fds[1] = open_tun();
    if (fds[1] < 0)
        return skip("no TUN device in the other network namespace");
    puts("ready");
    forward(argv[1], fds);
    return 0;
}
