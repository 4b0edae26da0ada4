#pragma once
// How much a result may differ from its op-by-op meaning (docs/numerics.md).

#include <cstdint>

namespace fusec {

enum class Numerics : uint8_t {
  strict,  ///< fusing never changes a bit of an elementwise result
  fused,   ///< f16 and bf16 intermediates may stay f32 inside a group; contraction allowed
  fast,    ///< also approximate intrinsics and rules marked `fast`
};

}  // namespace fusec
