# Installs the build into a fresh prefix, then configures, builds and runs consumer/ against it.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND}
    -S ${CMAKE_CURRENT_LIST_DIR}/consumer
    -B ${WORK_DIR}/build
    -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${CXX}
    -D "CMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -D "CMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS}"
    -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
