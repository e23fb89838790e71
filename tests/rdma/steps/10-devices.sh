# Checks for a device with a port that is up, and a GID of the node's address.
ibv_devinfo -v
/bin/rdma link
ibv_devinfo -v | grep -q PORT_ACTIVE
ibv_devinfo -v | grep -q "::ffff:$RDMA_TEST_HOST"
