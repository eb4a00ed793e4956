# Finds what the library is built on. A missing part ends the configuration with the package to install.

# abxbus_need(<what> <found> <version found> <version wanted> <Debian package>)
function(abxbus_need what found version wanted package)
  if(NOT found)
    set(problem "${what} was not found")
  elseif(wanted AND version AND version VERSION_LESS wanted)
    set(problem "${what} ${version} is too old")
  else()
    return()
  endif()
  set(at_least "")
  if(wanted)
    set(at_least " ${wanted} or later")
  endif()
  message(FATAL_ERROR
    "${problem}: abxbus needs ${what}${at_least}. Install the Debian package ${package} (apt-get install ${package}), "
    "or run ./scripts/setup, which installs everything that is missing.")
endfunction()

# As a part of another project, the targets found here must be visible where that project links abxbus::abxbus.
if(NOT PROJECT_IS_TOP_LEVEL)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
endif()

find_package(Threads REQUIRED)

find_package(TBB CONFIG QUIET)
abxbus_need("oneTBB" "${TBB_FOUND}" "${TBB_VERSION}" 2021.8 libtbb-dev)

find_package(fmt CONFIG QUIET)
abxbus_need("{fmt}" "${fmt_FOUND}" "${fmt_VERSION}" 9.1 libfmt-dev)

# No version is asked for here: of several installed ones Boost's own configuration takes the newest.
find_package(Boost CONFIG QUIET COMPONENTS headers json)
abxbus_need("Boost.JSON" "${Boost_FOUND}" "${Boost_VERSION}" 1.81 "libboost-json1.81-dev")

find_package(concurrentqueue MODULE QUIET)
abxbus_need("moodycamel::ConcurrentQueue" "${concurrentqueue_FOUND}" "" "" libconcurrentqueue-dev)

if(ABXBUS_WITH_MIMALLOC)
  find_package(mimalloc CONFIG QUIET)
  abxbus_need("mimalloc" "${mimalloc_FOUND}" "${mimalloc_VERSION}" 2.0 libmimalloc-dev)
endif()

if(ABXBUS_BUILD_TESTS)
  find_package(Catch2 CONFIG QUIET)
  abxbus_need("Catch2" "${Catch2_FOUND}" "${Catch2_VERSION}" 2.13 catch2)
endif()
