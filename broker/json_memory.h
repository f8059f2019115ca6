/* json_memory - jansson in a process of the broker's. If jansson finds no memory, it reads on and
 * leaves out what a buffer had no room for. That would change a manifest, or take from a checkpoint
 * the metric for which it is kept. The broker is crash-only: it ends instead. */
#ifndef BROKER_JSON_MEMORY_H
#define BROKER_JSON_MEMORY_H

/* Once, before any JSON is read or written. For the whole process, so not for the library. */
void json_memory_prepare(void);

#endif
