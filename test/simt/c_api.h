#ifndef FUSEC_SIMT_C_API_H
#define FUSEC_SIMT_C_API_H
/* What libfusec_simt.so exports: plain C, so that whoever opens it needs neither clang nor LLVM nor the same C++
   library. simt.h is the C++ door. All functions may be called from any thread; launches run one at a time. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_API_VERSION 1

typedef enum {
  SIMT_OK = 0,
  SIMT_LAUNCH,             /* the launch itself: unknown entry, sizes, shared memory, size of the arguments */
  SIMT_RACE_SHARED,        /* two accesses to shared memory, one a write, that nothing orders */
  SIMT_RACE_GLOBAL,        /* the same in global memory; a missing fence shows here */
  SIMT_DIVERGENT_BARRIER,  /* threads of a block wait at different barriers */
  SIMT_DIVERGENT_WARP,     /* lanes meet in different collectives, or a mask leaves somebody out */
  SIMT_DEADLOCK,           /* nobody can run */
  SIMT_ENDLESS,            /* a spin that nothing can end, or the step limit */
  SIMT_BOUNDS,             /* outside every buffer, or outside every shared variable */
  SIMT_MISALIGNED,
  SIMT_UNINITIALISED,      /* a read of bytes that nobody wrote */
  SIMT_ASYNC,              /* a copy under way: read early, overwritten, not waited for, wrong size */
  SIMT_EXIT,               /* a block ends while a peer may still use its shared memory */
  SIMT_TRAP
} simt_fault;

typedef enum { SIMT_RANDOM = 0, SIMT_FORWARD = 1, SIMT_REVERSE = 2 } simt_order;
typedef enum { SIMT_RACES_OFF = 0, SIMT_RACES_SHARED = 1, SIMT_RACES_ALL = 2 } simt_races;

typedef struct {
  uint64_t seed;      /* of the random order */
  int32_t order;      /* simt_order: who runs next */
  int32_t races;      /* simt_races; bounds, alignment and initialisation are always checked */
  uint64_t limit;     /* steps (accesses, atomics, loop rounds without either); 0: 2,000,000,000 */
  uint32_t resident;  /* clusters that run side by side; 0: 1. Only kernels whose blocks wait for each other need more */
  int32_t traffic;    /* count requests, sectors and bank passes */
} simt_options;

/* Counts of one load or store of the text. */
typedef struct {
  uint32_t line;              /* where it stands */
  const uint32_t* lines;      /* and the lines of the calls inlined around it, innermost first; valid as the kernel is */
  size_t line_count;
  uint32_t bytes;             /* of one lane's access */
  int32_t write, shared;
  uint64_t requests, lanes;   /* of warps; lanes that took part in them */
  uint64_t sectors, ideal_sectors;  /* of 32 bytes, touched; and the fewest that could hold the distinct bytes */
  uint64_t passes, ideal_passes;    /* over the 32 banks of shared memory */
} simt_count;

typedef struct {
  int32_t fault;            /* simt_fault */
  const char* text;         /* what is wrong, with block, thread and line; "" when ok */
  uint32_t block[3], thread[3];
  uint32_t line;            /* innermost line of the text; 0: none */
  const uint32_t* lines;    /* the lines of the calls inlined around it, innermost first */
  size_t line_count;
  uint64_t steps, switches;
  const simt_count* counts;
  size_t count_count;
} simt_result;

typedef struct simt_kernel simt_kernel;
typedef struct simt_memory simt_memory;

#define SIMT_EXPORT __attribute__((visibility("default")))

SIMT_EXPORT int simt_api_version(void);

/* Compiles CUDA C++ text. NULL: *error says why (clang's messages with lines of the text); simt_free_text frees it. */
SIMT_EXPORT simt_kernel* simt_load(const char* text, size_t bytes, char** error);
SIMT_EXPORT void simt_unload(simt_kernel* kernel);
SIMT_EXPORT void simt_free_text(char* text);

/* Global memory. allocate: 256-byte aligned, red zones around, filled with 0xff; add: the caller's own memory, which
   must outlive its use. Ranges that overlap count as one. unwritten: reading a byte that no kernel wrote is a fault. */
SIMT_EXPORT simt_memory* simt_memory_new(void);
SIMT_EXPORT void simt_memory_free(simt_memory* memory);
/* NULL when there is no memory. */
SIMT_EXPORT void* simt_allocate(simt_memory* memory, size_t bytes, const char* name, int unwritten);
SIMT_EXPORT void simt_add(simt_memory* memory, void* begin, size_t bytes, const char* name, int unwritten);
SIMT_EXPORT int simt_remove(simt_memory* memory, void* begin); /* 1 when it was known */

/* Runs one launch. args: the bytes of the kernel's parameters, each at its natural alignment (for one struct: the
   struct). cluster: blocks along x that form one. The result is valid until simt_result_free. Never NULL. */
SIMT_EXPORT const simt_result* simt_launch(simt_kernel* kernel, const char* entry, simt_memory* memory,
                                           const uint32_t grid[3], const uint32_t block[3], uint32_t cluster,
                                           uint32_t dynamic_shared_bytes, const void* args, size_t arg_bytes,
                                           const simt_options* options);
SIMT_EXPORT void simt_result_free(const simt_result* result);

#ifdef __cplusplus
}
#endif
#endif
