#!/bin/bash
{
  grep -o '^ *[a-z0-9]*:' /proc/net/dev
  timeout 5 bash -c 'exec 3<> /dev/tcp/1.1.1.1/80 && echo reachable' 2>&1
} > offline.txt
