#pragma once
// The rule tables, by theme. docs/add-a-rule.md says how a row comes in.

#include <vector>

#include "lib/rewrite/rule.h"

namespace fusec {

const std::vector<RewriteRule>& identities();   // arithmetic, min and max
const std::vector<RewriteRule>& compares();     // compares and selects
const std::vector<RewriteRule>& bit_rules();    // and, or, xor, shifts; bool algebra
const std::vector<RewriteRule>& casts();        // conversions
const std::vector<RewriteRule>& trait_rules();  // one row for each op with a trait that says so: neg(neg(x)), relu(relu(x)) …
const std::vector<RewriteRule>& activations();  // sigmoid, silu, gelu … written out; applied by `recognise`

/// Those that simplify applies, in the order in which it tries them; and all.
std::vector<const std::vector<RewriteRule>*> simplify_tables();
std::vector<const std::vector<RewriteRule>*> rule_tables();

/// Predicates that several tables share.
bool is_unsigned_x(const Match& m);
bool is_boolean_x(const Match& m);
bool is_positive_c(const Match& m);       // c > 0
/// c is a power of two above zero, and an integer.
bool is_power_of_two_c(const Match& m);
/// The exponent of such a c, in its type.
std::optional<Tensor> log2_of_c(const Match& m);

}  // namespace fusec
