#!/bin/bash
if [ -s /app/offline.txt ] && ! grep -q reachable$ /app/offline.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
