mkdir -p a/b/c
