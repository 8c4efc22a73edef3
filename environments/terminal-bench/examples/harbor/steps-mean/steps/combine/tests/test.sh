#!/bin/bash
. /tests/helper.sh
score "$(cat /app/both.txt 2> /dev/null)" "one two"
[ "$LEVEL" = task ] || score wrong level
