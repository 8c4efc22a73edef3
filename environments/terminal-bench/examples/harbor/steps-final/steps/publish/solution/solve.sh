#!/bin/bash
mkdir -p published
cp draft.txt published/page.txt
