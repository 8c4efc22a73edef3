module aenv/init

go 1.25
