/* lower: the state of the search for layers, by lower.c, from which layers.c lists what the calls use; products.c. */
#ifndef NR_PROGRAM_LOWER_H
#define NR_PROGRAM_LOWER_H

#include "layers.h"

typedef struct value {
    int32_t block;
    int64_t writer, readers; /* readers: how many calls read it, or write to a part of it */
    int32_t before;          /* the value that it replaces in its block, or -1 */
    bool outside;            /* stays after the run */
    bool stored;             /* needed as planes */
    int32_t image;           /* the number of its image; -1: none */
    int64_t ready;           /* the call with which the image is complete */
    int64_t layer;           /* the call at which the layer begins that makes it, and that others may join; -1: none */
    bool held_by_layer;      /* a layer computes it, or packs it as a weight: in memory only if it is stored */
} value;

typedef struct lowering {
    nr_program *program;
    const nr_layer_runner *runner;
    value *values;
    int32_t *of_use; /* the value of each use, or -1: of memory that is not the program's own */
    nr_image *images;
    int64_t value_count, image_count;
    bool *alone; /* the convolutions that do not become layers */
    bool failed; /* out of memory */
} lowering;

/* Makes layers of the products of a program, which writes to no memory from before the recording. */
void nr_program_pack_products(nr_program *program);
/* The storage, from before the recording, to which a field of a plan points; or NULL. */
norch_storage *nr_storage_read(const nr_program *program, const nr_instr *instr, const void *field);
/* Adds the blocks of images, and lists the uses of all calls again. False: out of memory. */
bool nr_layers_list(lowering *l);

#endif
