#include "tools/cli.h"

int main(int argc, char** argv) { return leeway::tools::Main({argv, argv + argc}); }
