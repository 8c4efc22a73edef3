# Answers every request with the variable ANSWER, and writes the paths to a log. It uses no modules of Perl.
socket(my $server, 2, 1, 6) or die $!;
bind($server, pack("S n x12", 2, 8000)) or die $!;
listen($server, 8) or die $!;
while (accept(my $client, $server)) {
  # A connection that is closed before all of its request is read is reset, and the answer can be lost.
  my $request = "";
  while ($request !~ m{\r\n\r\n} && sysread($client, $request, 4096, length $request)) {}
  my ($path) = $request =~ m{^GET (\S+)};
  open(my $log, ">>", "requests/paths.txt") or die $!;
  print {$log} "$path\n";
  close($log);
  syswrite($client, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n$ENV{ANSWER}\n");
  close($client);
}
