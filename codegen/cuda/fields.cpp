// Which fields of a schedule the code of each skeleton, or its launch, looks at.

#include "codegen/cuda/cuda.h"

namespace fusec::cuda {
namespace {

struct Row {
  Template skeleton;
  Keep keep;  // none: whatever it is
  std::string_view fields;
};
const Row kFields[] = {
    {Template::pointwise, Keep::none, "skeleton edges threads min_blocks rows_in_flight steps lane axis wide dependent_launch access"},
    {Template::transpose, Keep::none, "skeleton edges threads min_blocks lane block axis wide dependent_launch access"},
    {Template::rows, Keep::registers,
     "skeleton keep edges threads min_blocks lanes_per_row rows_in_flight cluster steps slots lane block axis wide dependent_launch merged access cut"},
    {Template::rows, Keep::reload, "skeleton keep edges threads min_blocks rows_in_flight lane axis wide dependent_launch merged access"},
    {Template::rows, Keep::none, "skeleton keep edges threads min_blocks rows_in_flight cluster lane axis wide dependent_launch merged access cut"},
    {Template::ring, Keep::none, "skeleton keep edges threads min_blocks cluster team steps slots slices ahead column_slots lane axis wide dependent_launch merged access"},
    {Template::column, Keep::none, "skeleton edges finish threads min_blocks lanes_per_row rows_in_flight lane axis wide dependent_launch merged access"},
    {Template::split, Keep::none, "skeleton edges threads min_blocks rows_in_flight lane axis wide dependent_launch access"},
    {Template::scan, Keep::none, "skeleton edges finish threads min_blocks lanes_per_row steps lane axis wide dependent_launch access"},
};

}  // namespace

std::string_view fields(const Schedule& s) {
  for (const Row& row : kFields)
    if (row.skeleton == s.skeleton && (row.keep == Keep::none || row.keep == s.keep)) return row.fields;
  return "";
}

}  // namespace fusec::cuda
