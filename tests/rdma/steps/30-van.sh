# Every test of the van, those of rdma over the device.
code=0
van_test --gtest_brief=1 --gtest_filter='*rdma*:-*mixed*' --gtest_output=json:/tmp/van.json || code=$?
total=$(grep -m1 '"tests"' /tmp/van.json | tr -dc 0-9)
failed=$(grep -m1 '"failures"' /tmp/van.json | tr -dc 0-9)
echo "van_suite_passed $((total - failed))" >>"$RESULTS"
echo "van_suite_failed $failed" >>"$RESULTS"
exit $code
