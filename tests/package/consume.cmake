# One consumer test: cmake -D kind=... -D build=BUILD -D source=ROOT -D work=DIR -D libdir=lib -P consume.cmake
# `install` leaves its tree in ${work}/moved, and all other kinds use it, except the embedded ones. The C and Fortran kinds use
# the tree of `c_install` in ${work}/c_moved.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
set(here ${source}/tests/package)
set(moved ${work}/moved)

if(kind STREQUAL "install")
    # Installed in one place, used from another.
    file(REMOVE_RECURSE ${work}/installed ${moved})
    must(${CMAKE_COMMAND} --install ${build} --prefix ${work}/installed)
    file(RENAME ${work}/installed ${moved})
    file(GLOB_RECURSE texts ${moved}/*.cmake ${moved}/*.pc)
    foreach(text IN LISTS texts)
        file(READ ${text} content)
        foreach(place ${work} ${source} ${build})
            string(FIND "${content}" "${place}" at)
            if(NOT at EQUAL -1)
                message(FATAL_ERROR "${text} names ${place}, so the tree cannot be moved")
            endif()
        endforeach()
    endforeach()

elseif(kind STREQUAL "find_package")
    consumer(find_package -D CMAKE_PREFIX_PATH=${moved} -D version=0.3)
    must(${work}/find_package/consumer)

elseif(kind STREQUAL "find_package_mpi")
    consumer(find_package -D CMAKE_PREFIX_PATH=${moved} -D version=0.3 -D components=mpi)
    must(${work}/find_package_mpi/consumer_mpi)

elseif(kind STREQUAL "find_package_nccl")
    consumer(find_package -D CMAKE_PREFIX_PATH=${moved} -D version=0.3 -D components=nccl)
    must(${work}/find_package_nccl/consumer_nccl)

elseif(kind STREQUAL "wrong_version")
    # Another minor version is incompatible, both older and later.
    foreach(version 0.2 0.4 1.0)
        must_fail("requested version \"${version}\".*version: 0[.]3[.]0" ${CMAKE_COMMAND} -S ${here}/find_package
            -B ${work}/${kind} --fresh -G Ninja -D CMAKE_PREFIX_PATH=${moved} -D version=${version})
    endforeach()

elseif(kind STREQUAL "unknown_component")
    must_fail("reshard has no component 'teleport'" ${CMAKE_COMMAND} -S ${here}/find_package -B ${work}/${kind}
        --fresh -G Ninja -D CMAKE_PREFIX_PATH=${moved} -D version=0.3 -D components=teleport)

elseif(kind STREQUAL "pkg_config")
    set(ENV{PKG_CONFIG_PATH} ${moved}/${libdir}/pkgconfig)
    execute_process(COMMAND ${pkg_config} --cflags --libs reshard OUTPUT_VARIABLE flags
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    file(MAKE_DIRECTORY ${work}/${kind})
    must(${compiler} -std=c++20 ${here}/main.cpp -o ${work}/${kind}/consumer ${flags} -Wl,-rpath,${moved}/${libdir})
    must(${work}/${kind}/consumer)

elseif(kind STREQUAL "c_install")
    # C needs only its component.
    file(REMOVE_RECURSE ${work}/c_installed ${work}/c_moved)
    must(${CMAKE_COMMAND} --install ${build} --prefix ${work}/c_installed --component c)
    file(RENAME ${work}/c_installed ${work}/c_moved)
    file(GLOB_RECURSE foreign ${work}/c_moved/*.hpp ${work}/c_moved/*core*)
    if(foreign)
        message(FATAL_ERROR "not of C: ${foreign}")
    endif()

elseif(kind MATCHES "^(c|fortran)_find_package$")
    consumer(${CMAKE_MATCH_1} -D CMAKE_PREFIX_PATH=${work}/c_moved -D components=${components})
    foreach(program IN LISTS programs)
        must(${work}/${kind}/${program})
    endforeach()

elseif(kind STREQUAL "c_pkg_config")
    set(ENV{PKG_CONFIG_PATH} ${work}/c_moved/${libdir}/pkgconfig)
    file(MAKE_DIRECTORY ${work}/${kind})
    set(main_compiler ${c_compiler})
    set(mpi_compiler ${mpicc})
    foreach(program IN LISTS programs)
        string(REGEX REPLACE "^main$" "reshard-c" package ${program})
        string(REGEX REPLACE "^mpi$" "reshard-c-mpi" package ${package})
        execute_process(COMMAND ${pkg_config} --cflags --libs ${package} OUTPUT_VARIABLE flags
            OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        separate_arguments(flags UNIX_COMMAND "${flags}")
        must(${${program}_compiler} -std=c11 ${here}/${program}.c -o ${work}/${kind}/${program} ${flags}
            -Wl,-rpath,${work}/c_moved/${libdir})
        must(${work}/${kind}/${program})
    endforeach()

elseif(kind STREQUAL "debian")
    include(${here}/debian.cmake)

elseif(kind STREQUAL "embedded_as_it_is")
    # By default a part of another project uses only C++, even if CUDA and NCCL are installed.
    configured(add_subdirectory -D reshard_dir=${source})
    file(STRINGS ${work}/${kind}/CMakeCache.txt parts REGEX "^RESHARD_(CLI|TESTS|BENCH|PEERS|PROOFS|NCCL|C|FORTRAN):")
    list(FILTER parts EXCLUDE REGEX "=OFF$")
    if(parts)
        message(FATAL_ERROR "switched on in another project: ${parts}")
    endif()
    file(GLOB languages ${work}/${kind}/CMakeFiles/*/CMakeCUDACompiler.cmake)
    if(languages)
        message(FATAL_ERROR "CUDA was enabled: ${languages}")
    endif()
    # If the option asks for it, it is searched for.
    must_fail("RESHARD_NCCL is ON, but" ${CMAKE_COMMAND} -S ${here}/add_subdirectory -B ${work}/asks_for_nccl --fresh
        -G Ninja -D CMAKE_CXX_COMPILER=${compiler} -D reshard_dir=${source} -D RESHARD_NCCL=ON
        -D CMAKE_CUDA_COMPILER=CMAKE_CUDA_COMPILER-NOTFOUND -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)

elseif(kind STREQUAL "embedded")
    # As a part of another project. If it was installed without MPI, a request for MPI fails with a sentence.
    consumer(add_subdirectory -D reshard_dir=${source} -D RESHARD_MPI=OFF -D RESHARD_NCCL=OFF
        -D RESHARD_INSTALL=ON -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=12)
    must(${work}/embedded/consumer)
    file(REMOVE_RECURSE ${work}/without_mpi)
    must(${CMAKE_COMMAND} --install ${work}/embedded --prefix ${work}/without_mpi)
    must_fail("built without its component 'mpi'" ${CMAKE_COMMAND} -S ${here}/find_package -B ${work}/asks_for_mpi
        --fresh -G Ninja -D CMAKE_PREFIX_PATH=${work}/without_mpi -D version=0.3 -D components=mpi)
else()
    message(FATAL_ERROR "unknown kind ${kind}")
endif()
