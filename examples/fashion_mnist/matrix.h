// AddProduct and AddTransposedProduct multiply matrices of small models: float32, row-major, on the
// calling thread.
//
// The same arguments give the same bits on every x86-64 machine: each element is summed in the
// order of the inner index, with separate multiplications and additions, for any width of the
// vector registers.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_MATRIX_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_MATRIX_H_

#include <cstddef>
#include <vector>

namespace leeway::fashion_mnist {

// c[rows][columns] += a[rows][inner] · b[inner][columns]
void AddProduct(const float* a, const float* b, float* c, std::size_t rows, std::size_t inner,
                std::size_t columns);

// c[rows][columns] += transpose(a[inner][rows]) · b[inner][columns]
void AddTransposedProduct(const float* a, const float* b, float* c, std::size_t rows,
                          std::size_t inner, std::size_t columns);

std::vector<float> Transposed(const std::vector<float>& a, std::size_t rows, std::size_t columns);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_MATRIX_H_
