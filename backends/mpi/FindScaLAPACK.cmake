# Finds ScaLAPACK's library for the MPI found before: ScaLAPACK::ScaLAPACK. It has no header, so callers declare p?gemr2d
# and BLACS themselves. Only tests and benchmarks search for it. Hint: ScaLAPACK_ROOT.
set(scalapack_names scalapack-openmpi scalapack)
if("${MPI_CXX_INCLUDE_DIRS}" MATCHES "mpich")
    set(scalapack_names scalapack-mpich scalapack)
endif()
find_library(ScaLAPACK_LIBRARY NAMES ${scalapack_names})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ScaLAPACK REQUIRED_VARS ScaLAPACK_LIBRARY)

if(ScaLAPACK_FOUND AND NOT TARGET ScaLAPACK::ScaLAPACK)
    add_library(ScaLAPACK::ScaLAPACK UNKNOWN IMPORTED)
    set_target_properties(ScaLAPACK::ScaLAPACK PROPERTIES
        IMPORTED_LOCATION ${ScaLAPACK_LIBRARY} INTERFACE_LINK_LIBRARIES MPI::MPI_CXX)
endif()
mark_as_advanced(ScaLAPACK_LIBRARY)
