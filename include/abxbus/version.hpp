#pragma once

// The version of the library. It stands only here: the build reads it from these three lines.
#define ABXBUS_VERSION_MAJOR 0
#define ABXBUS_VERSION_MINOR 1
#define ABXBUS_VERSION_PATCH 0

namespace abxbus {

/// Version of the library that the program was linked with, as `major.minor.patch`. The macros above tell the version
/// of the headers it was compiled with. Any thread; never throws; the text lives for ever.
const char* version() noexcept;

}  // namespace abxbus
