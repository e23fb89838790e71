// TempFolder is a new empty folder of a test, below the system's folder for temporary files; it is
// removed with everything in it when the object is destroyed.
#ifndef LEEWAY_RUNTIME_TESTING_TEMP_FOLDER_H_
#define LEEWAY_RUNTIME_TESTING_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace leeway::runtime {

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "leeway-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  // Without a slash at its end.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_TESTING_TEMP_FOLDER_H_
