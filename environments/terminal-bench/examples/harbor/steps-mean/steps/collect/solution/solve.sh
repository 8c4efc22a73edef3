#!/bin/bash
echo one > first.txt
