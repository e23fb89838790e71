# Runs the experiment in a new folder, and looks at what it says.
file(REMOVE_RECURSE "${OUT}")
execute_process(
  COMMAND "${PROGRAM}" run "${SOURCE}/experiment.toml" --quiet --seeds 1 --out "${OUT}"
  OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
message("${said}")
file(STRINGS "${OUT}/results.csv" rows)
list(LENGTH rows count)
if(NOT count EQUAL 4)  # a head, and three policies
  message(FATAL_ERROR "results.csv has ${count} lines")
endif()
if(said MATCHES "no run came to")
  message(FATAL_ERROR "a policy did not learn")
endif()
if(NOT EXISTS "${OUT}/report.html")
  message(FATAL_ERROR "there is no report")
endif()
