# QUOKA_TEST_PYTHON: the Python of .venv, which has the pinned packages that some tests need.
set(QUOKA_TEST_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python
    CACHE FILEPATH "Python with the packages of scripts/requirements-test.txt")
if(NOT EXISTS ${QUOKA_TEST_PYTHON})
  message(WARNING "${QUOKA_TEST_PYTHON} does not exist: the tests that need Python packages will "
                  "fail; run scripts/setup.sh --test")
endif()
