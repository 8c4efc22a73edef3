#!/bin/bash
if [ "$(cat /app/token.txt 2> /dev/null)" = token-5181 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
