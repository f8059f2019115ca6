/* heard - hears a signal after the program has replaced muster's handler, until libmuster puts its
 * own back within a second. It tells muster, and then calls the program's handler. Part of the
 * module muster._native. */
#include <errno.h>
#include <signal.h>

static struct sigaction heard_below[NSIG]; /* complete before heard_handle is set */

static void heard_handle(int signo, siginfo_t *info, void *context)
{
    const struct sigaction *below = &heard_below[signo];
    int saved_errno = errno;

    muster_notify_signal(signo); /* twice for one signal makes no second notice */
    errno = saved_errno;
    if (below->sa_flags & SA_SIGINFO)
        below->sa_sigaction(signo, info, context);
    else
        below->sa_handler(signo);
}

/* SIG_DFL and SIG_IGN are a program's wish to have no handler. */
static void muster_py_hear(int signo)
{
    struct sigaction now, ours = {.sa_sigaction = heard_handle};

    if (signo < 1 || signo >= NSIG || sigaction(signo, NULL, &now) != 0)
        return;
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
        return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == heard_handle)
        return;
    heard_below[signo] = now;
    ours.sa_flags = now.sa_flags | SA_SIGINFO;
    ours.sa_mask = now.sa_mask;
    sigaction(signo, &ours, NULL);
}
