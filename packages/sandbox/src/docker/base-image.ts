import { PlatformError } from "@aenv/contract";
import { HOME_LABEL } from "./container.ts";
import type { DockerImage, DockerImages, ImportedRoot } from "./images.ts";

/** The image of sandboxes without one: the name of an image, or the files of this machine's base. */
export type Base = string | (() => Promise<ImportedRoot>);

/** The image of a home's sandboxes that name none. */
export class BaseImage {
  readonly #images: DockerImages;
  readonly #homeId: string;
  readonly #base: Base | undefined;
  #imported: Promise<DockerImage> | undefined;

  constructor(images: DockerImages, homeId: string, base: Base | undefined) {
    this.#images = images;
    this.#homeId = homeId;
    this.#base = base;
  }

  async get(sandboxId: string, signal: AbortSignal): Promise<DockerImage> {
    const base = this.#base;
    if (base === undefined)
      throw new PlatformError("request.invalid", `sandbox '${sandboxId}' names no image, and the docker engine has no base image`);
    if (typeof base === "string") return this.#images.get(base, signal);
    const known = await this.#imported;
    // Another server with the same base, whose home has made the image, may have removed it.
    if (known !== undefined && (await this.#images.find(known.id)) === null) this.#imported = undefined;
    this.#imported ??= this.#import(base).catch((error: unknown) => {
      this.#imported = undefined;
      throw error;
    });
    return this.#imported;
  }

  /** The images of earlier versions of this server are removed. */
  async #import(base: () => Promise<ImportedRoot>): Promise<DockerImage> {
    const label = `${HOME_LABEL}=${this.#homeId}`;
    const image = await this.#images.importRoot("aenv-base", label, base);
    await this.#images.removeOthers(label, image);
    return image;
  }
}
