/* The labels of points, and the keys of their pairs of a true class and a predicted label. */
#ifndef SEGJUDGE_POINTS_H
#define SEGJUDGE_POINTS_H

#include "kernel.h"

/* The bits of a label; a point's object number, and the class of a key, lie above. */
#define SJ_LABEL_BITS 16

/* Return the key of the points of a true class with a predicted label. */
static inline int64_t sj_key(int64_t class, int64_t label)
{
    return class << SJ_LABEL_BITS | label;
}

#endif
