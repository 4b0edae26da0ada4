/* The embedding API for C and for foreign-function interfaces. Strings are UTF-8 with explicit lengths where they come in;
   nothing throws or aborts on bad input. See fusec.h for what each call means.

     char error[512];
     fusec_program* p = fusec_compile(text, strlen(text), "auto", "strict", error, sizeof error);
     if (!p) return puts(error), 1;
     fusec_buffer x = {data, 2, extents, NULL}, y = {result, 2, extents, NULL};
     if (fusec_run(p, &x, 1, &y, 1, NULL, error, sizeof error) != FUSEC_OK) puts(error);
     fusec_release(p);
*/
#ifndef FUSEC_C_H
#define FUSEC_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are the exit statuses of the command line. */
enum { FUSEC_OK = 0, FUSEC_INPUT = 2, FUSEC_ENVIRONMENT = 3, FUSEC_INTERNAL = 70 };

typedef struct fusec_program fusec_program;

typedef struct {
  void* data;              /* on the program's device, owned by the caller */
  size_t rank;
  const int64_t* extents;  /* rank of them */
  const int64_t* strides;  /* in elements, or NULL: dense, row-major */
} fusec_buffer;

/* Compiles the one graph of a .fus text for "auto", "cpu", "cuda", "cuda:N", "reference" or "simt", in "strict", "fused" or "fast".
   NULL on failure; `error` then holds the message, cut to error_size bytes with a final zero. */
fusec_program* fusec_compile(const char* text, size_t text_length, const char* device, const char* numerics, char* error,
                             size_t error_size);

/* Computes all outputs, in the graph's order; `stream` is a CUstream, or NULL. May be called from any thread. */
int fusec_run(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
              size_t output_count, void* stream, char* error, size_t error_size);

/* "cpu", "cuda:0" …; lives as long as the program. */
const char* fusec_device(const fusec_program* program);

void fusec_release(fusec_program* program);

#ifdef __cplusplus
}
#endif

#endif
