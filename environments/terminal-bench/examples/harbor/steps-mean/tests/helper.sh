score() {
  if [ "$1" = "$2" ]; then echo 1.0; else echo 0; fi > /logs/verifier/reward.txt
}
