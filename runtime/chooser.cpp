#include "runtime/chooser.h"

#include <charconv>

namespace fusec {

Result<Chooser> Chooser::make(const std::vector<std::string>& edits) {
  Chooser out;
  for (const std::string& text : edits) {
    Edit edit{kNoStep, text};
    const size_t colon = text.find(':');
    if (colon != text.npos && colon < text.find('=')) {
      size_t step = 0;
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + colon, step);
      if (text[0] != 'g' || error != std::errc() || end != text.data() + colon)
        return input_error("schedule: '" + text + "' names no kernel: FIELD=VALUE or gN:FIELD=VALUE is expected");
      edit = {step, text.substr(colon + 1)};
    }
    if (edit.text.find('=') == edit.text.npos) return input_error("schedule: '" + text + "' is not FIELD=VALUE");
    out.edits_.push_back(std::move(edit));
  }
  return out;
}

Result<Choice> Chooser::choose(size_t step, const Kernel& kernel, const Facts& facts, const Scheduler& scheduler) const {
  Choice out{Choice::model, scheduler.schedule(kernel, facts)};
  if (step == kNoStep) return out;
  for (const Edit& edit : edits_) {
    if (edit.step != kNoStep && edit.step != step) continue;
    if (Status done = set(out.schedule, edit.text); !done) return done.error();
    out.by = Choice::hand;
  }
  if (out.by == Choice::model) return out;
  if (const std::string why = scheduler.settle(kernel, facts, out.schedule); !why.empty())
    return input_error("schedule of g" + std::to_string(step) + " set by hand: " + why + "; it is: " + print(out.schedule));
  return out;
}

const char* name(Choice::By by) {
  switch (by) {
    case Choice::model: return "model";
    case Choice::hand: return "hand";
  }
  return "?";
}

}  // namespace fusec
