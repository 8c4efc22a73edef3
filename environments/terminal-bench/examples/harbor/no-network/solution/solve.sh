#!/bin/bash
if timeout 5 bash -c 'exec 3<> /dev/tcp/1.1.1.1/80' 2> /dev/null; then echo reachable; else echo unreachable; fi > network.txt
