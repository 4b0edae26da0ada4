/* fusec from C and from whatever calls C: a text becomes a program, a program is called. fusec.h says what each thing means.

     fusec_program* program;
     if (fusec_compile("graph @g(%x: f32[N]) -> f32[N] { %y = mul %x, 2.0 return %y }", "cpu", FUSEC_STRICT, &program)) return puts(fusec_error());
     float x[3] = {1, 2, 3}, y[3];
     const int64_t extents[] = {3};
     const fusec_buffer in = {x, extents, NULL, 1}, out = {y, extents, NULL, 1};
     if (fusec_run(program, &in, 1, &out, 1, NULL, NULL, 0)) return puts(fusec_error());
     fusec_release(program);
*/
#ifndef FUSEC_FUSEC_C_H
#define FUSEC_FUSEC_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEC_EXPORT __attribute__((visibility("default")))

/* As the exit statuses of the command line: whose fault it is. */
typedef enum { FUSEC_OK = 0, FUSEC_INPUT = 2, FUSEC_ENVIRONMENT = 3, FUSEC_INTERNAL = 70 } fusec_status;
typedef enum { FUSEC_STRICT = 0, FUSEC_FUSED = 1, FUSEC_FAST = 2 } fusec_numerics;

typedef struct fusec_program fusec_program;

typedef struct {
  void* data;
  const int64_t* extents; /* rank of them; NULL for an output: as the graph says, and rank that or 0 */
  const int64_t* strides; /* rank of them, in elements; NULL: dense, row-major */
  int32_t rank;
} fusec_buffer;

/* The one graph of a .fus text, compiled for a device ("auto", "cpu", "cuda:0" …). *program is NULL on failure. */
FUSEC_EXPORT fusec_status fusec_compile(const char* text, const char* device, fusec_numerics numerics, fusec_program** program);
/* Inputs and outputs in the graph's order. stream: a CUstream or NULL. workspace: NULL, or device memory of the caller. Any thread. */
FUSEC_EXPORT fusec_status fusec_run(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                                    size_t output_count, void* stream, void* workspace, size_t workspace_bytes);
/* Bytes of workspace that such a call needs. */
FUSEC_EXPORT fusec_status fusec_workspace_bytes(const fusec_program* program, const fusec_buffer* inputs, size_t input_count,
                                                const fusec_buffer* outputs, size_t output_count, size_t* bytes);
/* A call whose buffers are final, made once and repeated (fusec.h: Prepared). *call is NULL on failure; it keeps the program alive. */
typedef struct fusec_call fusec_call;
FUSEC_EXPORT fusec_status fusec_prepare(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                                        size_t output_count, fusec_call** call);
FUSEC_EXPORT fusec_status fusec_replay(const fusec_call* call, void* stream);
FUSEC_EXPORT void fusec_release_call(fusec_call* call);
FUSEC_EXPORT void fusec_release(fusec_program* program);
/* What the last failed call of this thread said; valid until the next failure. Never NULL. */
FUSEC_EXPORT const char* fusec_error(void);

#ifdef __cplusplus
}
#endif
#endif
