"""Writes the C source of leeway._c, the extension module by which Python calls leeway/c.h.

    binding.py HEADER OUTPUT

The header itself is the description of the interface: a function added there can be called from Python
without further work. cffi is chosen because it reads C declarations, calls C in about 0.2 µs, releases
the interpreter's lock (GIL) during each call, and makes one module for all versions of Python (abi3).
"""

import re
import sys

import cffi

# A signal is for the main thread: only there does a waiting call ask Python whether to go on. While other
# threads wait, they never take the interpreter's lock, so that they cannot stand in the way of its end.
CODE = """
#include <pthread.h>
#include <leeway/c.h>

static pthread_t leeway_main_thread;
static void leeway_set_main_thread(unsigned long thread) { leeway_main_thread = (pthread_t)thread; }

static int leeway_python_interrupted(void*);
static int leeway_interrupted(void* context) {
  return pthread_equal(pthread_self(), leeway_main_thread) ? leeway_python_interrupted(context) : 0;
}
static leeway_hooks leeway_python_hooks = {sizeof(leeway_hooks), leeway_interrupted, NULL};
"""

DECLARATIONS = """
void leeway_set_main_thread(unsigned long);
static leeway_hooks leeway_python_hooks;
extern "Python" int leeway_python_interrupted(void*);
extern "Python" void leeway_python_done(void*, leeway_code, const char*);
extern "Python" void leeway_python_release(void*);
extern "Python" leeway_error* leeway_python_make_updater(void*, const leeway_parameter*, size_t,
                                                         leeway_updater*);
extern "Python" void leeway_python_update(void*, const leeway_run*);
extern "Python" leeway_error* leeway_python_handle(void*, const leeway_caller*, const void*, size_t,
                                                   leeway_answer*);
extern "Python" leeway_error* leeway_python_make_codec(void*, const leeway_option*, size_t,
                                                       leeway_codec*);
extern "Python" uint64_t leeway_python_encoded_bytes_max(void*, const leeway_codec_shape*);
extern "Python" leeway_error* leeway_python_encode(void*, const void*, const leeway_codec_shape*,
                                                   uint64_t, uint64_t, void*, uint64_t*);
extern "Python" leeway_error* leeway_python_decode(void*, const void*, uint64_t,
                                                   const leeway_codec_shape*, void*);
"""


def declarations(header):
    """The header as cffi reads it: without directives of the preprocessor."""
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^#[^\n]*", "", text, flags=re.M)


def main():
    header, output = sys.argv[1:]
    ffi = cffi.FFI()
    with open(header, encoding="utf-8") as file:
        ffi.cdef(declarations(file.read()) + DECLARATIONS)
    ffi.set_source("leeway._c", CODE)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main()
