# leeway doctor names the device, its GID and the limit on locked memory, and finds rdma usable.
export LEEWAY_HOST=$RDMA_TEST_HOST
leeway doctor
leeway doctor >/tmp/doctor
grep -q rxe0 /tmp/doctor
grep -q "$RDMA_TEST_HOST" /tmp/doctor
grep -qi "locked memory\|memlock" /tmp/doctor
