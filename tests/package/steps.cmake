# must(command...): if the command fails, the test fails with its output.
function(must)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "failed (${result}): ${ARGV}\n${output}")
    endif()
endfunction()

# must_fail("sentence" command...): the command must fail with these words.
function(must_fail sentence)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    if(result EQUAL 0 OR NOT output MATCHES "${sentence}")
        message(FATAL_ERROR "expected a failure that says \"${sentence}\" (${result}): ${ARGN}\n${output}")
    endif()
endfunction()

# configured(folder options...): configures tests/package/folder into ${work}/${kind}.
function(configured folder)
    must(${CMAKE_COMMAND} -S ${here}/${folder} -B ${work}/${kind} --fresh -G Ninja -D CMAKE_CXX_COMPILER=${compiler}
        ${ARGN})
endfunction()

# consumer(folder options...): configures and builds the folder.
function(consumer folder)
    configured(${folder} ${ARGN})
    must(${CMAKE_COMMAND} --build ${work}/${kind} --parallel 2)
endfunction()
