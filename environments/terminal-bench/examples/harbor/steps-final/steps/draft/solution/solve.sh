#!/bin/bash
echo draft > draft.txt
