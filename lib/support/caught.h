#pragma once
// Public functions throw nothing: what memory that ends, or a library, throws inside of one becomes its result.
//
//   return caught("the call stopped", [&] { return impl_->run(inputs, outputs, options); });

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "fusec/result.h"

namespace fusec {

/// What `f` gives, a Result; "out of memory", or `what` and the exception's own words.
template <class F> auto caught(const char* what, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return environment_error("out of memory");
  } catch (const std::length_error&) {  // a vector beyond its largest size
    return environment_error("out of memory");
  } catch (const std::exception& e) {
    return environment_error(std::string(what) + ": " + e.what());
  }
}

}  // namespace fusec
