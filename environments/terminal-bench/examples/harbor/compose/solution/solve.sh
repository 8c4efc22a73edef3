#!/bin/bash
exec 3<> /dev/tcp/answers/8000
printf "GET /answer.txt HTTP/1.0\r\n\r\n" >&3
tail -n 1 <&3 > answer.txt
