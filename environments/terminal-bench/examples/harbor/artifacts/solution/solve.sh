#!/bin/bash
echo report > report.txt
echo "a,b" > data/table.csv
echo scratch > data/scratch.tmp
echo done > /logs/artifacts/status.txt
