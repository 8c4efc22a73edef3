#!/bin/bash
LC_ALL=C sort -o words.txt words.txt
