#!/bin/bash
echo "SWEBench results starts here"
if [ "$(cat /data/city.txt 2> /dev/null)" = Lisbon ]; then echo PASSED; else echo FAILED; fi
echo "SWEBench results ends here"
exit 0
