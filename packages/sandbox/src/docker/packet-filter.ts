import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { SYSTEM_PATH } from "../host/launcher.ts";

/** The number of the capability NET_ADMIN. */
const NET_ADMIN = 12n;

/**
 * Why this process cannot filter the packets of the daemon's containers; null if it can. It has to be allowed to, and the interfaces of the
 * containers on the machine have to be in its own network namespace.
 */
export function filterProblem(socket: string): string | null {
  const mask = /^CapEff:\s*(\w+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  if (process.getuid?.() !== 0) return "the server does not run as root";
  if (((BigInt(`0x${mask}`) >> NET_ADMIN) & 1n) === 0n) return "the server lacks the capability NET_ADMIN";
  for (const program of ["ip", "nft"])
    if (!SYSTEM_PATH.split(":").some((folder) => existsSync(join(folder, program))))
      return `${program} is not installed; install iproute2 and nftables`;
  // Without a socket there is no daemon, which another error says.
  if (!existsSync(socket) || isBoundHere(socket, readFileSync("/proc/self/net/unix", "utf8"))) return null;
  return `the daemon at ${socket} is not in the server's network namespace`;
}

/** Whether `/proc/net/unix`, which lists the sockets of one network namespace, has one that listens at the path. */
export function isBoundHere(socket: string, table: string): boolean {
  const wanted = realpathSync(socket);
  return table.split("\n").some((line) => {
    const [, flags, path = ""] = /^\S+ \S+ \S+ (\S+) \S+ \S+ +\d+ (\/.*)$/.exec(line) ?? [];
    // The flag of a socket that listens. A daemon may have named its folder by a link, such as `/var/run`.
    if (flags !== "00010000" || basename(path) !== basename(wanted)) return false;
    return path === wanted || (existsSync(path) && realpathSync(path) === wanted);
  });
}
