#include "abxbus/version.hpp"

#define ABXBUS_TEXT_OF(number) #number
#define ABXBUS_VERSION_TEXT(major, minor, patch) \
  ABXBUS_TEXT_OF(major) "." ABXBUS_TEXT_OF(minor) "." ABXBUS_TEXT_OF(patch)

namespace abxbus {

const char* version() noexcept {
  return ABXBUS_VERSION_TEXT(ABXBUS_VERSION_MAJOR, ABXBUS_VERSION_MINOR, ABXBUS_VERSION_PATCH);
}

}  // namespace abxbus
