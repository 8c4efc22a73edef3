[ "$(cat /app/hello.txt 2> /dev/null)" = "Hello, world!" ]
