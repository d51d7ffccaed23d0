# Finds NCCL's header and library: NCCL::NCCL, NCCL_VERSION, and the library's folder NCCL_LIBRARY_DIR.
# Hints: NCCL_ROOT, NCCL_HOME, the CUDA toolkit, and the place of Python's nvidia-nccl package in CMAKE_PREFIX_PATH.
find_path(NCCL_INCLUDE_DIR nccl.h
    HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT} $ENV{NCCL_HOME} ${CUDAToolkit_INCLUDE_DIRS}
    PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2
    HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT} $ENV{NCCL_HOME} ${CUDAToolkit_LIBRARY_DIR}
    PATH_SUFFIXES lib lib64)

if(NCCL_INCLUDE_DIR)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
    set(NCCL_VERSION "")
    foreach(line IN LISTS nccl_lines)
        string(REGEX REPLACE "^#define NCCL_[A-Z]+ +" "" number "${line}")
        list(APPEND NCCL_VERSION ${number})
    endforeach()
    list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
    add_library(NCCL::NCCL SHARED IMPORTED)
    set_target_properties(NCCL::NCCL PROPERTIES
        IMPORTED_LOCATION ${NCCL_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
    cmake_path(GET NCCL_LIBRARY PARENT_PATH NCCL_LIBRARY_DIR)
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
