#!/bin/bash
/bin/bash /opt/skills/stamp/stamp.sh page.txt
