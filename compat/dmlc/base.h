// The configuration macros that programs written for ps-lite may set before they include ps/ps.h.
#ifndef DMLC_BASE_H_
#define DMLC_BASE_H_

// 1: LOG(FATAL) and a CHECK that fails throw dmlc::Error. 0: they abort.
#ifndef DMLC_LOG_FATAL_THROW
#define DMLC_LOG_FATAL_THROW 1
#endif

#endif  // DMLC_BASE_H_
