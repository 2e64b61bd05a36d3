/* Elementwise passes of a training step on a CPU, each in one sweep over memory, for bfloat16 and for float32.

   kernels/fused_training.py calls them.

   Work is divided by rows or by blocks of fixed size, so no result depends on the number of threads. */

#include "fused.h"

#define BLOCK 4096 /* entries whose hashes a thread keeps, 8 KiB */
#define FILL_UP(width) (((width) + 15) & ~15)

#define number bf16
#define load widen
#define store narrow
#define NAME(pass) pass##_bfloat16
#include "fused_training.h"
#undef number
#undef load
#undef store
#undef NAME

#define number float
#define load(value) (value)
#define store(value) (value)
#define NAME(pass) pass##_float32
#include "fused_training.h"
