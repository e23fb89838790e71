// ProgressBar draws a bar at the bottom of a terminal, below the lines that are printed meanwhile.
#ifndef LEEWAY_TOOLS_FORMAT_PROGRESS_BAR_H_
#define LEEWAY_TOOLS_FORMAT_PROGRESS_BAR_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leeway::tools {

// "[=====>    ]  53 %  step 530/1000  loss 0.412  12 s"
std::string BarText(std::size_t step, std::size_t steps, double loss, absl::Duration elapsed);

// Likewise for other things: the part that is done, 0 to 1, and a text.
std::string BarText(double part, absl::string_view text, absl::Duration elapsed);

class ProgressBar {
 public:
  // Draws on standard output if that is a terminal and `wanted`; otherwise only prints lines.
  explicit ProgressBar(bool wanted);
  ~ProgressBar();  // wipes the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Redraws, unless it did so very recently.
  void Show(std::size_t step, std::size_t steps, double loss);
  void ShowText(double part, absl::string_view text);
  // Prints a line above the bar; false if it cannot be printed.
  bool Print(absl::string_view line);

 private:
  void Draw(std::string text);

  const bool drawn_;
  const absl::Time start_;
  absl::Time last_;
  std::string text_;
};

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_PROGRESS_BAR_H_
