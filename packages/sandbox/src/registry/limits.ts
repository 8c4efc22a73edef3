/** What is accepted of an image from a registry. Sizes are those of the download; layers are larger when they are unpacked. */
export interface DownloadLimits {
  /** Limit of a manifest or an index. Registries store no larger ones. */
  readonly manifestBytes: number;
  readonly configBytes: number;
  readonly layers: number;
  readonly layerBytes: number;
  /** Limit of all layers of one image together. */
  readonly imageBytes: number;
  /** A download fails when the disk has less free space than this. */
  readonly freeDiskBytes: number;
}

export const DOWNLOAD_LIMITS: DownloadLimits = {
  manifestBytes: 4 * 2 ** 20,
  configBytes: 8 * 2 ** 20,
  layers: 500,
  layerBytes: 32 * 2 ** 30,
  imageBytes: 64 * 2 ** 30,
  freeDiskBytes: 512 * 2 ** 20,
};
