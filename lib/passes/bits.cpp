// and, or, xor, not and shifts; on bool the same rows are the algebra of truth values (~ is `not` there).

#include "lib/ir/convert.h"
#include "lib/passes/rules.h"

namespace fusec {
namespace {

using namespace patterns;

bool in_width(const Tensor& t) {
  const double n = element(t, 0);
  return n >= 0 && n < double(8 * bytes(t.dtype));
}
bool counts_add(const Match& m) { return in_width(m.c()) && in_width(m.d()); }  // the sum fits an i8: at most 126
bool count_fits(const Match& m) { return in_width(m.c()); }
bool count_fits_unsigned(const Match& m) { return in_width(m.c()) && is_unsigned_x(m); }

}  // namespace

const std::vector<RewriteRule>& bit_rules() {
  static const std::vector<RewriteRule> rules = {
      //  name               find                   put                         holds   when
      {"and-zero",           x & 0,                 0,                          exact},
      {"and-ones",           x & all_ones,          x,                          exact},
      {"or-zero",            x | 0,                 x,                          exact},
      {"or-ones",            x | all_ones,          all_ones,                   exact},
      {"xor-zero",           x ^ 0,                 x,                          exact},
      {"xor-ones",           x ^ all_ones,          ~x,                         exact},
      {"xor-self",           x ^ x,                 0,                          exact},
      {"and-not-self",       x & ~x,                0,                          exact},
      {"or-not-self",        x | ~x,                all_ones,                   exact},
      {"xor-not-self",       x ^ ~x,                all_ones,                   exact},
      {"xor-back",           x ^ (x ^ y),           y,                          exact},
      {"and-const",          (x & c) & d,           x & fold(c & d),            exact},
      {"or-const",           (x | c) | d,           x | fold(c | d),            exact},
      {"xor-const",          (x ^ c) ^ d,           x ^ fold(c ^ d),            exact},
      {"not-xor-const",      ~once(x ^ c),          x ^ fold(~c),               exact},
      {"and-and",            x & (x & y),           x & y,                      exact},
      {"or-or",              x | (x | y),           x | y,                      exact},
      {"and-or",             x & (x | y),           x,                          exact},
      {"or-and",             x | (x & y),           x,                          exact},
      {"or-and-not",         x | once(~x & y),      x | y,                      exact},
      {"and-or-not",         x & once(~x | y),      x & y,                      exact},
      {"not-and-not",        once(~x) & once(~y),   ~(x | y),                   exact},  // De Morgan
      {"not-or-not",         once(~x) | once(~y),   ~(x & y),                   exact},
      {"not-xor-not",        ~x ^ ~y,               x ^ y,                      exact},
      {"and-factor",         once(x & y) | once(x & z),  x & (y | z),           exact},
      {"or-factor",          once(x | y) & once(x | z),  x | (y & z),           exact},
      {"shl-zero",           x << 0,                x,                          exact},
      {"shr-zero",           x >> 0,                x,                          exact},
      {"zero-shl",           0 << x,                0,                          exact},
      {"zero-shr",           0 >> x,                0,                          exact},
      {"shl-shl",            (x << c) << d,         x << fold(c + d),           exact,  counts_add},
      {"shr-shr",            (x >> c) >> d,         x >> fold(c + d),           exact,  counts_add},
      {"shl-shr",            (x << c) >> c,         x & fold(all_ones >> c),    exact,  count_fits_unsigned},
      {"shr-shl",            (x >> c) << c,         x & fold(all_ones << c),    exact,  count_fits},
      {"not-as-neg",         ~x + 1,                -x,                         exact},
      {"ones-sub",           all_ones - x,          ~x,                         exact},
  };
  return rules;
}

}  // namespace fusec
