/* Numbers and arrays as Python packs them (core/packing.py): an array is its address and its shape.
 *
 * Arrays are contiguous. Those whose names begin with Out are written to.
 */
#ifndef KEEPSUM_TYPES_H
#define KEEPSUM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t i64;
typedef uint64_t u64;

typedef struct { const u64 *at; i64 size; } Words;
typedef struct { const i64 *at; i64 size; } Ints;
typedef struct { const uint16_t *at; i64 size; } Word16s;
typedef struct { const double *at; i64 size; } Floats;
typedef struct { const i64 *at; i64 rows, columns; } IntMatrix;
typedef struct { const int32_t *at; i64 rows, columns; } Int32Matrix;
typedef struct { const int16_t *at; i64 rows, columns; } Int16Matrix;
typedef struct { const double *at; i64 rows, columns; } FloatMatrix;

typedef struct { i64 *at; i64 size; } OutInts;
typedef struct { int8_t *at; i64 size; } OutInt8s;
typedef struct { double *at; i64 size; } OutFloats;
typedef struct { i64 *at; i64 rows, columns; } OutIntMatrix;
typedef struct { double *at; i64 rows, columns; } OutFloatMatrix;
typedef struct { double *at; i64 layers, rows, columns; } OutFloatCube;

#endif
