#!/bin/bash
# The tests reach the same service, and see the volume in which it writes who has asked.
exec 3<> /dev/tcp/answers/8000
printf "GET /tests HTTP/1.0\r\n\r\n" >&3
expected=$(tail -n 1 <&3)
if [ -n "$expected" ] && grep -qx /answer.txt /var/requests/paths.txt && [ "$(cat /app/answer.txt 2> /dev/null)" = "$expected" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
