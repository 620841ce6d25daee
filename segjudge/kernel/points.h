/* The tables of points by true class and predicted label. */
#ifndef SEGJUDGE_POINTS_H
#define SEGJUDGE_POINTS_H

#include "kernel.h"

/* The bits of a label; a point's object number, and the class of a key, lie above. */
#define SJ_LABEL_BITS 16

/* Write the key (the class above the label) and the points of each cell of a table that has points; return their
 * number. */
int64_t sj_list_cells(const int64_t *table, int64_t classes, int64_t labels, int64_t *keys, int64_t *points);

#endif
