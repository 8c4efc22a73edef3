#!/bin/bash
if [ "$(stat -c %U /home/worker/draft.txt 2> /dev/null)" = worker ]; then value=1; else value=0; fi
echo "{\"text\": $value}" > /logs/verifier/reward.json
