#!/bin/bash
echo 12 > number.txt
