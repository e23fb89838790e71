// leeway-lab: experiments on consistency, compression and stragglers.
#include "benchmarks/lab/lab.h"

int main(int argc, char** argv) { return leeway::lab::RunLab(argc, argv); }
