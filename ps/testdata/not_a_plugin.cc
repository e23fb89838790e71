// A shared library that is no plugin: it has no LeewayRegister.
extern "C" int LeewayNothing() { return 0; }
