import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { destroySandboxes, readServerConfig } from "@aenv/server";

const SETTINGS = "embedded.json";
const PREFIX = "aenv-rollout-";

type Flags = Readonly<Record<string, unknown>>;

/** The home of a server inside of a command. The name says whose it is, so that a later command can remove it if this one is killed. */
export function createHome(parent: string, flags: Flags): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const home = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
  writeFileSync(join(home, SETTINGS), JSON.stringify({ ...flags, home }));
  return home;
}

/** Removes what killed commands have left, their sandboxes first. What cannot be removed now is left to the next command. */
export async function removeAbandonedHomes(parent: string): Promise<void> {
  for (const name of namesIn(parent)) {
    const pid = Number(name.slice(PREFIX.length).split("-")[0]);
    if (!name.startsWith(PREFIX) || !Number.isInteger(pid) || isAlive(pid)) continue;
    const home = join(parent, name);
    try {
      await destroyLeft(home);
      rmSync(home, { recursive: true, force: true });
    } catch {
      // It belongs to another user, another command is at it, or a sandbox could not be destroyed.
    }
  }
}

/** Isolated sandboxes outlive their server. Plain processes have ended by themselves, but not their control groups. */
async function destroyLeft(home: string): Promise<void> {
  const flags = readSettings(home);
  if (flags === null) return;
  await destroySandboxes(readServerConfig({ flags, variables: {} }));
}

function readSettings(home: string): Flags | null {
  try {
    return JSON.parse(readFileSync(join(home, SETTINGS), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function namesIn(parent: string): string[] {
  try {
    return readdirSync(parent);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
