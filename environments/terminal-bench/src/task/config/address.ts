import { isIPv4, isIPv6 } from "node:net";

/** An address of IPv4 or IPv6 in the short form that Python writes; null for any other text. An address with a zone is none. */
export function parseAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  return text.includes("%") || !isIPv6(text) ? null : new URL(`http://[${text}]`).hostname.slice(1, -1);
}

/**
 * A network such as `10.0.0.0/8` or `2001:db8::/32`; null for any other text. As in Python, a network of IPv4 may have a mask in place of the
 * number of bits, and the bits after it must be 0.
 */
export function parseNetwork(text: string): string | null {
  const [first = "", mask = "", ...rest] = text.split("/");
  const address = parseAddress(first);
  if (address === null || rest.length > 0) return null;
  const size = isIPv4(address) ? 32 : 128;
  const bits = /^\d+$/.test(mask) ? Number(mask) : size === 32 && isIPv4(mask) ? bitsOfMask(numberOf(mask)) : null;
  if (bits === null || bits > size) return null;
  return BigInt.asUintN(size - bits, numberOf(address)) === 0n ? `${address}/${bits}` : null;
}

/** The bits of a mask such as 255.0.0.0, or of its complement; null if it is neither. */
function bitsOfMask(mask: bigint): number | null {
  const all = 2n ** 32n - 1n;
  const prefixOf = (one: bigint) => (32 - one.toString(2).length + (one === 0n ? 1 : 0)) as number;
  for (const hosts of [all - mask, mask]) if ((hosts & (hosts + 1n)) === 0n) return prefixOf(hosts);
  return null;
}

function numberOf(address: string): bigint {
  if (isIPv4(address)) return address.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [left = "", right = null] = address.split("::");
  const words = (half: string) => (half === "" ? [] : half.split(":"));
  const missing = right === null ? 0 : 8 - words(left).length - words(right).length;
  const all = [...words(left), ...Array<string>(missing).fill("0"), ...words(right ?? "")];
  return all.reduce((sum, word) => sum * 65_536n + BigInt(`0x${word}`), 0n);
}
