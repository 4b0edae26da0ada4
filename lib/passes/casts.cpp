// Conversions. A cast means one thing: the value, rounded once (or wrapped, or saturated) to the target type. So a chain may lose a
// member only where the earlier cast keeps every value, and a narrowing keeps its rounding: f64 → f32 → f16 rounds twice and stays.

#include "lib/passes/rules.h"
#include "lib/rewrite/match.h"

namespace fusec {
namespace {

using namespace patterns;

Pattern is_nan(Pattern p) { return apply(Op::is_nan, std::move(p)); }

DType a(const Match& m) { return *m.types[0]; }
DType b(const Match& m) { return *m.types[1]; }

bool same_type(const Match& m) { return m.x().dtype == a(m); }
bool widens_a(const Match& m) { return widens(m.x().dtype, a(m)); }
/// The first cast keeps every value. Through a float an integer saturates, where from integer to integer it would wrap.
bool widened_within(const Match& m) {
  const bool saturates = !is_float(m.x().dtype) && is_float(a(m)) && is_integer(b(m));
  return widens_a(m) && (!saturates || widens(m.x().dtype, b(m)));
}
/// Both casts start from one type and keep every value.
bool widens_both(const Match& m) { return m.x().dtype == m.y().dtype && widens_a(m); }
bool select_sources(const Match& m) {
  return m.graph->type(m.values[1]).dtype == m.graph->type(m.values[2]).dtype;
}
/// Integers modulo 2^bits: a narrower (or equal) last cast sees only bits that the first one kept.
bool wraps_within(const Match& m) {
  return is_integer(m.x().dtype) && is_integer(a(m)) && is_integer(b(m)) && bytes(b(m)) <= bytes(a(m));
}
bool from_integer(const Match& m) { return !is_float(m.x().dtype) && is_float(a(m)); }
/// An integer becomes a finite float: no type is so narrow that it overflows.
bool from_integer_to_finite(const Match& m) { return from_integer(m) && widens_a(m); }
bool from_unsigned(const Match& m) {
  return (is_unsigned_x(m) || is_boolean_x(m)) && (is_float(a(m)) || widens_a(m)) && a(m) != DType::boolean;
}
bool from_boolean(const Match& m) { return is_boolean_x(m) && a(m) != DType::boolean; }
bool to_integer(const Match& m) { return is_float(m.x().dtype) && is_integer(a(m)); }
bool to_unsigned(const Match& m) { return to_integer(m) && !is_signed(a(m)); }

}  // namespace

const std::vector<RewriteRule>& casts() {
  static const std::vector<RewriteRule> rules = {
      //  name                find                              put                       holds    when
      {"cast-same",           cast(x, A),                       x,                        exact,   same_type},
      {"cast-widened",        cast(cast(x, A), B),              cast(x, B),               exact,   widened_within},
      {"cast-wrapped",        cast(cast(x, A), B),              cast(x, B),               exact,   wraps_within},
      {"bitcast-same",        bitcast(x, A),                    x,                        exact,   same_type},
      {"bitcast-bitcast",     bitcast(bitcast(x, A), B),        bitcast(x, B),            exact},
      {"cast-trunc",          cast(apply(Op::trunc, x), A),     cast(x, A),               floats,  to_integer},
      {"cast-relu",           cast(relu(x), A),                 cast(x, A),               floats,  to_unsigned},  // saturates at 0
      {"ceil-integer",        apply(Op::ceil, cast(x, A)),      cast(x, A),               exact,   from_integer},
      {"floor-integer",       apply(Op::floor, cast(x, A)),     cast(x, A),               exact,   from_integer},
      {"round-integer",       apply(Op::round_even, cast(x, A)),  cast(x, A),             exact,   from_integer},
      {"trunc-integer",       apply(Op::trunc, cast(x, A)),     cast(x, A),               exact,   from_integer},
      {"is-nan-integer",      is_nan(cast(x, A)),               0,                        exact,   from_integer_to_finite},
      {"is-inf-integer",      apply(Op::is_inf, cast(x, A)),    0,                        exact,   from_integer_to_finite},
      {"is-finite-integer",   apply(Op::is_finite, cast(x, A)), 1,                        exact,   from_integer_to_finite},
      {"is-nan-widened",      is_nan(cast(x, A)),               is_nan(x),                floats,  widens_a},
      {"is-inf-widened",      apply(Op::is_inf, cast(x, A)),    apply(Op::is_inf, x),     floats,  widens_a},
      {"is-finite-widened",   apply(Op::is_finite, cast(x, A)), apply(Op::is_finite, x),  floats,  widens_a},
      {"abs-cast-unsigned",   abs(cast(x, A)),                  cast(x, A),               exact,   from_unsigned},
      {"relu-cast-unsigned",  relu(cast(x, A)),                 cast(x, A),               exact,   from_unsigned},
      {"ne-zero-cast-bool",   cast(x, A) != 0,                  x,                        exact,   from_boolean},
      {"eq-zero-cast-bool",   cast(x, A) == 0,                  ~x,                       exact,   from_boolean},
      {"eq-one-cast-bool",    cast(x, A) == 1,                  x,                        exact,   from_boolean},
      {"ne-one-cast-bool",    cast(x, A) != 1,                  ~x,                       exact,   from_boolean},
      {"eq-widened",          cast(x, A) == cast(y, A),         x == y,                   exact,   widens_both},
      {"ne-widened",          cast(x, A) != cast(y, A),         x != y,                   exact,   widens_both},
      {"lt-widened",          cast(x, A) < cast(y, A),          x < y,                    exact,   widens_both},
      {"le-widened",          cast(x, A) <= cast(y, A),         x <= y,                   exact,   widens_both},
      {"gt-widened",          cast(x, A) > cast(y, A),          x > y,                    exact,   widens_both},
      {"ge-widened",          cast(x, A) >= cast(y, A),         x >= y,                   exact,   widens_both},
      {"max-widened",         max(once(cast(x, A)), once(cast(y, A))),  cast(max(x, y), A),  exact,  widens_both},
      {"min-widened",         min(once(cast(x, A)), once(cast(y, A))),  cast(min(x, y), A),  exact,  widens_both},
      {"and-cast",            once(cast(x, A)) & once(cast(y, A)),      cast(x & y, A),      integers,  widens_both},
      {"or-cast",             once(cast(x, A)) | once(cast(y, A)),      cast(x | y, A),      integers,  widens_both},
      {"xor-cast",            once(cast(x, A)) ^ once(cast(y, A)),      cast(x ^ y, A),      integers,  widens_both},
      {"select-cast",         select(x, once(cast(y, A)), once(cast(z, A))),  cast(select(x, y, z), A),  exact,  select_sources},
      {"cast-narrowed-fast",  cast(cast(x, A), B),              cast(x, B),               fast,
       [](const Match& m) { return is_float(a(m)) && is_float(b(m)) && widens(b(m), a(m)) && widens_a(m) == false; }},
  };
  return rules;
}

}  // namespace fusec
