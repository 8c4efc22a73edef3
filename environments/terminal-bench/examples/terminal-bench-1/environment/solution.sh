#!/bin/bash
echo "$CITY" > city.txt
