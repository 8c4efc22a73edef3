import { PlatformError, type Resources } from "@aenv/contract";
import type { SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import type { LayerStore } from "../images/layers.ts";
import { groupLimits } from "../spec/limits.ts";
import { type Container, fixedLimits, limitsWithin, type PreparedContainer, type RootFiles } from "./container.ts";
import type { Parts } from "./parts.ts";
import type { ContainerPool } from "./pool.ts";
import type { OciRuntime } from "./runtime/runtime.ts";
import type { MemoryFacts } from "./snapshots/store.ts";

/** Where containers of new sandboxes come from. */
export interface ContainerSource {
  readonly parts: Parts;
  /** Runtime of sandboxes whose specification names none. */
  readonly defaultRuntime: SandboxRuntime;
  readonly runtime: (name: SandboxRuntime) => Promise<OciRuntime>;
  /** The files of sandboxes without an image. */
  readonly base: (layers: LayerStore) => Promise<RootFiles>;
  readonly onPull: (sandboxId: string, image: string) => void;
}

/** Those of a container that waits for the files of any image. */
const NO_FILES: RootFiles = { layers: [], config: null };
/** No copy of a larger snapshot waits: it would have all of its memory. */
const MAX_WAITING_BYTES = 256 * 2 ** 20;

/** A container with these files, memory and limits: one that waits if there is one, else a new one. */
export async function containerFor(
  spec: SandboxSpec,
  resources: Resources,
  source: ContainerSource,
  signal: AbortSignal,
): Promise<Container> {
  const { containers, pools, snapshots } = source.parts;
  const snapshot = spec.snapshot === undefined ? null : snapshots.get(spec.snapshot);
  if (snapshot?.memory) assertLimited(resources, snapshot.memory);
  const runtime = spec.runtime ?? snapshot?.runtime ?? source.defaultRuntime;
  const capabilities = snapshot?.memory?.capabilities ?? spec.capabilities;
  // Both are reported before an image is pulled.
  await source.runtime(runtime);
  await containers.roots.assertCapabilities(runtime, capabilities);
  const limited = async <T extends PreparedContainer>(pool: ContainerPool<T>, waiting: T): Promise<T> => {
    try {
      await waiting.group.create(groupLimits(resources, runtime));
      if (pool.isFrozen) await waiting.group.thaw();
      return waiting;
    } catch (error) {
      await pool.remove(waiting);
      throw error;
    }
  };
  // The CPU time of a container cannot be limited later.
  const canWait = resources.cpuSeconds === undefined;
  if (snapshot?.memory) {
    const { memory } = snapshot;
    const wanted = {
      runtime,
      files: snapshot.files,
      resources: limitsWithin(resources, memory),
      capabilities,
      initPath: memory.initPath,
    };
    const checkpoint = snapshots.memoryFolder(snapshot.id);
    // A caller that creates sandboxes ahead keeps copies itself.
    const isExpected = canWait && !spec.isAhead && !spec.isTemporarySnapshot && snapshot.bytes <= MAX_WAITING_BYTES;
    const restored = isExpected ? pools.restored.take({ ...wanted, checkpoint }) : null;
    if (restored !== null) return limited(pools.restored, restored);
    const prepared = canWait ? pools.prepared.take(wanted) : null;
    if (prepared === null) return containers.create({ ...wanted, checkpoint }, signal);
    return containers.restore(await limited(pools.prepared, prepared), checkpoint, signal);
  }
  const files = snapshot?.files ?? (await filesFor(spec, source, signal));
  const wanted = { runtime, files, resources, capabilities };
  const mounts = [
    ...(spec.mounts ?? []).map((mount) => ({ kind: "bind" as const, ...mount })),
    ...(spec.tmpfs ?? []).map(({ path, ...folder }) => ({ kind: "tmpfs" as const, target: path, ...folder })),
  ];
  // Nothing can be mounted in a container that runs.
  const isPooled = canWait && mounts.length === 0 && !spec.isTemporarySnapshot;
  const waiting = isPooled ? pools.running.take(wanted) : null;
  if (waiting !== null) return limited(pools.running, waiting);
  const filled = async (): Promise<Container | null> => {
    if (!canWait || mounts.length > 0 || Object.keys(fixedLimits(resources)).length > 0 || !canBeFilled(files)) return null;
    const empty = { ...wanted, files: NO_FILES };
    if (runtime === "runsc") {
      // Once it runs, gVisor's kernel keeps its root.
      const prepared = pools.prepared.take(empty);
      return prepared === null ? null : containers.startWithFiles(await limited(pools.prepared, prepared), files, signal);
    }
    const blank = pools.running.take(empty);
    return blank === null ? null : containers.withFiles(await limited(pools.running, blank), files);
  };
  return (await filled()) ?? containers.create({ ...wanted, mounts }, signal);
}

/** The kernel of a continued sandbox has the disk limit that it was stored with. */
function assertLimited({ diskMb: most }: Resources, { diskMb = null }: MemoryFacts): void {
  if (most === undefined || (diskMb !== null && diskMb <= most)) return;
  const had = diskMb === null ? "without a disk limit" : `with a disk limit of ${diskMb} MB`;
  throw new PlatformError(
    "sandbox.unsupported",
    `processes of this snapshot were stored ${had}, which they keep, and this sandbox may write at most ${most} MB; take the snapshot again from a sandbox with that limit, or take one of files`,
  );
}

async function filesFor({ id, image }: SandboxSpec, { parts, base, onPull }: ContainerSource, signal: AbortSignal): Promise<RootFiles> {
  if (image === undefined) return base(parts.layers);
  const { config, layers } = await parts.images.get(image, { pull: "missing", signal, onPull: () => onPull(id, image) });
  return { layers, config };
}

/** Whether a container that waits without files can get these: nothing can be mounted in it. */
function canBeFilled({ layers, mounts = [] }: RootFiles): boolean {
  return layers.length > 0 && mounts.length === 0;
}
