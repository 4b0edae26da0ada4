#include "runtime/tuning.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "lib/support/files.h"
#include "lib/support/hash.h"

namespace fusec {
namespace {

constexpr int kVersion = 1;
using Json = nlohmann::json;

/// A member of a type, or what it is without one; false when it is there and of another type.
bool take(const Json& from, const char* key, std::string& to, bool needed) {
  auto found = from.find(key);
  if (found == from.end()) return !needed;
  if (!found->is_string()) return false;
  to = found->get<std::string>();
  return true;
}
template <class T> bool take(const Json& from, const char* key, T& to) {
  auto found = from.find(key);
  if (found == from.end()) return true;
  if (std::is_integral_v<T> ? !found->is_number_integer() : !found->is_number()) return false;  // 1e300 is no count of registers
  to = found->get<T>();
  return true;
}

}  // namespace

Result<Tuning> Tuning::parse(std::string_view text, const std::string& file) {
  const std::string where = file.empty() ? "tuning file" : "tuning file " + file;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return input_error(where + " is not JSON");
  auto version = json.is_object() ? json.find("fusec_tuning") : json.end();
  if (version == json.end() || !version->is_number_integer()) return input_error(where + " is not one: it has no fusec_tuning");
  Tuning out;
  if (*version != kVersion) {
    out.note_ = where + " is of version " + version->dump() + ", this fusec reads " + std::to_string(kVersion) + ": it is ignored";
    return out;
  }
  auto entries = json.find("entries");
  if (entries == json.end() || !entries->is_array()) return input_error(where + ": entries are missing");
  size_t number = 0;
  for (const Json& one : *entries) {
    TuningEntry e;
    const bool good = one.is_object() && take(one, "device", e.device, true) && take(one, "target", e.target, true) && take(one, "kernel", e.kernel, true) &&
                      take(one, "shape", e.shape, true) && take(one, "schedule", e.schedule, true) && take(one, "name", e.name, false) &&
                      take(one, "seconds", e.seconds) && take(one, "model_seconds", e.model_seconds) && take(one, "bytes_per_s", e.bytes_per_s) &&
                      take(one, "occupancy", e.occupancy) && take(one, "registers", e.registers) && take(one, "spill_bytes", e.spill_bytes);
    if (!good) return input_error(where + ": entry " + std::to_string(number) + " is not one");
    out.put(std::move(e));
    ++number;
  }
  return out;
}

Result<Tuning> Tuning::load(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text.error().note("while reading a tuning file");
  return parse(*text, path);
}

std::string Tuning::text() const {
  Json out = {{"fusec_tuning", kVersion}, {"entries", Json::array()}};
  for (const auto& [key, e] : entries_) {
    Json one = {{"device", e.device}, {"target", e.target}, {"kernel", e.kernel}, {"shape", e.shape}, {"schedule", e.schedule}, {"name", e.name},
                {"seconds", e.seconds}, {"model_seconds", e.model_seconds}, {"bytes_per_s", e.bytes_per_s}};
    if (e.registers >= 0) one["registers"] = e.registers, one["spill_bytes"] = e.spill_bytes, one["occupancy"] = e.occupancy;
    out["entries"].push_back(std::move(one));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void Tuning::put(TuningEntry entry) {
  std::vector<std::string> key{entry.target, entry.kernel, entry.shape, entry.device};
  entries_.insert_or_assign(std::move(key), std::move(entry));
}

const TuningEntry* Tuning::find(const std::string& device, const std::string& target, const Kernel& kernel, const Facts& facts) const {
  if (entries_.empty()) return nullptr;
  const std::vector<std::string> key{target, kernel_digest(kernel), shape_class(facts), device};
  auto found = entries_.lower_bound(key);
  const bool same = found != entries_.end() && std::equal(key.begin(), key.end() - (device.empty() ? 1 : 0), found->first.begin());
  return same ? &found->second : nullptr;
}

std::string kernel_digest(const Kernel& kernel) {
  const std::string text = print(kernel);
  const uint64_t hash = hash_bytes(text.data(), text.size());
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
  return out;
}

std::string shape_class(const Facts& facts) {
  const uint64_t rows = uint64_t(std::max<int64_t>(facts.rows, 1));
  return "2^" + std::to_string(std::bit_width(rows) - 1) + " x " + std::to_string(facts.columns);
}

}  // namespace fusec
