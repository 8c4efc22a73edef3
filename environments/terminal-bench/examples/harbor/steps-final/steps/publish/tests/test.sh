#!/bin/bash
if [ "$(cat /home/worker/published/page.txt 2> /dev/null)" = draft ] && [ ! -e /home/worker/draft.txt ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
