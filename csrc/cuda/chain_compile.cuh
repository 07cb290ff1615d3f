/* chain_compile: what chain.cu, which launches chains, uses of chain_source.cu, which writes one in CUDA C++, and of
 * chain_compile.cu, which compiles that, with files of chain_cache.cu. */
#ifndef NR_CUDA_CHAIN_COMPILE_H
#define NR_CUDA_CHAIN_COMPILE_H

#include <string>

#include "chain.cuh"
#include "cuda.cuh"

/* The kernel of a chain that computes on `dtype`, as text; of rows, or of elements. Addresses, strides,
 * sizes and numbers are arguments. */
std::string nr_cuda_chain_source(const chain_args &a, int32_t dtype, bool rows);

/* Launches the kernel compiled for a chain, in blocks of NR_BLOCK threads; false if there is none, or not yet. */
bool nr_cuda_run_compiled(const nr_gpu *gpu, const chain_args &a, int32_t dtype, bool rows, unsigned blocks,
                          size_t shared);

/* chain_cache.cu: the machine code of a text, empty if there is no such file; and a
 * file for it, if that is possible. */
std::string nr_cuda_read_chain(const std::string &text);
void nr_cuda_write_chain(const std::string &text, const std::string &code);
/* FNV-1a (Fowler, Noll, Vo, 1991), which begins with NR_CHAIN_HASH. */
#define NR_CHAIN_HASH 0xcbf29ce484222325
uint64_t nr_cuda_chain_hash(uint64_t hash, const void *bytes, size_t n);

#endif
