import type { TarEntry, TarType } from "@aenv/contract";
import { TAR_END, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";
import { readTar } from "./layer-entries.ts";
import { invalidLayer, type LayerError, type LayerMeter } from "./unpack/limits.ts";

/** What happens to device nodes of a layer. Omitted by default: a sandbox gets a /dev of its own, and its root is mounted with `nodev`. */
export type DevicePolicy = "omit" | "refuse" | "keep";

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
/** Bookkeeping of an old Docker storage driver. */
const AUFS = ".wh..wh.";

const OPAQUE_ATTRIBUTE = "trusted.overlay.opaque";

const implicitFolder = (path: string): TarEntry => ({
  path,
  type: "directory",
  linkPath: "",
  mode: 0o755,
  uid: 0,
  gid: 0,
  size: 0,
  mtimeSeconds: 0,
  major: 0,
  minor: 0,
  attributes: {},
});

/**
 * Turns the tar of an image's layer into one whose content overlayfs reads as that layer. A file `.wh.NAME`, which says that NAME of
 * the layers below is deleted, becomes a device 0:0 called NAME. A file `.wh..wh..opq` becomes an attribute of its folder.
 * Refuses entries that would be written outside of the target folder or through a link, and what the meter refuses.
 */
export async function* overlayTar(
  layer: AsyncIterable<Uint8Array>,
  devices: DevicePolicy = "omit",
  meter?: LayerMeter,
): AsyncGenerator<Uint8Array> {
  const state = new LayerState(meter);
  for await (const { entry, content } of readTar(layer, (bytes) => meter?.addText(bytes))) {
    for (const one of [entry.path, entry.linkPath]) meter?.assertPath(one);
    const path = cleanPath(entry.path);
    const { isKept, headers } = state.add({ ...entry, path }, devices);
    yield* headers;
    for await (const chunk of content) if (isKept) yield chunk;
    if (isKept) yield tarPaddingBytes(entry.size);
  }
  yield TAR_END;
}

/** What the layer contains so far. Entries come in any order, so a folder may be declared opaque after its content. */
class LayerState {
  readonly #meter: LayerMeter | undefined;
  readonly #types = new Map<string, TarType | "whiteout">();
  readonly #folders = new Map<string, TarEntry>();
  readonly #opaque = new Set<string>();

  constructor(meter: LayerMeter | undefined) {
    this.#meter = meter;
  }

  /** The headers to write for an entry, and whether its content follows. */
  add(entry: TarEntry, devices: DevicePolicy): { isKept: boolean; headers: Uint8Array[] } {
    const { path, type } = entry;
    const name = path.slice(path.lastIndexOf("/") + 1);
    const parent = path.slice(0, Math.max(0, path.length - name.length - 1));
    const isOpaque = name === OPAQUE;
    if (!isOpaque && path.split("/").some((segment) => segment.startsWith(AUFS))) return { isKept: false, headers: [] };
    if (parent.split("/").some((segment) => segment.startsWith(WHITEOUT))) throw unsafe(path, "is in a folder whose name marks a deletion");
    const headers = this.#parents(path);
    if (isOpaque) return { isKept: false, headers: [...headers, ...this.#makeOpaque(parent)] };
    if (name.startsWith(WHITEOUT))
      return { isKept: false, headers: [...headers, ...this.#whiteOut(parent, name.slice(WHITEOUT.length), path)] };
    if (type === "character" || type === "block") {
      if (devices === "refuse") throw unsafe(path, "is a device node");
      if (devices === "omit") return { isKept: false, headers };
    }
    return { isKept: true, headers: [...headers, this.#write(entry)] };
  }

  #write(entry: TarEntry): Uint8Array {
    const { path, type } = entry;
    this.#meter?.addEntry(path);
    // tar creates links that leave its folder at the end, and may then take the folder for the file that it wrote in the place of the link.
    if (type === "directory" && this.#types.get(path) === "symlink") throw unsafe(path, "is a folder in the place of a link");
    if (type === "directory" && this.#types.get(path) === "whiteout") this.#opaque.add(path);
    this.#types.set(path, type);
    const linkPath = type === "hardlink" ? this.#linkTarget(entry) : entry.linkPath;
    const attributes = Object.fromEntries(Object.entries(entry.attributes).filter(([name]) => isHarmless(name)));
    if (this.#opaque.has(path)) attributes[OPAQUE_ATTRIBUTE] = "y";
    if (type === "directory") this.#folders.set(path, entry);
    return tarEntryHeader({
      ...entry,
      path: type === "directory" ? `./${path}${path === "" ? "" : "/"}` : `./${path}`,
      linkPath,
      attributes,
    });
  }

  /** Headers of folders that the layer does not list. Without them, the permissions of such a folder would depend on the server's umask. */
  #parents(path: string): Uint8Array[] {
    const headers: Uint8Array[] = [];
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      const parent = path.slice(0, end);
      const type = this.#types.get(parent);
      if (type === undefined || type === "whiteout") headers.push(this.#write(implicitFolder(parent)));
      else if (type !== "directory") throw unsafe(path, `is below '${parent}', which is no folder but a ${type}`);
    }
    return headers;
  }

  #makeOpaque(path: string): Uint8Array[] {
    if (path === "") throw unsafe(OPAQUE, "deletes all layers below, which is not supported");
    this.#opaque.add(path);
    return [this.#write(this.#folders.get(path) ?? implicitFolder(path))];
  }

  #whiteOut(parent: string, name: string, path: string): Uint8Array[] {
    if (name === "" || name === "." || name === "..") throw unsafe(path, "deletes nothing that has a name");
    const deleted = parent === "" ? name : `${parent}/${name}`;
    const type = this.#types.get(deleted);
    // The layer replaces what it deletes: a folder then hides the one below, and anything else does so in any case.
    if (type === "directory") return this.#makeOpaque(deleted);
    if (type !== undefined) return [];
    this.#meter?.addEntry(deleted);
    this.#types.set(deleted, "whiteout");
    return [tarEntryHeader({ ...implicitFolder(`./${deleted}`), type: "character", mode: 0 })];
  }

  #linkTarget({ path, linkPath }: TarEntry): string {
    const target = cleanPath(linkPath);
    this.#parents(target);
    const type = this.#types.get(target);
    if (type === undefined || type === "directory" || type === "whiteout")
      throw unsafe(path, `is a hard link to '${linkPath}', which is no file of the layer`);
    return `./${target}`;
  }
}

/** Without a leading slash or dot; empty for the root. Throws for a path that leaves the root. */
function cleanPath(path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..") || path.includes("\0")) throw unsafe(path, "leaves the root of the image");
  return segments.join("/");
}

/** Attributes of overlayfs in an image could refer to other files of the machine's layers. */
function isHarmless(attribute: string): boolean {
  return attribute === "security.capability" || (attribute.startsWith("user.") && !attribute.startsWith("user.overlay."));
}

function unsafe(path: string, problem: string): LayerError {
  return invalidLayer(`it is an unsafe layer: '${path}' ${problem}`);
}
