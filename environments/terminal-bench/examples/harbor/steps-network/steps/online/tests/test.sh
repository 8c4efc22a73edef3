#!/bin/bash
if [ -s /app/offline.txt ] && [ -s /app/online.txt ] && ! cmp -s /app/offline.txt /app/online.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
