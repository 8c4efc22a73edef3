# A comment is the first line of this script.
if [ "$PWD" = /srv/work ] && [ -d /srv/work/a/b/c ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
exit 3
