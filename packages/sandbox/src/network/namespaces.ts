import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { Cable, Cables } from "./cables.ts";
import { command, ip } from "./commands.ts";
import { BLOCK_PREFIX } from "./subnet.ts";

/** Where `ip` mounts network namespaces. */
const FOLDER = "/run/netns";

/** Each sandbox gets a network namespace with the name of its cable, which exists before the sandbox does. */
export const namespaceCables: Cables = {
  haveAddresses: true,
  create: createNamespaces,
  remove: removeNamespace,
  list: listNames,
};

export function namespacePath(name: string): string {
  return join(FOLDER, name);
}

/** Creates namespaces, each with one interface `eth0` whose other end on this machine has the name of the namespace. */
async function createNamespaces(all: readonly Cable[]): Promise<void> {
  await ip(
    all.flatMap(({ name, ends }) => [
      `netns add ${name}`,
      `link add ${name} type veth peer name eth0 netns ${name}`,
      // No IPv6 address: sandboxes have IPv4 only.
      `link set dev ${name} addrgenmode none`,
      `addr add ${ends.host}/${BLOCK_PREFIX} dev ${name}`,
      `link set dev ${name} up`,
    ]),
  );
  await Promise.all(
    all.map(({ name, ends }) =>
      ip(
        [
          "link set dev lo up",
          "link set dev eth0 addrgenmode none",
          `addr add ${ends.sandbox}/${BLOCK_PREFIX} dev eth0`,
          "link set dev eth0 up",
          `route add default via ${ends.host}`,
        ],
        name,
      ),
    ),
  );
}

/** Idempotent. A process that still is in the namespace keeps it, but without an interface. */
async function removeNamespace(name: string): Promise<void> {
  // Whatever does not exist is reported and skipped.
  await command("ip", ["-force", "-batch", "-"], `link del dev ${name}\nnetns del ${name}\n`).catch(() => {});
  if ((await listInterfaces()).includes(name) || existsSync(namespacePath(name)))
    throw new PlatformError("internal", `the network namespace ${name} could not be removed; see 'ip link show ${name}' and 'ip netns'`);
}

/** The names of all namespaces and of all interfaces of this machine. */
async function listNames(): Promise<Set<string>> {
  const namespaces = await readdir(FOLDER).catch(() => []);
  return new Set([...namespaces, ...(await listInterfaces())]);
}

export async function listInterfaces(): Promise<string[]> {
  const lines = (await readFile("/proc/self/net/dev", "utf8")).split("\n").slice(2);
  return lines.flatMap((line) => line.split(":")[0]?.trim() || []);
}
