/* json_memory - jansson in a process of the broker's. Where it finds no memory it reads on without
 * what a buffer had no room for: a manifest becomes another, a checkpoint loses the metric that it
 * is kept for. The broker is crash-only: it ends instead. */
#ifndef BROKER_JSON_MEMORY_H
#define BROKER_JSON_MEMORY_H

/* Once, before any JSON is read or written. For the whole process, so not for the library. */
void json_memory_prepare(void);

#endif
