#!/bin/bash
if [ "$(head -n 1 /app/letter.txt 2> /dev/null)" = "$EXPECTED" ] && [ -n "$(sed -n 2p /app/letter.txt)" ] && [ "$LITERAL" = 'a${NOT_A_TEMPLATE}' ] && [ -z "$SIGNATURE" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
