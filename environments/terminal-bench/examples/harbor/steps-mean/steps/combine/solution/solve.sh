#!/bin/bash
echo "$(cat first.txt) $(cat extra.txt)" > both.txt
