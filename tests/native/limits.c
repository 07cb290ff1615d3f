/* Prints what csrc/cpu/limits.c finds below a folder that stands for the system's root. */
#include <inttypes.h>
#include <stdio.h>

#include "../../csrc/cpu/limits.h"

int main(int count, char **words) {
    (void)count;
    printf("%" PRId64 " %" PRId64 "\n", nr_memory_limit(words[1]), nr_processor_limit(words[1]));
    return 0;
}
