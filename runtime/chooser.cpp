#include "runtime/chooser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "runtime/log.h"

namespace fusec {

namespace {

/// The file of FUSEC_TUNING, read once a process; null when there is none, or none that can be used.
std::shared_ptr<const Tuning> tuning_of_environment() {
  static const std::shared_ptr<const Tuning> kTuning = []() -> std::shared_ptr<const Tuning> {
    const char* path = std::getenv("FUSEC_TUNING");
    if (!path || !*path) return nullptr;
    Result<Tuning> tuning = Tuning::load(path);
    if (!tuning) {
      log_warning("FUSEC_TUNING is ignored: " + tuning.error().message);
      return nullptr;
    }
    if (!tuning->note().empty()) log_warning("FUSEC_TUNING: " + tuning->note());
    return std::make_shared<const Tuning>(std::move(*tuning));
  }();
  return kTuning;
}

/// Is the field (access.2: access) one of these, parted by blanks? All are, of none.
bool reads(std::string_view fields, std::string_view field) {
  const std::string word = " " + std::string(field.substr(0, field.find('.'))) + " ";
  return fields.empty() || (" " + std::string(fields) + " ").find(word) != std::string::npos;
}

/// "threads, lane".
std::string listed(std::string_view fields) {
  std::string out;
  for (char c : fields) out += c == ' ' ? ", " : std::string(1, c);
  return out;
}

}  // namespace

Result<Chooser> Chooser::make(const std::vector<std::string>& edits, const std::string& tuning) {
  Chooser out;
  if (tuning.empty()) {
    out.tuning_ = tuning_of_environment();
  } else {
    Result<Tuning> loaded = Tuning::load(tuning);
    if (!loaded) return loaded.error();
    if (!loaded->note().empty()) log_warning(loaded->note());
    out.tuning_ = std::make_shared<const Tuning>(std::move(*loaded));
  }
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

Status Chooser::fits(size_t kernels) const {
  for (const Edit& edit : edits_)
    if (edit.step != kNoStep && edit.step >= kernels)
      return input_error("schedule: 'g" + std::to_string(edit.step) + ":" + edit.text + "' names a kernel that is not there: " +
                         (kernels == 0 ? "there is none" : kernels == 1 ? "there is only g0" : "there are g0 to g" + std::to_string(kernels - 1)));
  return Done{};
}

Result<Choice> Chooser::choose(size_t step, const Kernel& kernel, const Facts& facts, const Scheduler& scheduler) const {
  Choice out{Choice::model, scheduler.schedule(kernel, facts), ""};
  if (step == kNoStep) return out;
  if (const TuningEntry* entry = tuning_ ? tuning_->find(scheduler.device_key(), scheduler.target_key(), kernel, facts) : nullptr) {
    const std::vector<Candidate> candidates = scheduler.candidates(kernel, facts);
    auto found = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.edits == entry->schedule; });
    if (found != candidates.end()) out.by = Choice::tuned, out.schedule = found->schedule;
    else out.note = "the tuning file's '" + entry->schedule + "' is no candidate any more, or not for this call";
  }
  if (step > 0) scheduler.follow(out.schedule);
  const Schedule model = out.schedule;
  for (const Edit& edit : edits_) {
    if (edit.step != kNoStep && edit.step != step) continue;
    if (Status done = set(out.schedule, edit.text); !done) return done.error();
    out.by = Choice::hand;
  }
  if (out.by != Choice::hand) return out;
  if (const std::string why = scheduler.settle(kernel, facts, out.schedule); !why.empty())
    return input_error("schedule of g" + std::to_string(step) + " set by hand: " + why + "; it is: " + print(out.schedule));
  // What somebody asked for stays as it was asked for and counts for something, or is refused.
  const std::string_view read = scheduler.fields(out.schedule);
  for (size_t i = 0; i < edits_.size(); ++i) {
    const auto applies = [&](const Edit& e) { return e.step == kNoStep || e.step == step; };
    const std::string field = edits_[i].text.substr(0, edits_[i].text.find('='));
    const bool last = std::none_of(edits_.begin() + long(i) + 1, edits_.end(), [&](const Edit& e) { return applies(e) && e.text.starts_with(field + "="); });
    if (!applies(edits_[i]) || !last) continue;
    const std::string where = "schedule of g" + std::to_string(step) + " set by hand: " + edits_[i].text;
    Schedule asked = out.schedule;
    if (set(asked, edits_[i].text) && asked != out.schedule)
      return input_error(where + " does not go with the other fields; with them it is: " + print(out.schedule));
    const Schedule& quiet = asked.skeleton == model.skeleton ? model : Schedule();  // another skeleton is rid of what the model's had
    if (!reads(read, field) && value_of(asked, field) != value_of(quiet, field))
      return input_error(where + " counts for nothing: skeleton=" + value_of(asked, "skeleton") + " does not look at " + field + ", but at " + listed(read));
  }
  return out;
}

const char* name(Choice::By by) {
  switch (by) {
    case Choice::model: return "model";
    case Choice::tuned: return "tuning file";
    case Choice::hand: return "hand";
  }
  return "?";
}

}  // namespace fusec
