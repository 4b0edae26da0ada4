#include "tools/fusec/ceilings.h"

#include "fusec/fusec.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace fusec::cli {

bool is_gpu(const Backend& device) { return device.name().starts_with("cuda"); }

Spread spread(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  Spread out;
  out.runs = int(times.size());
  out.median = times[times.size() / 2];
  out.best = times.front();
  out.spread = (times[times.size() * 9 / 10] - times[times.size() / 10]) / std::max(out.median, 1e-12);
  return out;
}

Result<Flush> Flush::make(const Backend& device) {
  Flush out;
  out.device_ = &device;
  const size_t most = size_t{256} << 20;
  const size_t bytes = is_gpu(device) ? most : std::min(most, 4 * device.cache_bytes()) / 16 * 16;
  if (bytes == 0) return out;
  for (std::shared_ptr<Memory>* to : {&out.dirty_, &out.clean_}) {
    Result<std::unique_ptr<Memory>> memory = device.allocate(bytes);
    if (!memory) return memory.error();
    (*memory)->bytes = bytes;
    *to = std::move(*memory);
  }
  return out;
}

Status Flush::operator()() const {
  if (!dirty_) return Done{};
  if (Status s = device_->fill(dirty_->data, 0, dirty_->bytes, nullptr); !s) return s;
  return device_->sweep(clean_->data, clean_->bytes, nullptr);
}

void settle(const Backend& device, double bytes) {
  if (is_gpu(device)) std::this_thread::sleep_for(std::chrono::duration<double>(bytes / 100e9));
}

namespace {

Result<double> median(const Backend& device, const Flush& flush, int runs, const std::function<Status()>& call) {
  const std::shared_ptr<void> current = device.enter();  // a bare launch asks for nothing itself
  for (int i = 0; i < 3; ++i)
    if (Status s = call(); !s) return s.error();
  Result<std::vector<double>> times = device.time(runs, [&] { return flush(); }, call);
  if (!times) return times.error();
  return spread(std::move(*times)).median;
}

}  // namespace

Result<double> copy_rate(const Backend& device, const Flush& flush, size_t block, int runs) {
  Result<std::unique_ptr<Memory>> from = device.allocate(block), to = device.allocate(block);
  if (!from) return from.error();
  if (!to) return to.error();
  Result<double> seconds = median(device, flush, runs, [&] { return device.copy((*to)->data, (*from)->data, block, nullptr); });
  if (!seconds) return seconds;
  return 2 * double(block) / std::max(*seconds, 1e-12);
}

Result<double> add_rate(const Backend& device, int runs) {
  constexpr int kChains = 8, kSteps = 48;  // chains do not wait for each other
  const int64_t n = is_gpu(device) ? int64_t{1} << 22 : int64_t{1} << 18;
  const std::string type = "f32[" + std::to_string(n) + "]";
  std::string text = "graph @adds(%x: " + type + ") -> " + type + " {\n";
  int last = -1, made = 0;
  auto step = [&](const char* op, const std::string& a, const std::string& b) {
    text += "  %v" + std::to_string(made) + " = " + op + " " + a + ", " + b + "\n";
    return made++;
  };
  auto name = [](int v) { return v < 0 ? std::string("%x") : "%v" + std::to_string(v); };
  for (int chain = 0; chain < kChains; ++chain) {
    int at = -1;
    for (int i = 0; i < kSteps; ++i) at = step(i % 2 ? "add" : "mul", name(at), std::string("0.") + char('1' + chain) + "5");  // each step rounds: nothing folds
    last = chain ? step("add", name(last), name(at)) : at;
  }
  text += "  return " + name(last) + "\n}\n";
  Result<Graph> graph = parse(text);
  if (!graph) return graph.error();
  Result<Program> program = compile(*graph, {.device = device.name()});
  if (!program) return program.error();
  Result<std::unique_ptr<Memory>> in = device.allocate(size_t(n) * 4), out = device.allocate(size_t(n) * 4);
  if (!in) return in.error();
  if (!out) return out.error();
  const int64_t extents[] = {n};
  const std::vector<Buffer> inputs{{(*in)->data, extents}}, outputs{{(*out)->data, extents}};
  Result<double> seconds = median(device, Flush(), runs, [&] { return program->run(inputs, outputs); });
  if (!seconds) return seconds;
  return double(n) * made / std::max(*seconds, 1e-12);
}

Result<std::vector<double>> host_times(const Backend& device, const std::vector<std::function<Status()>>& calls) {
  const std::shared_ptr<void> current = device.enter();
  std::vector<std::vector<double>> times(calls.size());
  for (int batch = 0; batch < 16; ++batch)
    for (size_t k = 0; k < calls.size(); ++k) {
      for (int i = 0; i < 16; ++i) {
        const auto start = std::chrono::steady_clock::now();
        if (Status s = calls[k](); !s) return s.error();
        times[k].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      if (Status s = device.wait(nullptr); !s) return s.error();
    }
  std::vector<double> out;
  for (std::vector<double>& of_call : times) out.push_back(spread(std::move(of_call)).median);
  return out;
}

Result<Ceilings> measure_ceilings(const Backend& device, const Flush& flush, size_t block, int runs) {
  Ceilings out;
  out.block = block ? block : is_gpu(device) ? size_t{2} << 30 : size_t{256} << 20;
  Result<double> copied = copy_rate(device, flush, out.block, runs);
  if (!copied) return copied.error();
  out.copy = *copied;
  settle(device, 2 * double(out.block));
  Result<std::unique_ptr<Memory>> memory = device.allocate(out.block);
  if (!memory) return memory.error();
  void* data = (*memory)->data;
  Result<double> reading = median(device, flush, runs, [&] { return device.sweep(data, out.block, nullptr); });
  if (!reading) return reading.error();
  Result<double> writing = median(device, flush, runs, [&] { return device.fill(data, 1, out.block, nullptr); });
  if (!writing) return writing.error();
  out.read = double(out.block) / std::max(*reading, 1e-12), out.write = double(out.block) / std::max(*writing, 1e-12);
  if (Result<std::function<Status()>> empty = device.empty_launch(64)) {
    Result<double> launch = median(device, flush, std::max(runs, 21), *empty);
    if (!launch) return launch.error();
    Result<std::vector<double>> host = host_times(device, {*empty});
    if (!host) return host.error();
    out.launch = *launch, out.host_launch = host->front();
  }
  memory->reset();
  settle(device, double(out.block));
  return out;
}

}  // namespace fusec::cli
