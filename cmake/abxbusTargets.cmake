# How every target of this project is set up.

# Warnings, for our own code only: no user of the library inherits them.
add_library(abxbus_warnings INTERFACE)
target_compile_options(abxbus_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${ABXBUS_WERROR}>:-Werror>
  # GCC warns about its own library: std::string's operator+ with a literal "overlaps" (GCC bug 105651, mended in 13),
  # and what an empty std::optional holds "may be used uninitialized" (bug 80635).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)

# The internals: what a source that includes headers of lib/ needs besides the library itself.
add_library(abxbus_internals INTERFACE)
target_include_directories(abxbus_internals INTERFACE ${PROJECT_SOURCE_DIR}/lib)
target_link_libraries(abxbus_internals INTERFACE
  TBB::tbb fmt::fmt Boost::json concurrentqueue::concurrentqueue Threads::Threads
  $<$<BOOL:${ABXBUS_WITH_MIMALLOC}>:mimalloc>)
if(ABXBUS_WITH_MIMALLOC)
  target_compile_definitions(abxbus_internals INTERFACE ABXBUS_WITH_MIMALLOC=1)
endif()

# abxbus_setup(<target>): language level, visibility and warnings, the same for all.
function(abxbus_setup target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  # Used while building here only; an export or a using project sees nothing of it.
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:abxbus_warnings>)
endfunction()

# abxbus_library(<target> <sources>...): one static library from the library's sources.
function(abxbus_library target)
  add_library(${target} STATIC ${ARGN})
  abxbus_setup(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Public headers forward-declare Boost.JSON's types, and <abxbus/json.hpp> hands them out. The rest is an
  # implementation matter: it reaches a user on the link line only.
  target_link_libraries(${target}
    PUBLIC Boost::headers Boost::json
    PRIVATE TBB::tbb fmt::fmt Threads::Threads $<BUILD_INTERFACE:abxbus_internals>)
  if(ABXBUS_WITH_MIMALLOC)
    target_link_libraries(${target} PRIVATE mimalloc)
  endif()
endfunction()

# abxbus_program(<target> SOURCES <file>... [LIBRARIES <target>...])
function(abxbus_program target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES")
  add_executable(${target} ${ARG_SOURCES})
  abxbus_setup(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES})
endfunction()

# abxbus_limit(<variable> <seconds>): the time limit of a test in this build.
function(abxbus_limit variable seconds)
  math(EXPR limit "${seconds} * ${ABXBUS_TEST_TIMEOUT_FACTOR}")
  set(${variable} ${limit} PARENT_SCOPE)
endfunction()
