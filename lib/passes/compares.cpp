// Compares and selects. With a NaN every compare but != is false, so only == and != may be negated on floats.

#include "lib/passes/rules.h"

namespace fusec {
namespace {

using namespace patterns;

Pattern is_nan(Pattern p) { return apply(Op::is_nan, std::move(p)); }
Pattern is_inf(Pattern p) { return apply(Op::is_inf, std::move(p)); }
Pattern is_finite(Pattern p) { return apply(Op::is_finite, std::move(p)); }

}  // namespace

const std::vector<RewriteRule>& compares() {
  static const std::vector<RewriteRule> rules = {
      //  name               find                           put                    holds      when
      {"not-eq",             ~once(x == y),                 x != y,                exact},
      {"not-ne",             ~once(x != y),                 x == y,                exact},
      {"not-lt",             ~once(x < y),                  x >= y,                integers},
      {"not-le",             ~once(x <= y),                 x > y,                 integers},
      {"not-gt",             ~once(x > y),                  x <= y,                integers},
      {"not-ge",             ~once(x >= y),                 x < y,                 integers},
      {"eq-self",            x == x,                        1,                     integers},
      {"ne-self",            x != x,                        0,                     integers},
      {"le-self",            x <= x,                        1,                     integers},
      {"ge-self",            x >= x,                        1,                     integers},
      {"lt-self",            x < x,                         0,                     exact},
      {"gt-self",            x > x,                         0,                     exact},
      {"eq-self-nan",        x == x,                        ~is_nan(x),            floats},
      {"ne-self-nan",        x != x,                        is_nan(x),             floats},
      {"le-self-nan",        x <= x,                        ~is_nan(x),            floats},
      {"ge-self-nan",        x >= x,                        ~is_nan(x),            floats},
      {"eq-true",            x == 1,                        x,                     integers,  is_boolean_x},
      {"ne-false",           x != 0,                        x,                     integers,  is_boolean_x},
      {"eq-false",           x == 0,                        ~x,                    integers,  is_boolean_x},
      {"ne-true",            x != 1,                        ~x,                    integers,  is_boolean_x},
      {"unsigned-ge-zero",   x >= 0,                        1,                     integers,  is_unsigned_x},
      {"unsigned-lt-zero",   x < 0,                         0,                     integers,  is_unsigned_x},
      {"unsigned-gt-zero",   x > 0,                         x != 0,                integers,  is_unsigned_x},
      {"le-highest",         x <= highest,                  1,                     integers},
      {"ge-lowest",          x >= lowest,                   1,                     integers},
      {"gt-highest",         x > highest,                   0,                     exact},
      {"lt-lowest",          x < lowest,                    0,                     exact},
      {"eq-add-const",       (x + c) == d,                  x == fold(d - c),      integers},  // wraps both ways
      {"ne-add-const",       (x + c) != d,                  x != fold(d - c),      integers},
      {"eq-sub-zero",        (x - y) == 0,                  x == y,                integers},
      {"ne-sub-zero",        (x - y) != 0,                  x != y,                integers},
      {"eq-xor-zero",        (x ^ y) == 0,                  x == y,                integers},
      {"ne-xor-zero",        (x ^ y) != 0,                  x != y,                integers},
      {"eq-neg",             -x == -y,                      x == y,                exact},
      {"ne-neg",             -x != -y,                      x != y,                exact},
      {"lt-neg",             -x < -y,                       x > y,                 floats},    // integers: -MIN is MIN
      {"le-neg",             -x <= -y,                      x >= y,                floats},
      {"eq-neg-const",       -x == c,                       x == fold(-c),         exact},
      {"ne-neg-const",       -x != c,                       x != fold(-c),         exact},
      {"lt-neg-const",       -x < c,                        x > fold(-c),          floats},
      {"le-neg-const",       -x <= c,                       x >= fold(-c),         floats},
      {"gt-neg-const",       -x > c,                        x < fold(-c),          floats},
      {"ge-neg-const",       -x >= c,                       x <= fold(-c),         floats},
      {"lt-or-eq",           once(x < y) | once(x == y),    x <= y,                exact},
      {"gt-or-eq",           once(x > y) | once(x == y),    x >= y,                exact},
      {"lt-or-gt",           once(x < y) | once(x > y),     x != y,                integers},
      {"le-and-ne",          once(x <= y) & once(x != y),   x < y,                 exact},
      {"ge-and-ne",          once(x >= y) & once(x != y),   x > y,                 exact},
      {"le-and-ge",          once(x <= y) & once(x >= y),   x == y,                exact},
      {"is-nan-neg",         is_nan(-x),                    is_nan(x),             exact},
      {"is-nan-abs",         is_nan(abs(x)),                is_nan(x),             exact},
      {"is-inf-neg",         is_inf(-x),                    is_inf(x),             exact},
      {"is-inf-abs",         is_inf(abs(x)),                is_inf(x),             exact},
      {"is-finite-neg",      is_finite(-x),                 is_finite(x),          exact},
      {"is-finite-abs",      is_finite(abs(x)),             is_finite(x),          exact},
      {"nan-or-inf",         once(is_nan(x)) | once(is_inf(x)),  ~is_finite(x),    exact},

      {"select-same",        select(x, y, y),               y,                     exact},
      {"select-true",        select(1, x, y),               x,                     exact},
      {"select-false",       select(0, x, y),               y,                     exact},
      {"select-not",         select(~x, y, z),              select(x, z, y),       exact},
      {"select-bool",        select(x, 1, 0),               x,                     integers},  // bool only: the types say so
      {"select-bool-not",    select(x, 0, 1),               ~x,                    integers},
      {"select-and",         select(x, y, 0),               x & y,                 integers},
      {"select-or",          select(x, 1, y),               x | y,                 integers},
      {"select-then",        select(x, select(x, y, z), z), select(x, y, z),       exact},
      {"select-else",        select(x, y, select(x, y, z)), select(x, y, z),       exact},
      {"select-gt-max",      select(x > y, x, y),           max(x, y),             integers},  // floats: a NaN in x
      {"select-lt-min",      select(x < y, x, y),           min(x, y),             integers},
      {"select-ge-max",      select(x >= y, x, y),          max(x, y),             integers},
      {"select-le-min",      select(x <= y, x, y),          min(x, y),             integers},
      {"select-gt-min",      select(x > y, y, x),           min(x, y),             integers},
      {"select-lt-max",      select(x < y, y, x),           max(x, y),             integers},
      {"select-eq",          select(x == y, x, y),          y,                     integers},  // floats: -0.0 == 0.0
      {"select-ne",          select(x != y, x, y),          x,                     integers},
      {"select-lt-zero-abs", select(x < 0, -x, x),          abs(x),                integers},  // floats: -0.0 stays
  };
  return rules;
}

}  // namespace fusec
