echo "stamped 7301" >> "$1"
