# The tests reach the same service.
exec 3<> /dev/tcp/api/8000
printf "GET /tests HTTP/1.0\r\n\r\n" >&3
expected=$(tail -n 1 <&3)
[ -n "$expected" ] && [ "$(cat /app/city.txt 2> /dev/null)" = "$expected" ]
