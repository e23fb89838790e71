// CrossEntropy computes softmax and cross entropy, and FillRows and SumRows the bias before them.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_CROSS_ENTROPY_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_CROSS_ENTROPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway::fashion_mnist {

// Returns the sum of the cross entropies of all rows of scores[labels.size()][kClasses], and
// replaces the scores by its gradient divided by `divisor`.
double CrossEntropy(std::span<const std::uint8_t> labels, double divisor, std::span<float> scores);

// The same sum, without a change of the scores.
double CrossEntropy(std::span<const std::uint8_t> labels, std::span<const float> scores);

// Fills rows[n][bias.size()] with n copies of `bias`, to which a linear layer adds its products.
void FillRows(std::span<const float> bias, std::size_t n, std::vector<float>* rows);

// (*sum)[j] = rows[0][j] + rows[1][j] + …: the gradient of a bias.
void SumRows(std::span<const float> rows, std::span<float> sum);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_CROSS_ENTROPY_H_
