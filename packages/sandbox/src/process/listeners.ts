import { endianness } from "node:os";

/** A TCP socket that listens on this machine. */
export interface Listener {
  /** Identifies the socket while it is open. */
  readonly inode: string;
  /** In network byte order, as hexadecimal digits: 8 for IPv4, 32 for IPv6. */
  readonly address: string;
}

/** Which loopback address to connect to, and the listeners that may accept the connection. */
export interface DialTarget {
  readonly host: "127.0.0.1" | "::1";
  readonly inodes: readonly string[];
}

const LISTEN = "0A";

/** The listeners on a port, from the text of `/proc/net/tcp` and `/proc/net/tcp6`. */
export function readListeners(table: string, port: number, order: "LE" | "BE" = endianness()): Listener[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const found: Listener[] = [];
  for (const line of table.split("\n")) {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    if (state !== LISTEN || !local.endsWith(wanted)) continue;
    found.push({ inode, address: addressOf(local.slice(0, -wanted.length), order) });
  }
  return found;
}

/** The kernel prints each 32-bit word of an address in its own byte order. */
function addressOf(words: string, order: "LE" | "BE"): string {
  const inOrder = order === "BE" ? words : words.replace(/.{8}/g, (word) => (word.match(/../g) ?? []).reverse().join(""));
  return inOrder.toLowerCase();
}

const V4 = new Set(["7f000001", "00000000", "00000000000000000000ffff7f000001", "00000000000000000000ffff00000000"]);
const V6_ANY = "0".repeat(32);
const V6_LOOPBACK = "1".padStart(32, "0");

/**
 * The loopback address on which these listeners can be reached; null if there is none. Every listener that the system might choose
 * for that address is included: a socket on `::` may accept IPv4 connections too.
 */
export function dialTarget(listeners: readonly Listener[]): DialTarget | null {
  const v4 = listeners.filter(({ address }) => V4.has(address));
  const v6 = listeners.filter(({ address }) => address === V6_ANY || address === V6_LOOPBACK);
  if (v4.length > 0) return { host: "127.0.0.1", inodes: inodesOf([...v4, ...v6.filter(({ address }) => address === V6_ANY)]) };
  return v6.length > 0 ? { host: "::1", inodes: inodesOf(v6) } : null;
}

function inodesOf(listeners: readonly Listener[]): string[] {
  return listeners.map(({ inode }) => inode).sort();
}
