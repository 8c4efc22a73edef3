#!/bin/bash
if [ -s /app/report.txt ] && [ -s /app/data/table.csv ] && [ "$(cat /logs/artifacts/status.txt 2> /dev/null)" = done ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
