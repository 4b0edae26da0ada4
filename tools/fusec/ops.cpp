// fusec ops: the cards, as a list.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

const char* const kForms[] = {"leaf", "exact", "formula", "reduce", "scan", "view", "composite", "reserved"};

std::string pad(std::string text, size_t width) { return text.append(text.size() < width ? width - text.size() : 1, ' '); }

int show(const OpInfo& card) {
  std::cout << card.name << ": " << card.summary << "\n  form        " << kForms[int(card.form)] << "\n  operands    "
            << (card.arity < 0 ? "any number" : std::to_string(card.arity))
            << (card.optional_args ? ", the last " + std::to_string(card.optional_args) + " optional" : "")
            << "\n  attributes  " << (card.attributes.empty() ? "none" : card.attributes) << "\n  cost        " << card.cost
            << (card.cost == 1 ? " add an element\n" : " adds an element\n");
  return 0;
}

int list(bool json, const std::string& only) {
  if (!only.empty()) {
    const std::optional<Op> found = op(only);
    return found ? show(info(*found)) : fail(input_error("there is no op '" + only + "'"));
  }
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
  auto only = std::make_shared<std::string>();
  app.add_option("NAME", *only, "show this op's card");
  app.add_flag("--json", *json, "as JSON");
  return [json, only] { return list(*json, *only); };
}

}  // namespace fusec::cli
