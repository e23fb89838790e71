// Linear regression by programs of ps-lite: nothing here knows of Leeway. Workers pull the weights,
// compute the gradient of their own points, and push a step; servers add what is pushed.
//
//     g++ -O2 linear.cc $(pkg-config --cflags --libs leeway-pslite) -o linear
//
// and then a scheduler, servers and workers with DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT,
// DMLC_NUM_SERVER and DMLC_NUM_WORKER, as ever. With LEEWAY_REPLICATION=2 it survives the death of
// a server.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "ps/ps.h"

namespace {

const int kFeatures = 10;
const int kPoints = 200;
const int kSteps = 200;
const float kRate = 0.05f;

float Random() { return 2.0f * static_cast<float>(rand()) / static_cast<float>(RAND_MAX) - 1; }

// The weights that are to be found.
float Truth(int feature) { return 0.5f * static_cast<float>(feature) - 2; }

struct Point {
  std::vector<float> features;
  float target = 0;
};

std::vector<Point> MakePoints() {
  std::vector<Point> points(kPoints);
  for (Point& point : points) {
    for (int i = 0; i < kFeatures; ++i) {
      point.features.push_back(Random());
      point.target += Truth(i) * point.features.back();
    }
  }
  return points;
}

// A worker's part of one step down the gradient.
std::vector<float> Step(const std::vector<Point>& points, const std::vector<float>& weights) {
  std::vector<float> step(kFeatures, 0);
  for (const Point& point : points) {
    float error = -point.target;
    for (int i = 0; i < kFeatures; ++i) error += weights[i] * point.features[i];
    for (int i = 0; i < kFeatures; ++i) step[i] -= error * point.features[i];
  }
  const float scale = kRate / static_cast<float>(kPoints * ps::NumWorkers());
  for (float& value : step) value *= scale * 10;
  return step;
}

void Serve() {
  ps::KVServer<float>* const server = new ps::KVServer<float>(0);
  server->set_request_handle(ps::KVServerDefaultHandle<float>());
  ps::RegisterExitCallback([server] { delete server; });
}

void Train() {
  ps::KVWorker<float> kv(0, 0);
  srand(static_cast<unsigned>(ps::MyRank()) + 7);
  const std::vector<Point> points = MakePoints();
  std::vector<ps::Key> keys;
  for (int i = 0; i < kFeatures; ++i) keys.push_back(ps::kMaxKey / kFeatures * i);
  std::vector<float> weights;
  for (int step = 0; step < kSteps; ++step) {
    kv.Wait(kv.Pull(keys, &weights));
    kv.Wait(kv.Push(keys, Step(points, weights)));
  }
  ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
  kv.Wait(kv.Pull(keys, &weights));
  float worst = 0;
  for (int i = 0; i < kFeatures; ++i) worst = std::max(worst, std::abs(weights[i] - Truth(i)));
  CHECK_LT(worst, 0.05) << "the weights have not been found";
  if (ps::MyRank() == 0) std::cout << "largest error: " << worst << std::endl;
}

}  // namespace

int main() {
  ps::Start(0);
  if (ps::IsServer()) Serve();
  if (ps::IsWorker()) Train();
  ps::Finalize(0, true);
  return 0;
}
