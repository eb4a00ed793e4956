# Finds moodycamel::ConcurrentQueue, which distributions install in different folders without a configuration file.
#
# Target: concurrentqueue::concurrentqueue. Its include directory is the one that holds the header, so
# <concurrentqueue.h> works everywhere.

find_path(concurrentqueue_INCLUDE_DIR
  NAMES concurrentqueue.h
  PATH_SUFFIXES concurrentqueue/moodycamel moodycamel concurrentqueue
  DOC "Folder that holds concurrentqueue.h")
mark_as_advanced(concurrentqueue_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(concurrentqueue REQUIRED_VARS concurrentqueue_INCLUDE_DIR)

if(concurrentqueue_FOUND AND NOT TARGET concurrentqueue::concurrentqueue)
  add_library(concurrentqueue::concurrentqueue INTERFACE IMPORTED)
  target_include_directories(concurrentqueue::concurrentqueue INTERFACE ${concurrentqueue_INCLUDE_DIR})
endif()
