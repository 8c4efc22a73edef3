[ -f /app/hello.txt ]
