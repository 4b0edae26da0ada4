#pragma once
// ONNX's own node tests: a folder with model.onnx and test_data_set_*/{input,output}_*.pb.

#include <map>
#include <string>
#include <vector>

namespace fusec::cli {

struct OnnxTally {
  int passed = 0, failed = 0, unsupported = 0;
  std::map<std::string, std::vector<std::string>> reasons;  // why models were not imported: their tests' names
};

/// Imports the model and runs each data set on each device. What import cannot take is counted as unsupported, with its reason.
void run_onnx_test(const std::string& folder, const std::vector<std::string>& devices, OnnxTally& tally);
void print_onnx_tally(const OnnxTally& tally, bool verbose);

}  // namespace fusec::cli
