#!/bin/bash
if [ "$(cat words.txt | tr "\n" " ")" = "apple pear plum " ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
