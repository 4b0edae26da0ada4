// fusec ops: the cards, as a list.

#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

const char* const kForms[] = {"leaf", "exact", "formula", "reduce", "view", "composite", "reserved"};

std::string pad(std::string text, size_t width) { return text.append(text.size() < width ? width - text.size() : 1, ' '); }

int list(bool json) {
  if (json) std::cout << "[\n";
  for (int i = 0; i < kOps; ++i) {
    const OpInfo& card = info(Op(i));
    const std::string arity = card.arity < 0 ? "any" : std::to_string(card.arity);
    if (json) {
      std::cout << "  {\"name\": \"" << card.name << "\", \"form\": \"" << kForms[int(card.form)] << "\", \"arity\": " << card.arity
                << ", \"optional\": " << card.optional_args << ", \"cost\": " << card.cost << ", \"attributes\": \"" << card.attributes
                << "\"}" << (i + 1 < kOps ? ",\n" : "\n]\n");
    } else {
      std::cout << pad(std::string(card.name), 14) << pad(kForms[int(card.form)], 10) << pad(arity, 4)
                << pad(std::string(card.attributes), 22) << card.summary << "\n";
    }
  }
  return 0;
}

}  // namespace

Action add_ops(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  return [json] { return list(*json); };
}

}  // namespace fusec::cli
