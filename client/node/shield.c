/* shield - SIGTERM in a helper process of a rank, such as one that loads its data. A launcher that
 * ends a job sends SIGTERM to the whole process group. A helper that dies of it takes the rank's
 * last save with it. So a helper obeys only its parent's SIGTERM, which acts as before. Owns: the
 * handler of SIGTERM of a process that called muster_shield. */
#include <muster/node.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static struct sigaction shield_before;
/* -1 = no shield yet. 0 = the parent is in another pid namespace. */
static atomic_int shield_parent = -1;
static atomic_int shield_inside; /* calls of the former handler that have not returned */

static void shield_end_by(int signo)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
    raise(signo); /* blocked while we run: it is delivered when we return */
}

static void shield_handle(int signo, siginfo_t *info, void *context)
{
    int saved_errno = errno, parent = atomic_load(&shield_parent);

    if (getppid() == parent && info->si_pid != parent && info->si_pid != getpid())
        return; /* the parent hears it too, and ends us when it is done */
    if (atomic_fetch_add(&shield_inside, 1) > 0) /* the former handler chains to this one */
        shield_end_by(signo);
    else if (shield_before.sa_flags & SA_SIGINFO)
        shield_before.sa_sigaction(signo, info, context);
    else if (shield_before.sa_handler == SIG_DFL)
        shield_end_by(signo);
    else if (shield_before.sa_handler != SIG_IGN)
        shield_before.sa_handler(signo);
    atomic_fetch_sub(&shield_inside, 1);
    errno = saved_errno;
}

void muster_shield(void)
{
    struct sigaction action = {.sa_sigaction = shield_handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction now;

    if (atomic_load(&shield_parent) == getppid())
        return;
    sigaction(SIGTERM, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != shield_handle)
        shield_before = now; /* else this is a helper of a helper */
    action.sa_mask = shield_before.sa_mask;
    /* A handler of the program may rely on a waiting call to return, as Python's do. */
    if (shield_before.sa_flags & SA_SIGINFO || shield_before.sa_handler != SIG_DFL)
        action.sa_flags |= shield_before.sa_flags & SA_RESTART;
    else
        action.sa_flags |= SA_RESTART;
    atomic_store(&shield_parent, getppid());
    sigaction(SIGTERM, &action, NULL);
}
