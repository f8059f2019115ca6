/* service - what a service manager wants to hear (systemd's sd_notify(3), a line in a datagram).
 * Owns: the socket named by NOTIFY_SOCKET. Without that variable nothing is said.
 * Never: waits, fails a start. Any thread. */
#ifndef BROKER_SERVICE_H
#define BROKER_SERVICE_H

#include <stdint.h>

void service_ready(void);
void service_stopping(void);

/* Called once per pass of the loop, or per step of a take-over: tells the service manager twice in
 * each WATCHDOG_USEC that this process runs. */
void service_alive(int64_t now_boot_ms);

#endif
