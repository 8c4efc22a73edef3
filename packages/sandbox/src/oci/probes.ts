import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { SandboxRuntime } from "../engine/engine.ts";
import { attempt, isRootOnLinux, needsRoot, type ProbeResult } from "../host/probe.ts";
import { LayerStore } from "../images/layers.ts";
import { ControlGroup, findHierarchy } from "./cgroups/group.ts";
import { findMapProblem, newUserMapping } from "./overlay/mapped.ts";
import { mountRoot, removeRoot, rootPath } from "./overlay/root.ts";
import { openRuntime } from "./runtime/open.ts";
import { removeGroups, tryRuntime } from "./runtime/trial.ts";

/** Mounts an overlay below the folder, as oci sandboxes of a home do. */
export async function probeOverlay(home: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return inNewFolder(home, async (folder) => {
    const root = { folder: join(folder, "root"), layers: [], storage: { kind: "folder" } } as const;
    try {
      await mountRoot(root, new LayerStore(join(folder, "store")));
      await writeFile(join(rootPath(root), "file"), "");
    } finally {
      await removeRoot(root);
    }
    return `mounted below ${existing(home)}`;
  });
}

/** Creates a control group with each limit, and removes it. */
export async function probeControlGroups(): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return attempt(async () => {
    const hierarchy = await findHierarchy();
    const group = new ControlGroup(hierarchy, newGroupPath());
    try {
      await group.create({ memoryBytes: 64 * 2 ** 20, cpuQuotaUs: 50_000, pids: 64 });
    } finally {
      await removeGroups(group);
    }
    return `version ${hierarchy.version}, with limits of memory, cpu and processes`;
  });
}

/** Where an engine keeps its files, and whose users its sandboxes with runc have. */
export interface OciPlace {
  readonly home: string;
  /** The folder of images; below home by default. */
  readonly store?: string | undefined;
  readonly users: "own" | "machine";
}

/** Whether sandboxes with runc have users of their own, as the file systems of the home and of the images decide. */
export async function probeOwnUsers({ home, store = home, users }: OciPlace): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  if (users === "machine") return { ok: false, reason: "sandboxUsers is 'machine': root of a sandbox is root of this machine" };
  return inNewFolder(home, (folder) =>
    inNewFolderOf(store, async (layers) => {
      const problem = await findMapProblem(folder, layers);
      if (problem !== null) throw new Error(`root of a sandbox is root of this machine: ${problem}`);
      return "root of a sandbox is no user of this machine";
    }),
  );
}

/** Starts the init in an empty sandbox with the runtime, with the users that sandboxes have here, and removes it. */
export async function probeSandbox(name: SandboxRuntime, place: OciPlace, program?: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  const isMapped = name === "runc" && (await probeOwnUsers(place)).ok;
  // Root of such a sandbox cannot enter a home that only its owner can enter.
  return inNewFolder(isMapped ? tmpdir() : place.home, async (folder) => {
    const runtime = await openRuntime(name, { root: join(folder, "runtime"), ...(program !== undefined && { program }) });
    const tookMs = await tryRuntime(runtime, { folder, ...(isMapped && { userMapping: newUserMapping() }) });
    const own = basename(runtime.program);
    // With users of the machine, another program than crun is used, unless it is the chosen one.
    const used = name === "runc" && !isMapped && program === undefined ? "runc" : own;
    return `${used} started a sandbox in ${Math.round(tookMs)} ms${used === "runc" ? "; crun is faster, if it works here" : ""}`;
  });
}

function inNewFolder(home: string, act: (folder: string) => Promise<string>): Promise<ProbeResult> {
  return attempt(() => inNewFolderOf(home, act));
}

async function inNewFolderOf<T>(home: string, act: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(existing(home), ".probe-"));
  try {
    return await act(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The folder, or the nearest one above it that exists: it is on the same file system. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}

function newGroupPath(): string {
  return `/aenv-probe-${randomBytes(6).toString("hex")}/one`;
}
