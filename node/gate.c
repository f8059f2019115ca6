/* gate - see gate.h. The parts off the hot path. */
#include "node/gate.h"

#include "schema/error.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t gate_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

enum muster_status gate_create(struct gate **ret_gate, struct muster_error *err)
{
    struct gate *gate =
        mmap(NULL, gate_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (gate == MAP_FAILED)
        return error_set_code(err, MUSTER_E_NOMEM, errno,
                              "no memory for the step counter: %s; free memory or raise the limit",
                              strerror(errno));
    /* Linux before 4.14 and some sandboxes cannot wipe: then every call asks for the process id. */
    if (madvise(gate, gate_page_bytes(), MADV_WIPEONFORK) != 0)
        gate->ask_pid = (int32_t)getpid();
    gate->due = INT64_MAX;
    atomic_store(&gate->word, GATE_CLOSED);
    atomic_store(&gate->mark, 1);
    *ret_gate = gate;
    return MUSTER_OK;
}

void gate_destroy(struct gate **gate)
{
    if (*gate == NULL)
        return;
    munmap(*gate, gate_page_bytes());
    *gate = NULL;
}

bool gate_forked_slow(const struct gate *gate)
{
    return gate->ask_pid != (int32_t)getpid();
}

int64_t gate_close(struct gate *gate)
{
    return (int64_t)(atomic_fetch_or(&gate->word, GATE_CLOSED) & ~GATE_CLOSED);
}

void gate_open(struct gate *gate)
{
    atomic_fetch_and(&gate->word, ~GATE_CLOSED);
}

void gate_admit(struct gate *gate)
{
    atomic_fetch_add(&gate->word, 1);
}

void gate_take_back(struct gate *gate)
{
    atomic_fetch_sub(&gate->word, 1);
}

void gate_set(struct gate *gate, int64_t begun, int64_t done)
{
    uint64_t word = atomic_load(&gate->word);

    atomic_store(&gate->done, done);
    while (
        !atomic_compare_exchange_weak(&gate->word, &word, (word & GATE_CLOSED) | (uint64_t)begun))
        continue;
}

void gate_count(struct gate *gate)
{
    int64_t done = gate_done(gate) + 1, begun = gate_begun(gate);

    gate_set(gate, begun > done ? begun : done, done);
}
