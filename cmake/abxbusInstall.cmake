# Install rules: headers, the static library, and what find_package and pkg-config read.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(abxbus_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/abxbus)

install(DIRECTORY include/abxbus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS abxbus EXPORT abxbusTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT abxbusTargets NAMESPACE abxbus:: DESTINATION ${abxbus_cmake_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/abxbusConfig.cmake.in abxbusConfig.cmake INSTALL_DESTINATION ${abxbus_cmake_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(abxbusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/abxbusConfig.cmake ${PROJECT_BINARY_DIR}/abxbusConfigVersion.cmake
  DESTINATION ${abxbus_cmake_dir})

# pkg-config. The library exists as a static one only, so its dependencies belong to every link line, not to --static.
# Boost and mimalloc have no .pc files on Debian: they are named by their linker flags.
set(abxbus_pc_libs "")
function(abxbus_pc_library target flag)
  get_target_property(location ${target} LOCATION)
  cmake_path(GET location PARENT_PATH folder)
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND flag "-L${folder} ")
  endif()
  set(abxbus_pc_libs "${abxbus_pc_libs} ${flag}" PARENT_SCOPE)
endfunction()
abxbus_pc_library(Boost::json -lboost_json)
if(TARGET Boost::container)
  abxbus_pc_library(Boost::container -lboost_container)
endif()
if(ABXBUS_WITH_MIMALLOC)
  abxbus_pc_library(mimalloc -lmimalloc)
endif()
set(abxbus_pc_cflags "")
get_target_property(boost_includes Boost::headers INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS boost_includes)
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND abxbus_pc_cflags " -I${folder}")
  endif()
endforeach()
# The prefix is where the file lies, so an installed tree may be moved.
file(RELATIVE_PATH abxbus_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" abxbus_pc_up "${abxbus_pc_up}")
configure_file(cmake/abxbus.pc.in abxbus.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/abxbus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
