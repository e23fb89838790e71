// The same worker's program as worker.cc, in C.
#include <leeway/c.h>
#include <stdint.h>
#include <stdio.h>

enum { kWeights = 1000 };

// Waits for the operation that was begun, if it was.
static leeway_error* Finish(leeway_worker* worker, leeway_error* error, leeway_ticket* ticket) {
  if (error != NULL) return error;
  error = leeway_wait(worker, ticket);
  leeway_ticket_free(ticket);
  return error;
}

static leeway_error* Train(leeway_worker* worker, const leeway_table* table) {
  static float weights[kWeights], gradient[kWeights];
  leeway_ticket* ticket = NULL;
  leeway_error* error;
  for (int step = 0;; ++step) {
    error = leeway_pull(table, LEEWAY_FLOAT32, weights, kWeights, NULL, &ticket);
    if ((error = Finish(worker, error, ticket)) != NULL || step == 8) break;
    for (int i = 0; i < kWeights; ++i) gradient[i] = weights[i] - 1;
    error = leeway_push(table, LEEWAY_FLOAT32, gradient, kWeights, NULL, &ticket);
    if ((error = Finish(worker, error, ticket)) != NULL) break;
    if ((error = leeway_clock(worker)) != NULL) break;
  }
  if (error != NULL) return error;
  char* answer = NULL;
  error = leeway_call(worker, 0, "greet", "outside", 7, 0, &answer, NULL);
  if (error != NULL) return error;
  printf("worker %u: weights[999] = %g; server 0 says '%s'\n", (unsigned)leeway_rank(worker),
         weights[kWeights - 1], answer);
  leeway_free(answer);
  return NULL;
}

int main(void) {
  const uint64_t shape[] = {kWeights};
  leeway_worker* worker = NULL;
  leeway_table* table = NULL;
  leeway_spec* const spec = leeway_spec_dense("weights", LEEWAY_FLOAT32, shape, 1);
  leeway_error* error = leeway_spec_set(spec, "updater", "signs:step=0.125");
  // Settings from the environment (LEEWAY_SCHEDULER, ...).
  if (error == NULL) error = leeway_connect(NULL, 0, &worker);
  if (error == NULL) error = leeway_create_table(worker, spec, &table);
  if (error == NULL) error = Train(worker, table);
  const int result = error == NULL ? 0 : 1;
  if (error != NULL) fprintf(stderr, "%s\n", leeway_error_message(error));
  leeway_error_free(error);
  leeway_spec_free(spec);
  leeway_table_free(table);
  leeway_worker_free(worker);
  return result;
}
