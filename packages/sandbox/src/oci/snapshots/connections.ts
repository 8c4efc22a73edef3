/** Rows of `/proc/net/tcp` with this state have another end. */
const ESTABLISHED = "01";

/**
 * The other ends of open TCP connections, from a sandbox's `/proc/net/tcp`, without those inside of the sandbox and those of `ownPorts`.
 * Sorted, each once, such as `10.0.0.7:443`.
 */
export function outsideConnections(table: string, ownPorts: ReadonlySet<number>): string[] {
  const found = new Set<string>();
  for (const row of table.split("\n").slice(1)) {
    const [, local = "", remote = "", state] = row.trim().split(/\s+/);
    if (state !== ESTABLISHED) continue;
    const from = parse(local);
    const to = parse(remote);
    if (from === null || to === null || ownPorts.has(from.port) || to.host.startsWith("127.") || to.host === from.host) continue;
    found.add(`${to.host}:${to.port}`);
  }
  return [...found].toSorted();
}

/** A line for the log of a copy; null if it has lost nothing. */
export function describeCut(cut: readonly string[]): string | null {
  if (cut.length === 0) return null;
  return `This sandbox is a copy. Its connections to ${cut.join(", ")} were cut: only the original has them.`;
}

/** `0100007F:1F90` is 127.0.0.1:8080: the address is a number in the byte order of the machine. */
function parse(text: string): { readonly host: string; readonly port: number } | null {
  const [, address, port] = /^([0-9A-F]{8}):([0-9A-F]{4})$/.exec(text) ?? [];
  if (address === undefined || port === undefined) return null;
  return { host: [...Buffer.from(address, "hex")].toReversed().join("."), port: Number.parseInt(port, 16) };
}
