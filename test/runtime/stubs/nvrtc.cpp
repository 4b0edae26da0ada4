// An NVRTC with a fault, which FUSEC_STUB names: "create", "compile", "no_cubin", "no_log", or "older": it knows no sm_90, and has
// PTX to give. Built as libnvrtc.so.13 for cuda_faults_test;
// with STUB_OLD it lacks what an NVRTC before 11.1 lacked.

#include <cstdlib>
#include <cstring>

namespace {
bool fault(const char* name) {
  const char* chosen = std::getenv("FUSEC_STUB");
  return chosen && std::strcmp(chosen, name) == 0;
}
const int kArchitectures[] = {75, 80, 90};
const char kPtx[] = "// PTX of the stub\n";
const char kLog[] = "fusec.cu(1): error: the stub does not like this\n";
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) {
  if (fault("create")) return 1;
  *program = std::malloc(1);
  return 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) { return fault("compile") || fault("no_log") ? 6 : 0; }
int nvrtcDestroyProgram(void** program) { return std::free(*program), *program = nullptr, 0; }
#ifndef STUB_OLD
int nvrtcGetCUBINSize(void*, size_t* size) { return *size = fault("no_cubin") || fault("older") ? 0 : 16, 0; }
int nvrtcGetCUBIN(void*, char* cubin) { return std::memset(cubin, 0, 16), 0; }
#endif
int nvrtcGetNumSupportedArchs(int* count) { return *count = fault("older") ? 2 : 3, 0; }
int nvrtcGetSupportedArchs(int* all) { return std::memcpy(all, kArchitectures, fault("older") ? 2 * sizeof(int) : sizeof(kArchitectures)), 0; }
int nvrtcGetPTXSize(void*, size_t* size) { return *size = fault("older") ? sizeof(kPtx) : 0, 0; }
int nvrtcGetPTX(void*, char* text) { return std::memcpy(text, kPtx, sizeof(kPtx)), !fault("older"); }
int nvrtcGetProgramLogSize(void*, size_t* size) { return *size = fault("no_log") ? 0 : sizeof(kLog), fault("no_log"); }
int nvrtcGetProgramLog(void*, char* log) { return std::memcpy(log, kLog, sizeof(kLog)), 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_STUB"; }
}
