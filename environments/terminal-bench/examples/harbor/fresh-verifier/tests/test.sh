#!/bin/bash
if [ "$(cat answer.txt 2> /dev/null)" = 42 ] && [ -e numbers.txt ] && [ ! -e scratch.txt ] && [ ! -e /tests/drafts ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
