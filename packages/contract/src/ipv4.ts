/** Addresses that share their first `prefix` bits. The address is a number: 10.0.0.1 is 0x0a000001. */
export interface Ipv4Network {
  readonly address: number;
  readonly prefix: number;
}

/** Null for anything but four decimal numbers from 0 to 255; 010 is refused, because some programs read it as octal. */
export function parseIpv4(text: string): number | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return null;
  let address = 0;
  for (const part of match.slice(1)) {
    if (Number(part) > 255 || (part.length > 1 && part.startsWith("0"))) return null;
    address = address * 256 + Number(part);
  }
  return address;
}

export function formatIpv4(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

/** `10.0.0.0/8`, or one address. Bits after the prefix are cleared. */
export function parseIpv4Network(text: string): Ipv4Network | null {
  const [first = "", bits, ...rest] = text.split("/");
  const address = parseIpv4(first);
  if (address === null || rest.length > 0 || (bits !== undefined && !/^\d{1,2}$/.test(bits))) return null;
  const prefix = bits === undefined ? 32 : Number(bits);
  return prefix > 32 ? null : { address: firstOf(address, prefix), prefix };
}

export function formatIpv4Network({ address, prefix }: Ipv4Network): string {
  return `${formatIpv4(address)}/${prefix}`;
}

export function containsIpv4(outer: Ipv4Network, inner: Ipv4Network): boolean {
  return outer.prefix <= inner.prefix && firstOf(inner.address, outer.prefix) === outer.address;
}

export function overlapsIpv4(one: Ipv4Network, other: Ipv4Network): boolean {
  return containsIpv4(one, other) || containsIpv4(other, one);
}

function firstOf(address: number, prefix: number): number {
  const size = 2 ** (32 - prefix);
  return Math.floor(address / size) * size;
}
