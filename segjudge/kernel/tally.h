/* Sums by key, in the order of the first of each key. */
#ifndef SEGJUDGE_TALLY_H
#define SEGJUDGE_TALLY_H

#include "kernel.h"

#include <stdlib.h>

typedef struct {
    uint64_t key;
    int64_t sum;
} sj_item;

/* The keys and their sums, and an open-addressing table of their indices, from 1: at least twice as many slots. */
typedef struct {
    sj_item *items;
    uint32_t *slots;
    int64_t count;
    int slot_bits;
} sj_tally;

static inline int sj_open_tally(sj_tally *all)
{
    *all = (sj_tally){.slot_bits = 10};
    all->items = malloc(((size_t)1 << all->slot_bits) / 2 * sizeof *all->items);
    all->slots = calloc((size_t)1 << all->slot_bits, sizeof *all->slots);
    return all->items && all->slots ? SJ_FINE : SJ_NO_MEMORY;
}

static inline void sj_close_tally(sj_tally *all)
{
    free(all->items);
    free(all->slots);
}

/* Return the slot of a key, or the free one where it belongs. */
static inline uint32_t *sj_slot_of(const sj_tally *all, uint64_t key)
{
    uint32_t mask = ((uint32_t)1 << all->slot_bits) - 1;
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> (64 - all->slot_bits));
    while (all->slots[slot] && all->items[all->slots[slot] - 1].key != key)
        slot = (slot + 1) & mask;
    return all->slots + slot;
}

/* Double the slots and the items; return whether there is memory. */
static inline int sj_enlarge(sj_tally *all)
{
    sj_item *items = realloc(all->items, ((size_t)1 << all->slot_bits) * sizeof *items);
    uint32_t *slots = items && all->slot_bits < 31 ? calloc((size_t)2 << all->slot_bits, sizeof *slots) : NULL;
    all->items = items ? items : all->items;
    if (!slots)
        return 0;
    free(all->slots);
    all->slots = slots, all->slot_bits++;
    for (int64_t i = 0; i < all->count; i++)
        *sj_slot_of(all, all->items[i].key) = (uint32_t)(i + 1);
    return 1;
}

/* Add to the sum of a key; return its index, or -1 if there is no memory. */
static inline int64_t sj_add(sj_tally *all, uint64_t key, int64_t added)
{
    uint32_t *slot = sj_slot_of(all, key);
    if (!*slot) {
        if (2 * all->count >= (int64_t)1 << all->slot_bits) {
            if (!sj_enlarge(all))
                return -1;
            slot = sj_slot_of(all, key);
        }
        all->items[all->count++] = (sj_item){key, 0};
        *slot = (uint32_t)all->count;
    }
    all->items[*slot - 1].sum += added;
    return (int64_t)*slot - 1;
}

#endif
