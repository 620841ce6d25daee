/* The validity and areas of masks as COCO's run lengths. */
#ifndef SEGJUDGE_CHECKS_H
#define SEGJUDGE_CHECKS_H

#include "kernel.h"

/* The end of a mask's run lengths: the last runs of background and of the object, and whether the very last is
 * background. */
typedef struct {
    int64_t background, object;
    int open;
} sj_ending;

/* Return the fault of one mask's run lengths (0 for none), its area, and its end. */
int8_t sj_check_mask(const uint8_t *text, int64_t length, int64_t pixels, int64_t *area, sj_ending *ending);

#endif
