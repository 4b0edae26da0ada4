# Installs the built tree into a fresh prefix, configures, builds and runs test/package against it.
set(prefix "${BINARY}/package-test/prefix with space")
file(REMOVE_RECURSE ${BINARY}/package-test)
foreach(command
    "${CMAKE_COMMAND};--install;${BINARY};--prefix;${prefix}"
    "${CMAKE_COMMAND};-S;${SOURCE};-B;${BINARY}/package-test/build;-G;Ninja;-DCMAKE_PREFIX_PATH=${prefix}"
    "${CMAKE_COMMAND};--build;${BINARY}/package-test/build"
    "${BINARY}/package-test/build/user")
  execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
endforeach()
