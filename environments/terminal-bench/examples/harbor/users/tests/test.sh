#!/bin/bash
if [ "$(cat /home/worker/name.txt 2> /dev/null)" = worker ] && [ "$(stat -c %U /home/worker/name.txt)" = worker ] && [ "$(id -un)" = grader ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
