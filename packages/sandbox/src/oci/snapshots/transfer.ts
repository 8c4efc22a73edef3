import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type CapabilitySet, isObject, type Json, PlatformError } from "@aenv/contract";
import type {
  ExportedSnapshot,
  SandboxRuntime,
  SandboxSnapshot,
  SnapshotDescription,
  SnapshotFidelity,
  SnapshotPart,
} from "../../engine/engine.ts";
import { isOfSnapshot, type LayerId, type LayerStore } from "../../images/layers.ts";
import type { ImageConfig } from "../../images/layout.ts";
import type { SandboxMount } from "../../spec/mounts.ts";
import { type FixedLimits, type RootFiles, storedLimits } from "../container.ts";
import type { OciRuntime } from "../runtime/runtime.ts";
import { packFolder, unpackFolder } from "./archive.ts";
import { type CompleteSnapshot, diskBytes, type MemoryFacts, type SnapshotStore } from "./store.ts";

/** What engines write about a snapshot. */
interface Facts {
  readonly engine: "oci";
  readonly format: 1;
  readonly fidelity: SnapshotFidelity;
  readonly runtime: SandboxRuntime;
  readonly layers: readonly LayerId[];
  readonly config: ImageConfig | null;
  /** Where folders of the machine are mounted. Another machine has its own folders. */
  readonly mounts: readonly string[];
  readonly memory: MemoryNeeds | null;
}

/** A stored process continues only where these are the same. */
interface MemoryNeeds extends FixedLimits {
  readonly format: string;
  readonly architecture: string;
  /** Digest of the init's program. */
  readonly init: string;
  /** The public key that the init trusts. */
  readonly key: string;
  readonly program: number | null;
  /** Missing in snapshots of earlier versions: `minimal`. */
  readonly capabilities?: CapabilitySet;
  readonly cut: readonly string[];
}

/** The engine that exports or imports. */
export interface Site {
  readonly layers: LayerStore;
  readonly snapshots: SnapshotStore;
  readonly architecture: string;
  readonly initPath: string;
  readonly key: string;
  readonly runtime: (name: SandboxRuntime) => Promise<OciRuntime>;
  readonly baseMounts: () => Promise<readonly SandboxMount[]>;
}

const LAYER = "layer ";
const MEMORY = "memory ";
const EXPECT_EVERY_BYTES = 16 * 2 ** 20;

export async function exportSnapshot(id: string, site: Site): Promise<ExportedSnapshot> {
  const { layers, snapshots } = site;
  const snapshot = snapshots.get(id);
  const { config, layers: ids, mounts = [] } = snapshot.files;
  const facts: Facts = {
    engine: "oci",
    format: 1,
    fidelity: snapshot.fidelity,
    runtime: snapshot.runtime,
    layers: ids,
    config,
    mounts: mounts.map(({ target }) => target),
    memory: await needsOf(snapshot, site),
  };
  const parts: SnapshotPart[] = ids.map((layer) => ({ name: `${LAYER}${layer}` }));
  if (snapshot.memory !== null) parts.push({ name: `${MEMORY}${id}` });
  return {
    facts: facts as Facts & Json,
    parts,
    open: ({ name }, signal) =>
      packFolder(
        name.startsWith(LAYER) ? join(layers.folder, layers.filesOf(name.slice(LAYER.length))) : snapshots.memoryFolder(id),
        signal,
      ),
  };
}

