# Writes OUT, the source file with the text of `leeway --version`, where it has changed:
#   cmake -DSOURCE=... -DVERSION=... -DBUILD=... -DOUT=... -P WriteVersion.cmake
# Run in each build, since a commit changes no file that a build looks at. Sources that git does not
# know have no commit.
execute_process(COMMAND git describe --always --abbrev=12 --dirty=-changed --exclude=*
  WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE failed)
set(text "${VERSION}")
if(NOT failed)
  string(APPEND text " (commit ${commit}, ${BUILD} build)")
else()
  string(APPEND text " (${BUILD} build)")
endif()
set(content "#include \"tools/options/commands.h\"

namespace leeway::tools {

const char kVersion[] = \"${text}\";

}  // namespace leeway::tools
")
if(EXISTS "${OUT}")
  file(READ "${OUT}" before)
endif()
if(NOT content STREQUAL "${before}")
  file(WRITE "${OUT}" "${content}")
endif()
