# cmake -D source=proofs -D copy=DIR -D make=make -P check.cmake: copies what changed, then `make check` there.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${copy})
file(GLOB files ${source}/*.v ${source}/*.ml ${source}/*.expected ${source}/*.sexp ${source}/README.md ${source}/_CoqProject ${source}/Makefile)
file(COPY ${files} DESTINATION ${copy})
execute_process(COMMAND ${make} check WORKING_DIRECTORY ${copy} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "the proofs do not check")
endif()
