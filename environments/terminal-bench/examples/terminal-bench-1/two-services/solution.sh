#!/bin/bash
exec 3<> /dev/tcp/api/8000
printf "GET /city HTTP/1.0\r\n\r\n" >&3
tail -n 1 <&3 > /app/city.txt
