# Installs the built tree into a fresh prefix, configures, builds and runs test/package against it.
#   SOURCE, BINARY   folders of this file and of the built tree
#   DEVICE           what the user's program runs on
#   LLVM, NM         a shared LLVM to have beside ours, and nm; empty where LLVM is not inside the library
set(prefix "${BINARY}/package-test/prefix with space")
set(build ${BINARY}/package-test/build)
set(ENV{FUSEC_CACHE_DIR} ${BINARY}/package-test/cache)
file(REMOVE_RECURSE ${BINARY}/package-test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BINARY} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${build} -G Ninja -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${build})
run(${build}/user reference)
run(${build}/user ${DEVICE})
if(LLVM)
  file(READ ${build}/library library)
  # What the library shows begins with fusec, or is a table of a type of fusec: nothing of LLVM.
  run(${NM} --dynamic --demangle --defined-only ${library})
  string(REGEX MATCHALL "[^\n]* [A-Za-z] [^\n]*" symbols "${output}")
  list(FILTER symbols EXCLUDE REGEX " [A-Za-z] (fusec|(vtable|typeinfo|typeinfo name) for fusec::)")
  if(symbols)
    message(FATAL_ERROR "${library} shows more than fusec:\n${symbols}")
  endif()
  run(${build}/host ${LLVM} ${library})
endif()
