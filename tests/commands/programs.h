// The paths of the tested programs, from the build.
#ifndef LEEWAY_TESTS_COMMANDS_PROGRAMS_H_
#define LEEWAY_TESTS_COMMANDS_PROGRAMS_H_

namespace leeway::tests {

inline constexpr char kLeeway[] = LEEWAY_BINARY;
inline constexpr char kHello[] = HELLO_BINARY;
inline constexpr char kReader[] = READER_BINARY;
inline constexpr char kRudeWorker[] = RUDE_WORKER_BINARY;
inline constexpr char kWorkerLife[] = WORKER_LIFE_BINARY;

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_PROGRAMS_H_
