#!/bin/bash
sed -n "s/^ *\([^:]*\):.*/\1/p" /proc/net/dev > interfaces.txt
