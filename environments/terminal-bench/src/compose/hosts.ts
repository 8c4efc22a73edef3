import { isIP } from "node:net";
import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { listOf } from "./compose.ts";

/** A line of `/etc/hosts`. */
export interface ComposeHost {
  readonly name: string;
  readonly address: string;
}

export const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$/;
/** The address of the machine, which sandboxes do not reach. */
const MACHINE = "host-gateway";

/** Entries of `extra_hosts`: a table, or a list of `NAME:ADDRESS` or `NAME=ADDRESS`. Names of the machine itself are left out. */
export function parseHosts(value: unknown, at: string): readonly ComposeHost[] {
  const pairs = isTable(value)
    ? Object.entries(value).flatMap(([name, addresses]) =>
        (Array.isArray(addresses) ? addresses : [addresses]).map((address) => [name, String(address)] as const),
      )
    : listOf(value).map((entry) => splitEntry(String(entry), at));
  return pairs
    .filter(([, address]) => address !== MACHINE)
    .map(([name, given]) => {
      const address = given.replace(/^\[(.*)\]$/, "$1");
      if (!HOST_NAME.test(name)) throw new InvalidValue(at, `'${name}' is not a host name`);
      if (isIP(address) === 0) throw new InvalidValue(at, `'${given}' is not an address of the host '${name}'`);
      return { name, address };
    });
}

/** A name has neither of the separators, an address of IPv6 has colons. */
function splitEntry(entry: string, at: string): readonly [name: string, address: string] {
  const place = entry.search(/[:=]/);
  if (place < 0) throw new InvalidValue(at, `'${entry}' is not NAME:ADDRESS`);
  return [entry.slice(0, place).trim(), entry.slice(place + 1).trim()];
}
