import { type EnvironmentConfig, formatRef, isPlatformError, PlatformError } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import { isInScope } from "../access/scopes.ts";
import { highestInRange } from "./versions/order.ts";
import { isAdmin, PLATFORM_OWNER } from "./versions/rights.ts";

/** The environments that come with the platform. */
export interface BuiltIns {
  /** The version of the built-in environment of this name; null if there is none. */
  versionOf(name: string): string | null;
  bundle(name: string): Promise<BuiltInBundle>;
}

export interface BuiltInBundle {
  readonly config: EnvironmentConfig;
  /** `sha256:` and the digest of the archive. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

export interface PublicationsOptions {
  readonly builtIns: BuiltIns;
  /** Uploads and publishes a bundle in the name of the platform. */
  readonly publish: (bundle: BuiltInBundle) => Promise<unknown>;
}

/** Publishes the built-in environments. Nobody but an administrator publishes other code under their names, which everybody would get. */
export const PLATFORM: Caller = { owner: PLATFORM_OWNER, roles: new Set(["admin"]), tokenId: null, maxInstances: null };

/**
 * Publishes built-in environments at their first use by a caller who may publish. A caller who may not is told how: otherwise a trainer
 * could bring code to the server.
 */
export class BuiltInPublications {
  readonly #options: PublicationsOptions;
  /** Publications that run, by name: instances of a batch ask for the same one at once. */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(options: PublicationsOptions) {
    this.#options = options;
  }

  /** False if no built-in environment has this name. */
  async publish(name: string, version: string, caller: Caller): Promise<boolean> {
    const own = this.#options.builtIns.versionOf(name);
    if (own === null || !isInScope(caller, name)) return false;
    const ref = formatRef({ name, version: own });
    if (!isMeant(version, own)) throw notFound(formatRef({ name, version }), `this AEnv comes with ${ref}`);
    if (!isAdmin(caller) && !caller.roles.has("publisher"))
      throw notFound(
        ref,
        `it comes with AEnv and is not published on this server; its first use by a publisher does that, such as: aenv get ${ref}`,
      );
    const running = this.#running.get(name) ?? this.#begin(name).finally(() => this.#running.delete(name));
    this.#running.set(name, running);
    await running;
    return true;
  }

  versionOf(name: string): string | null {
    return this.#options.builtIns.versionOf(name);
  }

  /** Throws if exactly this version comes with the platform. */
  assertNotNewer(name: string, version: string): void {
    if (version !== this.#options.builtIns.versionOf(name)) return;
    throw notFound(
      formatRef({ name, version }),
      `it comes with this AEnv, and the server has another version; the publisher of '${name}' publishes it with: aenv push --work-dir ${name}`,
    );
  }

  async #begin(name: string): Promise<void> {
    const { builtIns, publish } = this.#options;
    try {
      await publish(await builtIns.bundle(name));
    } catch (error) {
      // Another server on this store may have been faster.
      if (!isPlatformError(error, "environment.exists")) throw error;
    }
  }
}

function notFound(ref: string, hint: string): PlatformError {
  return new PlatformError("environment.not_found", `Environment not found: '${ref}'; ${hint}`, { details: { ref } });
}

/** Whether a requested version, which may be empty or a range, is that of the built-in environment. */
function isMeant(requested: string, own: string): boolean {
  if (requested === "" || requested === "latest" || requested === own) return true;
  return highestInRange([{ version: own, createdAt: "" }], requested) !== null;
}
