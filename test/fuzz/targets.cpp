#include "test/fuzz/targets.h"

namespace fusec::fuzz {
namespace {

const Target kTargets[] = {
    {"fus", "graphs as text", read_graph},
    {"test_file", "a .fus test file: its directives and values", read_test_file},
    {"tuning", "a tuning file", read_tuning},
    {"schedule", "edits of a schedule, and its bytes", read_schedule},
    {"onnx", "an ONNX model", read_onnx},
    {"onnx_file", "an ONNX model as a file, beside it one of weights, w: both are mapped", read_onnx_file},
    {"npy", "numpy's file of one tensor", read_npy},
    {"npz", "numpy's archive", read_npz},
    {"safetensors", "a .safetensors file", read_safetensors},
    {"artifact", "an entry of the cache, under a good checksum", read_artifact},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace fusec::fuzz
