#!/bin/bash
if [ "$(cat /app/network.txt 2> /dev/null)" = unreachable ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
