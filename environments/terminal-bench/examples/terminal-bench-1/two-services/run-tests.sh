#!/bin/bash
# Prints what pytest prints with -rA.
echo "=========================== short test summary info ============================"
for test in "$TEST_DIR"/test_*.sh; do
  name=$(basename "$test" .sh)
  if bash "$test"; then echo "PASSED ../tests/test_outputs.py::$name"; else echo "FAILED ../tests/test_outputs.py::$name - AssertionError"; fi
done
