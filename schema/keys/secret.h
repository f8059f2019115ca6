/* secret - wipes memory that held a secret before it is given back.
 * Owns: nothing. The C library copies by vector registers, which hold 64 bytes on some machines,
 * and the dynamic linker saves these on the stack at the first call of each function. So what was
 * only read leaves traces, too: in registers, and below the stack of whoever read it. */
#ifndef SCHEMA_KEYS_SECRET_H
#define SCHEMA_KEYS_SECRET_H

#include <stddef.h>

#define SECRET_STACK_BYTES 16384

/* Overwrites the bytes, the vector registers, and SECRET_STACK_BYTES of the stack below the caller.
 * To be called at its end by the function that read or copied the secret. */
void secret_wipe(void *secret, size_t size);

#endif
