# cmake -D source=proofs -D copy=DIR -D make=make [-D checker=FILE] -P check.cmake: copies changed files and runs `make check`
# there. With `checker` it makes only the driver, as this file. If that fails, the build continues without it, and the test of
# the proofs reports the fault.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${copy})
file(GLOB files ${source}/*.v ${source}/*.ml ${source}/*.expected ${source}/*.sexp ${source}/README.md ${source}/_CoqProject ${source}/Makefile)
list(FILTER files EXCLUDE REGEX "/checker\\.ml$")  # a `make` in the source folder may have extracted it
file(COPY ${files} DESTINATION ${copy})
if(checker)
    execute_process(COMMAND ${make} --no-print-directory driver WORKING_DIRECTORY ${copy} RESULT_VARIABLE result)
    if(result EQUAL 0)
        file(COPY_FILE ${copy}/reshard-certify ${checker})
        file(TOUCH ${checker})
    else()
        file(REMOVE ${checker})
        message(WARNING "no reshard-checker: the proofs do not build here")
    endif()
    return()
endif()
execute_process(COMMAND ${make} check WORKING_DIRECTORY ${copy} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "the proofs do not check")
endif()
