#!/bin/bash
lines=$(wc -l 2> /dev/null < /app/lines.txt || echo 0)
if [ "$lines" = 5 ]; then
  echo '{"reward": 1, "lines": 1.0}' > /logs/verifier/reward.json
else
  echo '{"reward": 0, "lines": 0.0}' > /logs/verifier/reward.json
fi
echo '{"results": {"tool": {"name": "bash"}, "summary": {"tests": 1}, "tests": []}}' > /logs/verifier/ctrf.json
