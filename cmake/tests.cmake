# What CTest runs. Tests start in the source root, so paths like data/digits.csv.gz hold in each.
#
#   src/ROOM/noun_test.c    ROOM/noun         cmocka, linked with the library's inside
#   tests/noun_test.c       tests/noun        the same, with tests/noun/*.c; tests/support/*.c are linked into both
#   tests/noun_test.sh      tests/noun        sh; $AXLE is the command, $AXLE_BUILD the build folder
#   tests/cxx/*.cc          tests/cxx         one program over axle.hpp; tests/cxx_other is the same by another compiler, where there is one
#   tests/cxx_forms         tests/cxx_functions: what C++ has of every function of C, and of one of each form
#   examples/noun.c         examples/noun     succeeds; examples/noun.cc is examples/noun_cc; likewise examples/tutorial/noun.c, examples/kernels/noun.c
#   the house's own checks  house/...         once, not under sanitizers
#
# `make test` leaves out what has the label `long`; `make test-all` runs that too.

set(sanitizer_settings
    # What they take for the header of memory for a library's thread-local variables may be none. Then the search for leaks reads at random,
    # and TSan clears what it knows of any range (it stops: "failed to allocate 0x1ec100000f000 bytes").
    "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0:malloc_context_size=12"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1:intercept_tls_get_addr=0")

set(time_limit 600) # seconds; most is a tenth of it, but others may be busy on the machine
if(AXLE_SANITIZE)
  set(time_limit 1800) # instructions that are computed in C, each by a signal, take minutes there
endif()
if(AXLE_COVERAGE)
  set(time_limit 3600) # counters in the innermost loops take their time, and a test that is stopped has counted nothing
endif()

function(axle_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${time_limit} ENVIRONMENT "${sanitizer_settings};AXLE_CODE_CACHE=off;AXLE_MACHINE=reference")
endfunction()

# --- cmocka ---
file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
if(support)
  add_library(test_support OBJECT ${support})
  target_include_directories(test_support PUBLIC tests)
  target_link_libraries(test_support PUBLIC inside_shared PkgConfig::cmocka)
endif()

add_library(fake_plugin MODULE tests/plugins/fake.c) # of PJRT, for tests of what loads one
target_include_directories(fake_plugin PRIVATE include src)
set_target_properties(fake_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY tests)

add_custom_target(thread_tests) # what TSan builds and runs, which ctest calls by the label `threads`
file(GLOB whole_tests CONFIGURE_DEPENDS tests/*_test.c)
foreach(source ${unit_tests} ${whole_tests})
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
  string(REGEX REPLACE "^src/|_test\\.c$" "" name ${name})
  string(REPLACE "/" "_" target ${name}_test)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c)
  add_executable(${target} ${source} ${parts})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
  target_compile_options(${target} PRIVATE -UNDEBUG)
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:AXLE_VERIFIES>) # the library verifies after every pass
  target_include_directories(${target} PRIVATE tests)
  target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:test_support> inside_shared PkgConfig::cmocka)
  if(name MATCHES "^pjrt/")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:pjrt_objects>)
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated)
    add_dependencies(${target} pjrt_objects) # makes messages.pb-c.h
  endif()
  if(name STREQUAL "tests/plugin")
    target_compile_definitions(${target} PRIVATE AXLE_OWN_PLUGIN="$<TARGET_FILE:axle_pjrt>")
    add_dependencies(${target} axle_pjrt)
  endif()
  if(name MATCHES "^(client/client|array/away)$")
    target_compile_definitions(${target} PRIVATE AXLE_FAKE_PLUGIN_FILE="$<TARGET_FILE:fake_plugin>")
    add_dependencies(${target} fake_plugin)
  endif()
  axle_test(${name} $<TARGET_FILE:${target}>)
  if(name MATCHES "^(machine|processes|code|assemble|run|array)/|^planner/ahead$") # what makes threads or runs in them
    add_dependencies(thread_tests ${target})
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
  endif()
endforeach()

# --- What libFuzzer runs: no tests, since they have no end ---
if(AXLE_FUZZ)
  foreach(name hlo program pjrt)
    add_executable(fuzz_${name} tests/fuzz/${name}.c)
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
    target_link_libraries(fuzz_${name} PRIVATE inside_shared)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
  target_sources(fuzz_pjrt PRIVATE $<TARGET_OBJECTS:pjrt_objects>)
endif()

# --- sh ---
file(GLOB script_tests CONFIGURE_DEPENDS tests/*_test.sh)
foreach(source ${script_tests})
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_test$" "" name ${name})
  axle_test(tests/${name} sh ${source})
  set_property(TEST tests/${name} APPEND PROPERTY ENVIRONMENT
               "AXLE=${PROJECT_BINARY_DIR}/axle" "AXLE_BUILD=${PROJECT_BINARY_DIR}")
endforeach()

# --- C++: as users see it, so over the shared library. all.cc is the others in one. ---
file(GLOB cxx_sources CONFIGURE_DEPENDS tests/cxx/*.cc)
file(GLOB cxx_headers CONFIGURE_DEPENDS include/axle/*.hpp include/axle/cxx/*.hpp include/axle/*.h tests/cxx/*.hpp)
list(APPEND cxx_headers ${cxx_functions})
list(FILTER cxx_sources EXCLUDE REGEX "/all\\.cc$")
set(cxx_warnings -Wshadow -Wconversion -Wsign-conversion)
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/cxx/statuses.cc PROPERTIES COMPILE_OPTIONS "-fno-exceptions;-fno-rtti")
add_executable(cxx_test ${cxx_sources})
set_target_properties(cxx_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
# What statuses.cc makes has no type information, which the check of vptr looks for, also in code that files share.
target_compile_options(cxx_test PRIVATE -O0 ${cxx_warnings} -fno-sanitize=vptr)
target_link_libraries(cxx_test PRIVATE axle Threads::Threads)
axle_test(tests/cxx $<TARGET_FILE:cxx_test>)
set_property(TEST tests/cxx APPEND PROPERTY ENVIRONMENT CXX_FOLDER=${PROJECT_BINARY_DIR}/tests)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(OTHER_CXX NAMES clang++)
else()
  find_program(OTHER_CXX NAMES g++)
endif()
set(cxx_compilers ${CMAKE_CXX_COMPILER})
if(NOT AXLE_SANITIZE)
  set(checked -Wall -Wextra -Wpedantic -Werror ${cxx_warnings} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/generated/include)
  if(OTHER_CXX)
    list(APPEND cxx_compilers ${OTHER_CXX})
    set(throwing ${cxx_sources})
    list(FILTER throwing EXCLUDE REGEX "/statuses\\.cc$")
    add_custom_command(OUTPUT tests/cxx_other_test DEPENDS ${cxx_sources} ${cxx_headers} axle
        COMMAND ${OTHER_CXX} -std=c++17 ${checked} -DAXLE_NO_EXCEPTIONS -c ${PROJECT_SOURCE_DIR}/tests/cxx/statuses.cc -o tests/cxx_statuses.o
        COMMAND ${OTHER_CXX} -std=c++17 ${checked} ${throwing} tests/cxx_statuses.o -o tests/cxx_other_test
                $<TARGET_FILE:axle> -Wl,-rpath,${PROJECT_BINARY_DIR} -pthread)
    add_custom_target(cxx_other ALL DEPENDS tests/cxx_other_test)
    axle_test(tests/cxx_other ${PROJECT_BINARY_DIR}/tests/cxx_other_test)
    set_property(TEST tests/cxx_other APPEND PROPERTY ENVIRONMENT CXX_FOLDER=${PROJECT_BINARY_DIR})
  endif()
  # As C++20.
  set(newer "")
  foreach(compiler ${cxx_compilers})
    list(APPEND newer COMMAND ${compiler} -std=c++20 ${checked} -fsyntax-only ${PROJECT_SOURCE_DIR}/tests/cxx/all.cc)
  endforeach()
  add_custom_command(OUTPUT tests/cxx_newer.stamp DEPENDS ${cxx_sources} ${cxx_headers} tests/cxx/all.cc ${newer}
                     COMMAND ${CMAKE_COMMAND} -E touch tests/cxx_newer.stamp)
  add_custom_target(cxx_newer ALL DEPENDS tests/cxx_newer.stamp)
endif()
list(JOIN cxx_compilers " " cxx_compilers)
foreach(name cxx_refused cxx_macros cxx_functions)
  if(TEST tests/${name})
    set_property(TEST tests/${name} APPEND PROPERTY ENVIRONMENT "AXLE_CXX=${cxx_compilers}"
                 "AXLE_INCLUDE=-I${PROJECT_BINARY_DIR}/generated/include")
  endif()
endforeach()

# Programs that pages of docs/ show; tests/docs_test.sh runs them.
file(GLOB page_programs CONFIGURE_DEPENDS tests/docs/*.c)
foreach(source ${page_programs})
  axle_program(page ${source} tests/docs)
endforeach()

# --- Programs under mpirun, with each library of MPI that is here: tests/mpi/*.c as mpi/NAME/program_PROCESSES ---
if(mpi_names)
  foreach(program messages opens ends latency calls runtimes)
    add_executable(mpi_${program} tests/mpi/${program}.c)
  endforeach()
  set(mpi_programs mpi_messages mpi_opens mpi_ends mpi_latency mpi_calls mpi_runtimes)
  add_executable(mpi_divergent tests/mpi/divergent.c) # as a user's program is
  set_target_properties(mpi_divergent PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
  target_link_libraries(mpi_divergent PRIVATE axle)
  add_executable(mpi_soak tests/mpi/soak.c)
  target_include_directories(mpi_soak PRIVATE tests)
  target_link_libraries(mpi_soak PRIVATE test_support PkgConfig::cmocka)
  list(APPEND mpi_programs mpi_soak)
  foreach(name ${mpi_names})
    add_executable(mpi_caller_${name} tests/mpi/caller.c) # linked with MPI, as its users' programs are
    target_link_libraries(mpi_caller_${name} PRIVATE ${mpi_${name}_target})
    list(APPEND mpi_programs mpi_caller_${name})
  endforeach()
  foreach(target ${mpi_programs})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
    target_compile_options(${target} PRIVATE -UNDEBUG)
    target_link_libraries(${target} PRIVATE inside_shared)
  endforeach()
endif()
set(launchers "")
foreach(name ${mpi_names})
  string(APPEND launchers "${name} ${mpi_${name}_run}\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/mpi_launchers.txt "${launchers}") # for cmake/run-soak
function(axle_mpi_test name shim case processes) # then the program and its arguments
  axle_test(mpi/${name}/${case}_${processes} sh tests/mpi/run.sh ${mpi_${name}_run} ${shim} ${processes} ${ARGN})
  set_tests_properties(mpi/${name}/${case}_${processes} PROPERTIES PROCESSORS 2)
endfunction()
foreach(name ${mpi_names})
  foreach(processes 1 2 3 4)
    axle_mpi_test(${name} ${name} messages ${processes} $<TARGET_FILE:mpi_messages>)
  endforeach()
  axle_mpi_test(${name} ${name} opens 2 $<TARGET_FILE:mpi_opens>)
  axle_mpi_test(${name} ${name} runtimes 2 $<TARGET_FILE:mpi_runtimes>)
  axle_mpi_test(${name} ${name} exit 3 $<TARGET_FILE:mpi_ends> exit)
  axle_mpi_test(${name} ${name} kill 3 --ended $<TARGET_FILE:mpi_ends> kill)
  axle_mpi_test(${name} ${name} divergent 3 $<TARGET_FILE:mpi_divergent> alive 1 26 ${CMAKE_BINARY_DIR}/divergent_${name}.log)
  axle_mpi_test(${name} ${name} divergent_many 10 $<TARGET_FILE:mpi_divergent> alive 1 8 ${CMAKE_BINARY_DIR}/divergent_many_${name}.log)
  axle_test(mpi/${name}/divergent_ends_3 sh tests/mpi/divergent.sh ${mpi_${name}_run} ${name} 3 $<TARGET_FILE:mpi_divergent> 1 6)
  set_tests_properties(mpi/${name}/divergent_ends_3 PROPERTIES PROCESSORS 2)
  foreach(processes 2 3)
    axle_mpi_test(${name} ${name} calls ${processes} $<TARGET_FILE:mpi_calls> ${CMAKE_BINARY_DIR}/calls_${name}_${processes}.txt)
    foreach(program psum ragged ring)
      axle_mpi_test(${name} ${name} ${program} ${processes} sh tests/mpi/as_one.sh $<TARGET_FILE:command> ${program})
    endforeach()
    axle_test(mpi/${name}/command_${processes} sh tests/mpi/command.sh ${mpi_${name}_run} ${name} ${processes} $<TARGET_FILE:command>)
    set_tests_properties(mpi/${name}/command_${processes} PROPERTIES PROCESSORS 2)
  endforeach()
  # As between nodes: all goes by MPI.
  axle_mpi_test(${name} ${name} messages_apart 3 env AXLE_NODE_MEMORY=0 $<TARGET_FILE:mpi_messages>)
  foreach(program psum ragged ring)
    axle_mpi_test(${name} ${name} ${program}_apart 2 env AXLE_NODE_MEMORY=0 sh tests/mpi/as_one.sh $<TARGET_FILE:command> ${program})
  endforeach()
  axle_mpi_test(${name} ${name} exit_apart 3 env AXLE_NODE_MEMORY=0 $<TARGET_FILE:mpi_ends> exit)
  axle_mpi_test(${name} ${name} speeds 2 sh tests/mpi/speeds.sh $<TARGET_FILE:command>)
  axle_test(mpi/${name}/late_2 sh tests/mpi/late.sh ${mpi_${name}_run} ${name} $<TARGET_FILE:command>)
  axle_mpi_test(${name} ${name} digits 2 env AXLE_PROCESSES=mpi $<TARGET_FILE:example_digits> --mesh data=4
                --out ${CMAKE_BINARY_DIR}/digits_${name}.npz data/digits.csv.gz)
  foreach(processes 2 3) # of three, one has devices of both halves of the data
    axle_mpi_test(${name} ${name} gpt ${processes} sh tests/mpi/same.sh $<TARGET_FILE:example_gpt> --mesh data=2,model=4 --steps 21)
  endforeach()
  foreach(processes 1 2 4)
    axle_test(mpi/${name}/by_hand_${processes} sh tests/mpi/by_hand.sh ${mpi_${name}_run} ${name} ${processes} $<TARGET_FILE:bench_by_hand_${name}>)
    set_tests_properties(mpi/${name}/by_hand_${processes} PROPERTIES PROCESSORS 2)
  endforeach()
  # The library that the program is linked with is found without being named.
  axle_mpi_test(${name} any half 3 $<TARGET_FILE:mpi_caller_${name}> half)
  axle_mpi_test(${name} any finalize 2 $<TARGET_FILE:mpi_caller_${name}> finalize)
  axle_mpi_test(${name} any funneled 1 $<TARGET_FILE:mpi_caller_${name}> funneled)
endforeach()

# --- Examples ---
set(arguments_digits --out ${CMAKE_BINARY_DIR}/digits.npz data/digits.csv.gz)
set(arguments_checkpoint ${CMAKE_BINARY_DIR}/examples)
set(arguments_gpt --steps 5)
set(arguments_models moe-8x7b)
set(arguments_stablehlo ${CMAKE_BINARY_DIR}/examples)
foreach(source ${example_sources})
  cmake_path(GET source STEM name)
  axle_test(examples/${name} $<TARGET_FILE:example_${name}> ${arguments_${name}})
endforeach()

foreach(source ${cxx_example_sources})
  cmake_path(GET source STEM name)
  axle_test(examples/${name}_cc $<TARGET_FILE:example_${name}_cc> data/digits.csv.gz)
endforeach()

foreach(source ${tutorial_sources})
  cmake_path(GET source STEM name)
  axle_test(examples/tutorial/${name} $<TARGET_FILE:tutorial_${name}>)
endforeach()

foreach(source ${kernel_example_sources})
  cmake_path(GET source STEM name)
  axle_test(examples/kernels/${name} $<TARGET_FILE:kernels_${name}>)
endforeach()

# --- Those that take longest, and that few changes concern: a third of the time of all tests ---
set(long_tests
    check/all_inputs check/counts kernel/image/run_away linalg/bands plain/collectives plain/matrices plain/samples planner/planner sim/monotone
    tests/out_of_memory tests/plugin tests/sums tests/vectors)
foreach(name ${long_tests})
  set_property(TEST ${name} APPEND PROPERTY LABELS long)
endforeach()

# --- The house ---
if(NOT AXLE_SANITIZE)
  axle_test(house/rooms sh tests/rooms.sh .)
  axle_test(house/rooms_finds_breaches sh tests/rooms.sh tests/rooms.bad)
  set_tests_properties(house/rooms_finds_breaches PROPERTIES PASS_REGULAR_EXPRESSION "rooms: 6 breaches")

  # At least so many percent of the functions that headers declare are named in a test; more of them raise the number.
  axle_test(house/named sh tests/named.sh . 49)

  axle_test(house/sizes sh tests/sizes.sh .)
  axle_test(house/commands sh tests/commands.sh Makefile)
  axle_test(house/names sh tests/names.sh .)
  axle_test(house/names_finds_breaches sh tests/names.sh tests/names.bad)
  set_tests_properties(house/names_finds_breaches PROPERTIES PASS_REGULAR_EXPRESSION "names: 2 defined twice")

  file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include include/axle/*.h)
  file(GLOB public_cxx_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include include/axle/*.hpp include/axle/cxx/*.hpp)
  axle_test(house/headers sh cmake/check-headers ${CMAKE_C_COMPILER} ${public_headers} ${public_cxx_headers} axle/cxx/functions.hpp)
  set_property(TEST house/headers APPEND PROPERTY ENVIRONMENT "AXLE_CXX=${cxx_compilers}"
               "AXLE_INCLUDE=-I${PROJECT_BINARY_DIR}/generated/include")

  axle_test(house/lines sh cmake/check-lines ${public_headers})

  axle_test(house/symbols sh cmake/check-symbols $<TARGET_FILE:axle> ${public_headers})

  axle_test(house/outside sh examples/outside/test.sh ${PROJECT_BINARY_DIR})
  set_property(TEST house/outside APPEND PROPERTY ENVIRONMENT "CC=${CMAKE_C_COMPILER}")

  axle_test(house/version sh tests/version.sh ${PROJECT_VERSION} ${PROJECT_BINARY_DIR})
  axle_test(house/abi sh cmake/abi ${PROJECT_VERSION} $<TARGET_FILE:axle> $<TARGET_FILE:page_sizes>)
  axle_test(house/plugin_needs sh tests/plugin_needs.sh $<TARGET_FILE:axle_pjrt>)
endif()
