/* The functions that all files of the kernel share. */
#include "kernel.h"

/* Return the version of the functions' signatures. */
SJ_EXPORT int sj_abi(void)
{
    return SJ_ABI;
}
