#!/bin/bash
if [ -f /app/out/a ] && [ -f /app/out/b ]; then result="ALL TESTS PASSED"; else result="SOME TESTS FAILED"; fi
echo "MLEBench results starts here"
echo "$result"
echo "MLEBench results ends here"
