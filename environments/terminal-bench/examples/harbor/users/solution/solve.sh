#!/bin/bash
id -un > /home/worker/name.txt
