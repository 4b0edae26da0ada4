#pragma once
// An imported graph as `.fus` text that reads well: names short and plain, each operator of the file in a comment above
// what it became, with its own name and that of its value.

#include <string>

#include "lib/import/onnx.h"

namespace fusec {

/// The text parses back to the same graph, with other labels. Inputs and outputs keep the names that a call goes by.
/// `imported` comes from an import with ImportOptions::sources.
std::string import_text(const Imported& imported);

}  // namespace fusec