export async function importSnapshot(
  { facts: given, parts }: SnapshotDescription,
  open: (part: SnapshotPart) => Promise<Readable>,
  signal: AbortSignal,
  site: Site,
): Promise<SandboxSnapshot> {
  const { layers, snapshots } = site;
  const facts = parseFacts(given);
  const mounts = facts.mounts.length === 0 ? [] : await site.baseMounts();
  await assertRuns(facts, mounts, site);
  const { fidelity, runtime, config, layers: ids, memory } = facts;
  const files: RootFiles = { layers: ids, config, ...(mounts.length > 0 && { mounts }) };
  const stored = memory === null ? null : storedMemory(memory, site);
  const { id, bytes } = await snapshots.add({ fidelity, runtime, memory: stored }, async ({ memoryFolder: folder, holder, expect }) => {
    layers.announce(holder, ids);
    const { freeDiskBytes } = snapshots;
    const own = { signal, freeDiskBytes, onBytes: expectingEach(expect) };
    const addLayer = (id: LayerId, part: SnapshotPart) =>
      // Layers of images count for nobody here, because they can be removed when no sandbox uses them.
      layers.add(id, async (target) => unpackFolder(await open(part), target, isOfSnapshot(id) ? own : { signal, freeDiskBytes }));
    for (const part of parts) {
      if (part.name.startsWith(LAYER)) await addLayer(part.name.slice(LAYER.length), part);
      else {
        await mkdir(folder, { mode: 0o700 });
        await unpackFolder(await open(part), folder, own);
      }
    }
    return { files, bytes: memory === null ? null : await diskBytes([folder]) };
  });
  return { id, fidelity, bytes, ...(memory !== null && { cut: memory.cut }) };
}

/** Tells how much is there before it is complete, so that what is too large is refused before it fills the disk. */
function expectingEach(expect: (bytes: number) => void): (bytes: number) => void {
  let bytes = 0;
  let told = 0;
  return (count) => {
    bytes += count;
    if (bytes - told < EXPECT_EVERY_BYTES) return;
    told = bytes;
    expect(bytes);
  };
}

async function needsOf({ memory, runtime }: CompleteSnapshot, site: Site): Promise<MemoryNeeds | null> {
  if (memory === null) return null;
  const { program, capabilities = "minimal", initPath, cut } = memory;
  const format = (await site.runtime(runtime)).checkpointFormat ?? "";
  const init = await digestOf(initPath);
  return { format, architecture: site.architecture, init, key: site.key, program, ...storedLimits(memory), capabilities, cut };
}

function storedMemory({ program, capabilities = "minimal", cut, ...needs }: MemoryNeeds, { initPath }: Site): MemoryFacts {
  return { program, ...storedLimits(needs), capabilities, initPath, cut };
}

/** Refuses what could not be continued here, before anything of it is copied. */
async function assertRuns({ runtime, memory, mounts }: Facts, own: readonly SandboxMount[], site: Site): Promise<void> {
  const { checkpointFormat = "" } = await site.runtime(runtime);
  if (memory === null) return;
  const problems: string[] = [];
  const compare = (what: string, theirs: string, ours: string) => {
    if (theirs !== ours) problems.push(`${what} was '${theirs}' and here is '${ours}'`);
  };
  compare("the architecture", memory.architecture, site.architecture);
  compare("the runtime", memory.format, checkpointFormat);
  compare("the init of sandboxes", memory.init, await digestOf(site.initPath));
  compare("the folders in sandboxes", mounts.join(", "), own.map(({ target }) => target).join(", "));
  if (memory.key !== site.key) problems.push("it trusts the server's key 'init-key.pem' in another home");
  if (problems.length > 0)
    throw new PlatformError(
      "sandbox.unsupported",
      `processes of this snapshot cannot continue on this server: ${problems.join("; ")}. Take the snapshot again here, or take one of files`,
    );
}

function parseFacts(facts: Json): Facts {
  if (isObject(facts) && facts.engine === "oci" && facts.format === 1) return facts as Facts & Json;
  const maker = isObject(facts) ? `the engine '${String(facts.engine)}', format ${String(facts.format)}` : "another engine";
  throw new PlatformError("sandbox.unsupported", `the snapshot was taken by ${maker}; this server has the engine 'oci', format 1`);
}

async function digestOf(path: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex")
    .slice(0, 16);
}
