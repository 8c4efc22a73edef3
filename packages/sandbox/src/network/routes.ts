import { readFile, writeFile } from "node:fs/promises";
import { type Ipv4Network, parseIpv4Network } from "@aenv/contract";
import { command, ip, nft } from "./commands.ts";

export interface Route {
  readonly network: Ipv4Network;
  readonly device: string | null;
  readonly type: string;
  readonly metric: number;
}

/** The IPv4 routes of all tables, without the default ones. */
export async function listRoutes(): Promise<Route[]> {
  return parseRoutes(await command("ip", ["-4", "-json", "route", "show", "table", "all"]));
}

export function parseRoutes(json: string): Route[] {
  const rows = JSON.parse(json.trim() || "[]") as readonly { dst?: string; dev?: string; type?: string; metric?: number }[];
  return rows.flatMap(({ dst = "", dev = null, type = "unicast", metric = 0 }) => {
    const network = parseIpv4Network(dst);
    return network === null || network.prefix === 0 ? [] : { network, device: dev, type, metric };
  });
}

/**
 * Lets the kernel forward packets between a sandbox and the machine's networks. Where forwarding was off, the rules of the home keep it
 * off for everything else.
 */
export async function enableForwarding(table: string, isOurs: (device: string) => boolean, name: string): Promise<void> {
  // A server in a container may be unable to write, where the interfaces of the machine forward already.
  if (!(await isForwarding(name))) await setForwarding(name, true);
  const rows = JSON.parse((await command("ip", ["-4", "-json", "route", "show"])).trim() || "[]") as readonly { dev?: string }[];
  const devices = new Set(rows.flatMap(({ dev }) => (dev === undefined || isOurs(dev) ? [] : [dev])));
  for (const device of devices) {
    // An interface of another program may be gone since it was listed.
    if ((await isForwarding(device).catch(ifGone)) !== false) continue;
    await nft(`add element inet ${table} uplinks { "${device}" }\n`);
    await setForwarding(device, true).catch(ifGone);
  }
}

function ifGone(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

/** Turns off what `enableForwarding` turned on for the machine's networks. No-op if there is no such set. */
export async function restoreForwarding(table: string): Promise<void> {
  const { nftables = [] } = JSON.parse(await command("nft", ["-j", "list", "set", "inet", table, "uplinks"]).catch(() => "{}")) as {
    nftables?: readonly { set?: { elem?: readonly unknown[] } }[];
  };
  const devices = nftables.flatMap(({ set }) => set?.elem ?? []);
  for (const device of devices) if (typeof device === "string") await setForwarding(device, false).catch(() => {});
}

/** A route that leads nowhere claims the subnet: packets to addresses that no sandbox has do not leave the machine. */
export async function addBlackhole(network: string, metric: number): Promise<void> {
  await ip([`route replace blackhole ${network} metric ${metric}`]);
}

export async function removeBlackhole(network: string, metric: number): Promise<void> {
  await ip([`route del blackhole ${network} metric ${metric}`]).catch(() => {});
}

function forwardingFile(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`;
}

async function isForwarding(device: string): Promise<boolean> {
  return (await readFile(forwardingFile(device), "utf8")).trim() === "1";
}

async function setForwarding(device: string, isOn: boolean): Promise<void> {
  await writeFile(forwardingFile(device), isOn ? "1" : "0");
}
