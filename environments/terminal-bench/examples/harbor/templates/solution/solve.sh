#!/bin/bash
printf "%s\n%s\n" "$GREETING" "$SIGNATURE" > letter.txt
