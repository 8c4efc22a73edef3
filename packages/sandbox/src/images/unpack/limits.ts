// This module and those of `program.ts` import nothing of other packages at run time: the process that unpacks would start ten times slower.

/** What unpacking an image may take. What exceeds a limit is refused, and nothing of it stays. */
export interface UnpackLimits {
  /** Bytes of all layers of an image that are unpacked together, as archives that are not compressed. */
  readonly imageBytes: number;
  /** Files, folders, links and deletions of these layers. */
  readonly imageEntries: number;
  readonly layerBytes: number;
  readonly layerEntries: number;
  /** Paths, and headers with long names and attributes, of one layer. They are in memory. */
  readonly layerTextBytes: number;
  readonly pathBytes: number;
  /** Folders above a file. */
  readonly pathDepth: number;
  /** How often a layer may be larger than its compressed form, and an image than those of its layers. */
  readonly ratio: number;
  /** What may be unpacked whatever the ratio is: zeros compress well. */
  readonly freeOfRatioBytes: number;
  /** What stays free on the disk, whoever fills it. Null: see `reservedBytes`. */
  readonly freeDiskBytes: number | null;
  /** Memory for objects of the process that unpacks. */
  readonly heapMb: number;
}

const GIB = 2 ** 30;
/** More than the largest images of benchmarks and of CUDA, which have tens of gigabytes and 500,000 files. */
const DEFAULT_IMAGE_BYTES = 128 * GIB;
const DEFAULT_IMAGE_ENTRIES = 2_000_000;

/** An entry with a short path. */
const HEAP_PER_ENTRY = 448;
const BASE_HEAP_MB = 256;

/** The limits of an operator, and what follows from them. */
export function unpackLimits(given: Partial<UnpackLimits> = {}): UnpackLimits {
  const { imageBytes = DEFAULT_IMAGE_BYTES, imageEntries = DEFAULT_IMAGE_ENTRIES } = given;
  const layerEntries = given.layerEntries ?? Math.ceil(imageEntries / 2);
  return {
    imageBytes,
    imageEntries,
    layerBytes: Math.ceil(imageBytes / 2),
    layerEntries,
    layerTextBytes: 256 * 2 ** 20,
    pathBytes: 4_095,
    pathDepth: 256,
    // gzip reaches 1,032 with zeros, and real layers seldom 20.
    ratio: 200,
    freeOfRatioBytes: GIB,
    freeDiskBytes: null,
    heapMb: BASE_HEAP_MB + Math.ceil((layerEntries * HEAP_PER_ENTRY) / 2 ** 20),
    ...given,
  };
}

export type UnpackLimit = Exclude<keyof UnpackLimits, "freeOfRatioBytes" | "heapMb"> | "freeFiles";

/** A layer is damaged or unsafe, or needs what is not there. */
export class LayerError extends Error {
  override readonly name = "LayerError";
  readonly code: "bundle.invalid" | "sandbox.unsupported";

  constructor(code: LayerError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Refuses a layer for what it holds. */
export function invalidLayer(message: string): LayerError {
  return new LayerError("bundle.invalid", message);
}

export class LimitExceeded extends Error {
  override readonly name = "LimitExceeded";
  readonly limit: UnpackLimit;
  readonly value: number;

  constructor(limit: UnpackLimit, value: number) {
    super(`the limit ${limit} of ${value} is exceeded`);
    this.limit = limit;
    this.value = value;
  }
}

/** Counts what the layers of one image take. */
export class ImageMeter {
  readonly limits: UnpackLimits;
  #bytes = 0;
  #entries = 0;
  #compressedBytes = 0;

  constructor(limits: UnpackLimits) {
    this.limits = limits;
  }

  /** The meter of the next layer, whose blob has this size. */
  layer(compressedBytes: number): LayerMeter {
    this.#compressedBytes += compressedBytes;
    return new LayerMeter(this, compressedBytes);
  }

  addBytes(count: number): void {
    this.#bytes += count;
    assertWithin("imageBytes", this.#bytes, this.limits);
    assertRatio(this.#bytes, this.#compressedBytes, this.limits);
  }

  addEntry(): void {
    assertWithin("imageEntries", ++this.#entries, this.limits);
  }
}

export class LayerMeter {
  readonly #image: ImageMeter;
  readonly #compressedBytes: number;
  #bytes = 0;
  #entries = 0;
  #textBytes = 0;

  constructor(image: ImageMeter, compressedBytes: number) {
    this.#image = image;
    this.#compressedBytes = compressedBytes;
  }

  get entries(): number {
    return this.#entries;
  }

  addBytes(count: number): void {
    const { limits } = this.#image;
    this.#bytes += count;
    assertWithin("layerBytes", this.#bytes, limits);
    assertRatio(this.#bytes, this.#compressedBytes, limits);
    this.#image.addBytes(count);
  }

  /** An entry that is written, with its path. */
  addEntry(path: string): void {
    const { limits } = this.#image;
    assertWithin("layerEntries", ++this.#entries, limits);
    this.#image.addEntry();
    this.addText(path.length);
  }

  addText(bytes: number): void {
    this.#textBytes += bytes;
    assertWithin("layerTextBytes", this.#textBytes, this.#image.limits);
  }

  /** A path as it is in the archive. It is checked before anything is made of it: a folder would be added for each of its parts. */
  assertPath(path: string): void {
    const { limits } = this.#image;
    assertWithin("pathBytes", path.length, limits);
    let depth = 0;
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) depth++;
    assertWithin("pathDepth", depth, limits);
  }
}

function assertWithin(limit: Exclude<UnpackLimit, "freeDiskBytes" | "freeFiles">, value: number, limits: UnpackLimits): void {
  if (value > limits[limit]) throw new LimitExceeded(limit, limits[limit]);
}

function assertRatio(bytes: number, compressedBytes: number, { ratio, freeOfRatioBytes }: UnpackLimits): void {
  if (bytes > freeOfRatioBytes && bytes > ratio * compressedBytes) throw new LimitExceeded("ratio", ratio);
}
