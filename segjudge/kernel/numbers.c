/* The tables of the short numbers of run lengths. */
#include "numbers.h"

#ifdef HAS_MORE
#include <cpuid.h>

sj_numbers sj_short;

__attribute__((constructor)) static void prepare_numbers(void)
{
    for (int more = 0; more < 1 << WIDE; more++) {
        int at = 0, count = 0, two;
        memset(sj_short.splits[more].places, 0x80, 2 * WIDE);
        for (; at < WIDE; at += 1 + two, count++) {
            two = more >> at & 1;
            if (two && (at + 1 == WIDE || more >> (at + 1) & 1))
                break;
            sj_short.splits[more].places[2 * count] = (uint8_t)at;
            if (two)
                sj_short.splits[more].places[2 * count + 1] = (uint8_t)(at + 1);
            sj_short.splits[more].signs[2 * count + two] = two ? 0x2 : 0x10;
            sj_short.splits[more].flags[2 * count] = sj_short.splits[more].flags[2 * count + 1] = 0xff;
        }
        sj_short.counts[more] = (uint8_t)count, sj_short.lengths[more] = (uint8_t)at;
        for (int i = 0; i < 2 * WIDE && count > 1; i++)
            sj_short.splits[more].ends[i] = (uint8_t)(2 * count - 4 + i % 4);
    }
    unsigned a, b, c = 0, d;
    sj_short.has_shuffles = __get_cpuid(1, &a, &b, &c, &d) && c >> 9 & 1;
}
#endif
