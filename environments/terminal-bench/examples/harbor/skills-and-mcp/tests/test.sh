#!/bin/bash
if [ "$(tail -n 1 /app/page.txt)" = "stamped 7301" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
