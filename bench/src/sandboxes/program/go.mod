module aenv/bench-program

go 1.25
