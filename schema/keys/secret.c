#include "schema/keys/secret.h"

#include <string.h>

/* A function may overwrite all vector registers, so no caller relies on their contents. */
static void secret_registers_wipe(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        __asm__ volatile("vpxorq %zmm16, %zmm16, %zmm16\n\tvpxorq %zmm17, %zmm17, %zmm17\n\t"
                         "vpxorq %zmm18, %zmm18, %zmm18\n\tvpxorq %zmm19, %zmm19, %zmm19\n\t"
                         "vpxorq %zmm20, %zmm20, %zmm20\n\tvpxorq %zmm21, %zmm21, %zmm21\n\t"
                         "vpxorq %zmm22, %zmm22, %zmm22\n\tvpxorq %zmm23, %zmm23, %zmm23\n\t"
                         "vpxorq %zmm24, %zmm24, %zmm24\n\tvpxorq %zmm25, %zmm25, %zmm25\n\t"
                         "vpxorq %zmm26, %zmm26, %zmm26\n\tvpxorq %zmm27, %zmm27, %zmm27\n\t"
                         "vpxorq %zmm28, %zmm28, %zmm28\n\tvpxorq %zmm29, %zmm29, %zmm29\n\t"
                         "vpxorq %zmm30, %zmm30, %zmm30\n\tvpxorq %zmm31, %zmm31, %zmm31");
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroall" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                               "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                               "xmm15");
#endif
}

/* A sanitizer would put its array elsewhere than on the stack. */
__attribute__((noinline, no_sanitize("address"))) static void stack_wipe(void)
{
    unsigned char below[SECRET_STACK_BYTES];

    explicit_bzero(below, sizeof below);
}

void secret_wipe(void *secret, size_t size)
{
    explicit_bzero(secret, size);
    secret_registers_wipe();
    stack_wipe();
    secret_registers_wipe(); /* the first call of explicit_bzero() may have saved them there */
}
