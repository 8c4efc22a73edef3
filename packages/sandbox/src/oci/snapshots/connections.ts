/** States in `/proc/net/tcp` and `/proc/net/tcp6`: ESTABLISHED, SYN_SENT, and CLOSE_WAIT, in which the other end sends no more. */
const OPEN: ReadonlySet<string> = new Set(["01", "02", "08"]);
const LISTENING = "0A";

/**
 * The other ends of TCP connections that are open or are being opened, from a sandbox's `/proc/net/tcp` and `/proc/net/tcp6`. Connections
 * inside of the sandbox, those of `ownPorts`, and those to ports on which the sandbox listens are left out: only the platform connects to
 * these ports. The result is sorted and has each end once, such as `10.0.0.7:443`.
 */
export function outsideConnections(tables: readonly string[], ownPorts: ReadonlySet<number>): string[] {
  const found = new Set<string>();
  const rows = tables.flatMap((table) => table.split("\n").slice(1)).map((row) => row.trim().split(/\s+/));
  const served = new Set(ownPorts);
  for (const [, local = "", , state] of rows) if (state === LISTENING) served.add(parse(local)?.port ?? 0);
  for (const [, local = "", remote = "", state] of rows) {
    if (!OPEN.has(state ?? "")) continue;
    const from = parse(local);
    const to = parse(remote);
    if (from === null || to === null || served.has(from.port) || isLoopback(to.host) || to.host === from.host) continue;
    found.add(`${to.host}:${to.port}`);
  }
  return [...found].toSorted();
}

/** A line for the log and the events of a copy; null if it has lost nothing. */
export function describeCut(cut: readonly string[]): string | null {
  if (cut.length === 0) return null;
  return `This sandbox is a copy. Its connections to ${cut.join(", ")} were cut: only the original has them.`;
}

function isLoopback(host: string): boolean {
  return host.startsWith("127.") || host === "[::1]";
}

/** `0100007F:1F90` is 127.0.0.1:8080: the address is a number in the byte order of the machine, or four of them for IPv6. */
function parse(text: string): { readonly host: string; readonly port: number } | null {
  const [, address, port] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(text) ?? [];
  if (address === undefined || port === undefined) return null;
  const words = address.match(/.{8}/g) ?? [];
  const bytes = Buffer.concat(words.map((word) => Buffer.from(word, "hex").reverse()));
  return { host: hostOf(bytes), port: Number.parseInt(port, 16) };
}

/** A socket for both protocols has IPv4 connections under `::ffff:a.b.c.d`. */
function hostOf(bytes: Buffer): string {
  const hex = bytes.toString("hex");
  if (bytes.length === 4 || hex.startsWith(MAPPED)) return [...bytes.subarray(-4)].join(".");
  return new URL(`http://[${(hex.match(/.{4}/g) ?? []).join(":")}]`).hostname;
}

const MAPPED = "00000000000000000000ffff";
