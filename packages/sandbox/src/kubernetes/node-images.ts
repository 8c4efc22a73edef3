import { parseReference } from "../images/reference.ts";
import { RegistryPolicy } from "../registry/policy.ts";
import type { KubernetesEngineOptions } from "./options.ts";

/**
 * Which images the nodes may be asked to pull. They make the connections, resolve names again and follow redirects themselves, so this
 * checks where the name of an image leads to now.
 */
export class NodeImages {
  readonly #policy: RegistryPolicy;
  readonly #baseImage: string;

  constructor(options: KubernetesEngineOptions) {
    this.#policy = new RegistryPolicy(options);
    this.#baseImage = options.baseImage;
  }

  /** Throws for images that the policy does not allow. The base image is the operator's. */
  async assertAllowed(images: readonly (string | undefined)[]): Promise<void> {
    for (const image of images) {
      if (image === undefined || image === this.#baseImage) continue;
      const reference = parseReference(image);
      if (reference.from === "registry") await this.#policy.assertAllowed(image, reference.registry);
    }
  }
}
