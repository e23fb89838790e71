# The binding of libibverbs and librdmacm by itself.
van_system_verbs_test --gtest_brief=1 --gtest_output=json:/tmp/verbs.json
# No test may be skipped here.
! grep -q SKIPPED /tmp/verbs.json
