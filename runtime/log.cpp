#include "runtime/log.h"

#define FMT_HEADER_ONLY  // distributions build spdlog against a fmt library; ours must bring no further one to the host
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace fusec {
namespace {

// A logger of our own: the host's default logger and its registry are not ours to touch.
spdlog::logger& logger() {
  static const auto kLogger = [] {
    auto made = std::make_unique<spdlog::logger>("fusec", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%n: %l: %v");
    const char* given = std::getenv("FUSEC_LOG");
    const std::string level = given && *given ? given : "warn";
    const bool known = level == "off" || spdlog::level::from_str(level) != spdlog::level::off;  // "off" is also what it takes the unknown for
    made->set_level(known ? spdlog::level::from_str(level) : spdlog::level::warn);
    if (!known) made->warn("FUSEC_LOG is ignored: '{}' is none of off, error, warn, info and debug", level);
    return made.release();  // never destroyed: a thread may still warn while the process ends
  }();
  return *kLogger;
}

}  // namespace

void log_warning(std::string_view text) { logger().warn("{}", text); }
void log_info(std::string_view text) { logger().info("{}", text); }
void log_debug(std::string_view text) { logger().debug("{}", text); }

}  // namespace fusec
