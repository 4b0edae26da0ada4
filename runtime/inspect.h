#pragma once
// Looking inside a program: FUSEC_OPTIONS, and its kernels as files (docs/debugging.md).

#include "lib/passes/switches.h"
#include "runtime/backend.h"

namespace fusec {

/// The switches of FUSEC_OPTIONS, then those of `words`. The first program of a process that dumps into DIR gets DIR itself, later
/// ones DIR/2, DIR/3 …
/// Errors   environment: FUSEC_OPTIONS is malformed; input: `words` are.
Result<Switches> program_switches(const std::string& words);

/// Writes NAME.plan and each text that the device has of the kernel, NAME.cu, NAME.ll …, when the trace dumps.
void dump_kernel(Trace& trace, const std::string& name, const Kernel& kernel, const Schedule& schedule, const Backend& backend);

}  // namespace fusec
